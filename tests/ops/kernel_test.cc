// SPDX-License-Identifier: Apache-2.0
// Every kernel of the table, each by itself, against the reference: in every element type,
// every layout, with inputs known beforehand and not, written over where it may be.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/ops/cases.h"
#include "tests/support/case_draws.h"
#include "tests/support/kernel_trial.h"
#include "tests/support/reference/evaluate.h"

namespace onward {
namespace {

using reference::Array;
using reference::Arrays;
using reference::Number;

constexpr DType kFloats[] = {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBFloat16};
constexpr DType kOthers[] = {DType::kInt8,  DType::kInt16,  DType::kInt32,  DType::kInt64,
                             DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64,
                             DType::kBool,  DType::kString};

// How far from the reference: by the size of the number, and by that of the largest one.
struct Tolerance {
  Number own = 0, largest = 0;
};

Tolerance ToleranceOf(DType dtype) {
  switch (dtype) {
    case DType::kDouble: return {0, 1e-12L};
    case DType::kFloat: return {0, 1e-5L};
    // Computed in float and rounded once; sums that are kept in their type, twice.
    case DType::kFloat16: return {0x1p-10L, 1e-5L};
    case DType::kBFloat16: return {0x1p-7L, 1e-5L};
    default: return {};
  }
}

// Empty, or what is wrong. NaN is right where the reference is NaN, and nowhere else.
std::string Difference(const Tensor& tensor, const Array& expected) {
  if (tensor.dtype() != expected.dtype || tensor.shape() != expected.shape) {
    return absl::StrCat("is ", DTypeName(tensor.dtype()), tensor.shape().ToString(), ", expected ",
                        DTypeName(expected.dtype), expected.shape.ToString());
  }
  const Array actual = reference::FromTensor(tensor);
  const Tolerance tolerance = ToleranceOf(expected.dtype);
  Number largest = 1;
  for (const Number v : expected.values) {
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  }
  for (int64_t i = 0; i < expected.size(); ++i) {
    const Number a = actual.values[i], e = expected.values[i];
    const bool same = std::isnan(e) ? std::isnan(a) : a == e;
    if (same || std::fabs(a - e) <= tolerance.own * std::fabs(e) + tolerance.largest * largest) {
      continue;
    }
    return absl::StrCat("element ", i, " of ", expected.shape.ToString(), " is ",
                        static_cast<double>(a), ", expected ", static_cast<double>(e));
  }
  return "";
}

// (domain, operator, which of its kernels)
using KernelKey = std::tuple<std::string, std::string, size_t>;

class Checker {
 public:
  enum class Mode { kRun, kOnlyMake };
  explicit Checker(Mode mode) : mode_(mode) {}

  const std::set<KernelKey>& reached() const { return reached_; }

  // All kernels for one call, in all layouts.
  void Check(const KernelInputs& call, const Arrays& expected, const std::string& what) {
    CheckShape(call, expected, what);
    const auto* entries =
        DefaultEnvironment().cpu().kernels().Find(call.node.op_type, call.node.domain);
    for (size_t k = 0; entries != nullptr && k < entries->size(); ++k) {
      for (const Placing& placing : Placings()) {
        const bool plain = &placing == &Placings()[0];
        if (mode_ == Mode::kOnlyMake && !plain) break;
        KernelTrial trial((*entries)[k], call, placing);
        if (!plain && !trial.moved()) continue;
        if (absl::IsUnimplemented(trial.status())) continue;
        const std::string where =
            absl::StrCat(what, ", kernel '", (*entries)[k].provider, "', ", placing.name);
        if (!trial.status().ok()) {
          ADD_FAILURE() << where << ": " << trial.status();
          continue;
        }
        reached_.emplace(call.node.domain, call.node.op_type, k);
        if (mode_ == Mode::kRun) CheckRuns(trial, expected, where);
      }
    }
  }

 private:
  // The rule beside the kernels; where only constants decide, it has to know.
  static void CheckShape(const KernelInputs& call, const Arrays& expected,
                         const std::string& what) {
    const ShapeRule* rule =
        DefaultEnvironment().cpu().kernels().FindShape(call.node.op_type, call.node.domain);
    if (rule == nullptr) return;
    std::vector<ValueSpec> inputs(call.values.size());
    bool decided = true;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& value = call.values[i];
      if (!value.defined()) continue;
      inputs[i] = {value.dtype(), value.shape(), nullptr, call.constant[i] ? &value : nullptr};
      decided &= i == 0 || call.constant[i];
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (!call.outputs[i].present()) continue;
      const absl::StatusOr<Shape> shape =
          (*rule)({call.node, inputs, call.outputs, {{"", kCanonicalOpset}}}, static_cast<int>(i));
      if (shape.ok()) {
        EXPECT_EQ(*shape, expected[i].shape) << what << ", output " << i;
      } else {
        EXPECT_FALSE(decided) << what << ": " << shape.status();
      }
    }
  }

  static void CheckRuns(KernelTrial& trial, const Arrays& expected, const std::string& where) {
    CheckRun(trial.Run(), expected, where);
    for (const auto& [output, input] : trial.overwrites()) {
      CheckRun(trial.Run(output, input), expected,
               absl::StrCat(where, ", output ", output, " over input ", input));
    }
  }

  static void CheckRun(const absl::StatusOr<std::vector<Tensor>>& results, const Arrays& expected,
                       const std::string& where) {
    if (!results.ok()) {
      ADD_FAILURE() << where << ": " << results.status();
      return;
    }
    for (size_t i = 0; i < results->size(); ++i) {
      if (!(*results)[i].defined()) continue;
      const std::string difference = Difference((*results)[i], expected[i]);
      EXPECT_EQ(difference, "") << where << ", output " << i;
    }
  }

  Mode mode_;
  std::set<KernelKey> reached_;
};

std::vector<ValueSpec> SpecsOf(const Node& node, const Arrays& expected, bool known) {
  std::vector<ValueSpec> specs(node.outputs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    specs[i].dtype = expected[i].dtype;
    if (known) specs[i].shape = expected[i].shape;
  }
  return specs;
}

Node NodeOf(const OpCase& c) {
  Node node;
  node.op_type = c.op;
  node.domain = c.domain;
  node.name = c.name;
  node.attributes = c.attributes;
  for (size_t i = 0; i < c.args.size(); ++i) {
    node.inputs.push_back(c.args[i].kind == Arg::Kind::kOmitted ? "" : absl::StrCat("x", i));
  }
  for (int i = 0; i < c.outputs; ++i) node.outputs.push_back(absl::StrCat("y", i));
  return node;
}

bool IsConstant(const Arg& arg) {
  return arg.kind == Arg::Kind::kConstant || arg.kind == Arg::Kind::kConstantReal ||
         arg.kind == Arg::Kind::kTrue;
}

// A row's call; none where the type cannot hold what it asks for. `indices`: the type of
// integers that are fed.
std::optional<KernelInputs> CallOf(const OpCase& c, DType dtype, DType indices) {
  KernelInputs call{NodeOf(c), {}, {}, {}};
  Draws draws(c.name);
  for (Arg arg : c.args) {
    if (arg.kind == Arg::Kind::kIntegers && arg.integers == DType::kInt64) arg.integers = indices;
    std::optional<Tensor> value = DrawArgAs(arg, dtype, draws);
    if (!value.has_value()) return std::nullopt;
    call.values.push_back(*std::move(value));
    call.constant.push_back(IsConstant(arg));
  }
  return call;
}

Arrays ArraysOf(const std::vector<Tensor>& tensors) {
  Arrays arrays;
  for (const Tensor& t : tensors) arrays.push_back(reference::FromTensor(t));
  return arrays;
}

// A row in one type: with its constants known, with all weights known, with nothing known.
void CheckRow(const OpCase& c, DType dtype, DType indices, Checker& checker) {
  std::optional<KernelInputs> call = CallOf(c, dtype, indices);
  if (!call.has_value()) return;
  Arrays expected;
  try {
    expected = reference::Evaluate(call->node, ArraysOf(call->values));
  } catch (const reference::NotDefined&) {
    return;
  }
  const std::string what = absl::StrCat(c.name, " in ", DTypeName(dtype));
  call->outputs = SpecsOf(call->node, expected, !c.data_dependent);
  checker.Check(*call, expected, what);
  KernelInputs known = *call;
  for (size_t i = 1; i < known.constant.size(); ++i) known.constant[i] = true;
  if (known.constant != call->constant) {
    checker.Check(known, expected, absl::StrCat(what, ", weights known"));
  }
  KernelInputs unknown = *call;
  std::fill(unknown.constant.begin(), unknown.constant.end(), false);
  if (unknown.constant == call->constant) return;
  unknown.outputs = SpecsOf(unknown.node, expected, false);
  checker.Check(unknown, expected, absl::StrCat(what, ", nothing known"));
}

// Whether the standard lets the row's indices be int32 too.
bool TakesNarrowIndices(const OpCase& c) {
  static const auto* const ops = new std::set<std::string>{
      "Gather",     "GatherElements",          "ScatterElements",
      "OneHot",     "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss",
      "GatherGrad", "GatherGradRows"};
  if (!ops->contains(c.op)) return false;
  for (const Arg& arg : c.args) {
    if (arg.kind == Arg::Kind::kIntegers && arg.integers == DType::kInt64) return true;
  }
  return false;
}

// Whether the row's gradient can be compared in a type.
bool TakesType(const OpCase& c, DType dtype) {
  // What the forward pass of a recurrence keeps is rounded twice, once as Y and once as gates:
  // formulas that are equal elsewhere differ there.
  const bool recurrent = c.op == "RNN" || c.op == "GRU" || c.op == "LSTM";
  if (recurrent && dtype != DType::kFloat && dtype != DType::kDouble) return false;
  return dtype != DType::kBFloat16 || c.op != "Shrink";  // whose schema leaves it out
}

// Nodes of Onward's own in the row's gradient, on the numbers they get there.
void CheckGradient(const OpCase& c, DType dtype, Checker& checker) {
  if (!TakesType(c, dtype)) return;
  const CaseGraph row = GradientGraph(c, dtype);
  std::map<std::string, Array> values;
  for (const auto& [name, tensor] : row.feeds) values[name] = reference::FromTensor(tensor);
  for (const auto& [name, tensor] : row.graph.initializers) {
    values[name] = reference::FromTensor(tensor);
  }
  for (const Node& node : row.graph.nodes) {
    KernelInputs call{node, {}, {}, {}};
    for (const std::string& name : node.inputs) {
      call.values.push_back(name.empty() ? Tensor() : reference::ToTensor(values[name]));
      call.constant.push_back(row.graph.initializers.contains(name));
    }
    Arrays expected;
    try {
      expected = reference::Evaluate(node, ArraysOf(call.values));
    } catch (const reference::NotDefined&) {
      return;
    }
    if (node.domain == kOnwardDomain) {
      call.outputs = SpecsOf(node, expected, /*known=*/true);
      checker.Check(
          call, expected,
          absl::StrCat(node.op_type, " in the gradient of ", c.name, " in ", DTypeName(dtype)));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) values[node.outputs[i]] = expected[i];
    }
  }
}

struct Family {
  const char* name;
  std::vector<OpCase> (*rows)();
};

void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

class KernelTest : public testing::TestWithParam<Family> {};

TEST_P(KernelTest, AgreesWithTheReference) {
  Checker checker(Checker::Mode::kRun);
  for (const OpCase& c : GetParam().rows()) {
    if (DefaultEnvironment().cpu().kernels().Find(c.op, c.domain) == nullptr) continue;
    for (const DType dtype : kFloats) CheckRow(c, dtype, DType::kInt64, checker);
    for (const DType dtype : kOthers) {
      // Functions of Onward and steps of optimizers are for floating numbers alone.
      if (c.domain.empty()) CheckRow(c, dtype, DType::kInt64, checker);
    }
    if (TakesNarrowIndices(c)) CheckRow(c, DType::kFloat, DType::kInt32, checker);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, KernelTest,
    testing::Values(Family{"Elementwise", ElementwiseCases}, Family{"Activation", ActivationCases},
                    Family{"Reduce", ReduceCases}, Family{"Shape", ShapeCases},
                    Family{"Index", IndexCases}, Family{"MatMul", MatMulCases},
                    Family{"Conv", ConvCases}, Family{"Pool", PoolCases}, Family{"Norm", NormCases},
                    Family{"Attention", AttentionCases}, Family{"Rnn", RnnCases},
                    Family{"Loss", LossCases}, Family{"Image", ImageCases},
                    Family{"Signal", SignalCases}, Family{"Forward", ForwardCases}),
    [](const auto& info) { return std::string(info.param.name); });

class GradientKernelTest : public testing::TestWithParam<Family> {};

TEST_P(GradientKernelTest, AgreesWithTheReference) {
  Checker checker(Checker::Mode::kRun);
  for (const OpCase& c : GetParam().rows()) {
    if (DefaultEnvironment().cpu().kernels().Find(c.op, c.domain) == nullptr) continue;
    for (const DType dtype : kFloats) CheckGradient(c, dtype, checker);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, GradientKernelTest,
    testing::Values(Family{"Elementwise", ElementwiseCases}, Family{"Activation", ActivationCases},
                    Family{"Index", IndexCases}, Family{"MatMul", MatMulCases},
                    Family{"Conv", ConvCases}, Family{"Pool", PoolCases}, Family{"Norm", NormCases},
                    Family{"Attention", AttentionCases}, Family{"Rnn", RnnCases},
                    Family{"Loss", LossCases}, Family{"Image", ImageCases}),
    [](const auto& info) { return std::string(info.param.name); });

// Operator -> why none of its kernels is compared with the reference.
const std::map<std::string, std::string>& NotCompared() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"RandomNormal", "random"},
      {"RandomNormalLike", "random"},
      {"RandomUniform", "random"},
      {"ImageDecoder", "takes files: tests/core/picture and the official cases"},
      {"RandomUniformLike", "random"},
      {"Bernoulli", "random"},
      {"Multinomial", "random"},
  };
  return *reasons;
}

TEST(KernelCoverage, EveryKernelIsReachedByARow) {
  Checker checker(Checker::Mode::kOnlyMake);
  std::vector<OpCase> rows = OpCases();
  for (OpCase& c : ForwardCases()) rows.push_back(std::move(c));
  for (const OpCase& c : rows) {
    if (DefaultEnvironment().cpu().kernels().Find(c.op, c.domain) == nullptr) continue;
    for (const DType dtype : {DType::kFloat, DType::kInt32}) {
      CheckRow(c, dtype, DType::kInt64, checker);
    }
    if (c.domain.empty()) CheckRow(c, DType::kString, DType::kInt64, checker);
  }
  for (auto* family : {RnnCases, ConvCases}) {
    for (const OpCase& c : family()) CheckGradient(c, DType::kFloat, checker);
  }
  for (const auto& [key, entries] : DefaultEnvironment().cpu().kernels().all()) {
    if (entries.front().on_values) continue;  // tests/core/runtime and the official cases
    for (size_t k = 0; k < entries.size(); ++k) {
      EXPECT_NE(checker.reached().contains({key.first, key.second, k}),
                NotCompared().contains(key.second))
          << key.first << " " << key.second << ", kernel '" << entries[k].provider << "'";
    }
  }
}

}  // namespace
}  // namespace onward

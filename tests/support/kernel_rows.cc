// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/support/case_draws.h"
#include "tests/support/reference/evaluate.h"

namespace onward {
namespace {

using reference::Array;
using reference::Arrays;

constexpr DType kFloats[] = {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBFloat16};
constexpr DType kOthers[] = {DType::kInt8,  DType::kInt16,  DType::kInt32,  DType::kInt64,
                             DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64,
                             DType::kBool,  DType::kString};

// How far from the reference: by the size of the number, and by that of the largest one.
struct Tolerance {
  reference::Number own = 0, largest = 0;
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

}  // namespace

std::string Difference(const Tensor& tensor, const Array& expected) {
  if (tensor.dtype() != expected.dtype || tensor.shape() != expected.shape) {
    return absl::StrCat("is ", DTypeName(tensor.dtype()), tensor.shape().ToString(), ", expected ",
                        DTypeName(expected.dtype), expected.shape.ToString());
  }
  const Array actual = reference::FromTensor(tensor);
  const Tolerance tolerance = ToleranceOf(expected.dtype);
  reference::Number largest = 1;
  for (const reference::Number v : expected.values) {
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  }
  for (int64_t i = 0; i < expected.size(); ++i) {
    const reference::Number a = actual.values[i], e = expected.values[i];
    const bool same = std::isnan(e) ? std::isnan(a) : a == e;
    if (same || std::fabs(a - e) <= tolerance.own * std::fabs(e) + tolerance.largest * largest) {
      continue;
    }
    return absl::StrCat("element ", i, " of ", expected.shape.ToString(), " is ",
                        static_cast<double>(a), ", expected ", static_cast<double>(e));
  }
  return "";
}

void CheckRow(const OpCase& c, DType dtype, DType indices, const KernelCheck& check) {
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
  check(*call, expected, what);
  KernelInputs known = *call;
  for (size_t i = 1; i < known.constant.size(); ++i) known.constant[i] = true;
  if (known.constant != call->constant) {
    check(known, expected, absl::StrCat(what, ", weights known"));
  }
  KernelInputs unknown = *call;
  std::fill(unknown.constant.begin(), unknown.constant.end(), false);
  if (unknown.constant == call->constant) return;
  unknown.outputs = SpecsOf(unknown.node, expected, false);
  check(unknown, expected, absl::StrCat(what, ", nothing known"));
}

void CheckRow(const OpCase& c, const KernelCheck& check) {
  for (const DType dtype : kFloats) CheckRow(c, dtype, DType::kInt64, check);
  for (const DType dtype : kOthers) {
    // Functions of Onward and steps of optimizers are for floating numbers alone.
    if (c.domain.empty()) CheckRow(c, dtype, DType::kInt64, check);
  }
  if (TakesNarrowIndices(c)) CheckRow(c, DType::kFloat, DType::kInt32, check);
}

void CheckGradient(const OpCase& c, DType dtype, const KernelCheck& check) {
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
      check(call, expected,
            absl::StrCat(node.op_type, " in the gradient of ", c.name, " in ", DTypeName(dtype)));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) values[node.outputs[i]] = expected[i];
    }
  }
}

void CheckGradient(const OpCase& c, const KernelCheck& check) {
  for (const DType dtype : kFloats) CheckGradient(c, dtype, check);
}

}  // namespace onward

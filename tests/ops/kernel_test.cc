// SPDX-License-Identifier: Apache-2.0
// Every kernel of the table, each by itself, against the reference: in every element type,
// every layout, with inputs known beforehand and not, written over where it may be.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/ops/cases.h"
#include "tests/support/kernel_rows.h"
#include "tests/support/kernel_trial.h"

namespace onward::kernel_test {

using reference::Arrays;

// (domain, operator, which of its kernels)
using KernelKey = std::tuple<std::string, std::string, size_t>;

class Checker {
 public:
  enum class Mode { kRun, kOnlyMake };
  explicit Checker(Mode mode) : mode_(mode) {}

  const std::set<KernelKey>& reached() const { return reached_; }
  KernelCheck AsCheck() {
    return [this](const KernelInputs& call, const Arrays& expected, const std::string& what) {
      Check(call, expected, what);
    };
  }

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
    CheckRow(c, checker.AsCheck());
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
                    Family{"Signal", SignalCases}, Family{"Forward", ForwardCases},
                    Family{"Large", LargeCases}),
    [](const auto& info) { return std::string(info.param.name); });

class GradientKernelTest : public testing::TestWithParam<Family> {};

TEST_P(GradientKernelTest, AgreesWithTheReference) {
  Checker checker(Checker::Mode::kRun);
  for (const OpCase& c : GetParam().rows()) {
    if (DefaultEnvironment().cpu().kernels().Find(c.op, c.domain) == nullptr) continue;
    CheckGradient(c, checker.AsCheck());
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
      CheckRow(c, dtype, DType::kInt64, checker.AsCheck());
    }
    if (c.domain.empty()) CheckRow(c, DType::kString, DType::kInt64, checker.AsCheck());
  }
  for (auto* family : {RnnCases, ConvCases}) {
    for (const OpCase& c : family()) CheckGradient(c, DType::kFloat, checker.AsCheck());
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

}  // namespace onward::kernel_test

// SPDX-License-Identifier: Apache-2.0
// Every kernel of the CUDA device on the rows of the operator tables against the reference, as
// tests/ops does with those of the CPU. The kernels run in the emulator of tests/cuda_emu.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/graph/operator_set.h"
#include "tests/cuda/emulated.h"
#include "tests/ops/cases.h"
#include "tests/support/device_trial.h"
#include "tests/support/kernel_rows.h"

namespace onward {
namespace {

using reference::Arrays;

bool HasShapes(const KernelInputs& call) {
  for (const ValueSpec& output : call.outputs) {
    if (output.present() && !output.shape.has_value()) return false;
  }
  return true;
}

bool HasStrings(const KernelInputs& call) {
  for (const Tensor& t : call.values) {
    if (t.defined() && t.dtype() == DType::kString) return true;
  }
  for (const ValueSpec& output : call.outputs) {
    if (output.dtype == DType::kString) return true;
  }
  return false;
}

class Checker {
 public:
  void Check(const KernelInputs& call, const Arrays& expected, const std::string& what) {
    // What the runtime never asks a device for.
    if (!HasShapes(call) || HasStrings(call)) return;
    const auto* entries = Emulated().kernels().Find(call.node.op_type, call.node.domain);
    for (size_t k = 0; entries != nullptr && k < entries->size(); ++k) {
      DeviceTrial trial(Emulated(), EmulatedStream(), (*entries)[k], call);
      if (absl::IsUnimplemented(trial.status())) continue;
      if (!trial.status().ok()) {
        ADD_FAILURE() << what << ": " << trial.status();
        continue;
      }
      CheckRun(trial.Run(), expected, what);
      for (const auto& [output, input] : trial.overwrites()) {
        CheckRun(trial.Run(output, input), expected,
                 absl::StrCat(what, ", output ", output, " over input ", input));
      }
      ++calls_;
    }
  }
  int calls() const { return calls_; }
  KernelCheck AsCheck() {
    return [this](const KernelInputs& call, const Arrays& expected, const std::string& what) {
      Check(call, expected, what);
    };
  }

 private:
  static void CheckRun(const absl::StatusOr<std::vector<Tensor>>& results, const Arrays& expected,
                       const std::string& where) {
    if (!results.ok()) {
      ADD_FAILURE() << where << ": " << results.status();
      return;
    }
    for (size_t i = 0; i < results->size(); ++i) {
      if (!(*results)[i].defined()) continue;
      EXPECT_EQ(Difference((*results)[i], expected[i]), "") << where << ", output " << i;
    }
  }

  int calls_ = 0;
};

struct Family {
  const char* name;
  std::vector<OpCase> (*rows)();
};

void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

const Family kFamilies[] = {
    {"Elementwise", ElementwiseCases},
    {"Activation", ActivationCases},
    {"Reduce", ReduceCases},
    {"Shape", ShapeCases},
    {"Index", IndexCases},
    {"MatMul", MatMulCases},
    {"Conv", ConvCases},
    {"Pool", PoolCases},
    {"Norm", NormCases},
    {"Attention", AttentionCases},
    {"Rnn", RnnCases},
    {"Loss", LossCases},
    {"Image", ImageCases},
    {"Forward", ForwardCases},
    {"Large", LargeCases},
};

class CudaKernelTest : public testing::TestWithParam<Family> {};

TEST_P(CudaKernelTest, AgreesWithTheReference) {
  Checker checker;
  for (const OpCase& c : GetParam().rows()) {
    if (Emulated().kernels().Find(c.op, c.domain) == nullptr) continue;
    CheckRow(c, checker.AsCheck());
  }
  RecordProperty("calls", checker.calls());
  std::cout << GetParam().name << ": " << checker.calls() << " calls\n";
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaKernelTest, testing::ValuesIn(kFamilies),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CudaKernels, OfLargeFunctionsAgreeWithTheReference) {
  Checker checker;
  for (const OpCase& c : LargeFunctionCases()) {
    CheckRow(c, DType::kFloat, DType::kInt64, checker.AsCheck());
  }
  EXPECT_GT(checker.calls(), 0);
}

class CudaGradientKernelTest : public testing::TestWithParam<Family> {};

TEST_P(CudaGradientKernelTest, AgreesWithTheReference) {
  Checker checker;
  for (const OpCase& c : GetParam().rows()) {
    // In two types: the kernels are those of the rows above.
    for (const DType dtype : {DType::kFloat, DType::kFloat16}) {
      CheckGradient(c, dtype, checker.AsCheck());
    }
  }
  std::cout << GetParam().name << ": " << checker.calls() << " calls\n";
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaGradientKernelTest,
                         testing::Values(Family{"Elementwise", ElementwiseCases},
                                         Family{"Activation", ActivationCases},
                                         Family{"Index", IndexCases}, Family{"MatMul", MatMulCases},
                                         Family{"Conv", ConvCases}, Family{"Pool", PoolCases},
                                         Family{"Norm", NormCases},
                                         Family{"Attention", AttentionCases},
                                         Family{"Rnn", RnnCases}, Family{"Loss", LossCases}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CudaKernels, AreListed) {
  std::vector<std::string> names;
  for (const auto& [key, entries] : Emulated().kernels().all()) {
    names.push_back(key.first.empty() ? key.second : absl::StrCat(key.first, ".", key.second));
  }
  std::cout << names.size() << " operators have CUDA kernels: " << absl::StrJoin(names, ", ")
            << "\n";
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace onward

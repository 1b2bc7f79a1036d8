// SPDX-License-Identifier: Apache-2.0
// Every kernel of the CUDA device on the rows of the operator tables against the reference, as
// tests/ops does with those of the CPU. The kernels run in the emulator of tests/cuda_emu.
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "environment/environment.h"
#include "tests/cuda/device_checker.h"
#include "tests/ops/cases.h"

namespace onward::kernel_test {

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
  DeviceChecker checker;
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
  DeviceChecker checker;
  for (const OpCase& c : LargeFunctionCases()) {
    CheckRow(c, DType::kFloat, DType::kInt64, checker.AsCheck());
  }
  EXPECT_GT(checker.calls(), 0);
}

class CudaGradientKernelTest : public testing::TestWithParam<Family> {};

TEST_P(CudaGradientKernelTest, AgreesWithTheReference) {
  DeviceChecker checker;
  for (const OpCase& c : GetParam().rows()) {
    // Gradients of what has a body alone have no reference.
    if (DefaultEnvironment().cpu().kernels().Find(c.op, c.domain) == nullptr) continue;
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
  EXPECT_GE(names.size(), 130u);
}

}  // namespace onward::kernel_test

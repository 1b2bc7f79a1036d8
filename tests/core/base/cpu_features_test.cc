// SPDX-License-Identifier: Apache-2.0
// What happens on a CPU that cannot run the kernels.
#include "core/base/cpu_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/cpu/cpu_device.h"
#include "core/runtime/compile/compile.h"
#include "environment/environment.h"

namespace onward::cpu_features_test {

using testing::HasSubstr;

TEST(CpuFeatures, TheMessageNamesWhatIsMissing) {
  EXPECT_TRUE(CheckCpu({.avx2 = true, .fma = true}).ok());
  EXPECT_THAT(CheckCpu({}).message(), HasSubstr("no AVX2 and FMA"));
  EXPECT_THAT(CheckCpu({.avx2 = true}).message(), HasSubstr("no FMA"));
  EXPECT_THAT(CheckCpu({.fma = true}).message(), HasSubstr("no AVX2,"));
}

TEST(CpuFeatures, WithoutThemNoKernelIsEverChosen) {
  const std::unique_ptr<const Device> device = MakeCpuDevice(CpuFeatures{}, {});
  EXPECT_FALSE(device->Usable().ok());
  EXPECT_TRUE(device->kernels().all().empty());
  CompileOptions options;
  options.device = device.get();
  options.operators = &DefaultEnvironment().operators();
  const auto plan = Compile(Graph(), options);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(plan.status().message(), HasSubstr("AVX2"));
}

TEST(CpuFeatures, WithThemThereAreKernels) {
  const std::unique_ptr<const Device> device = MakeCpuDevice(ThisCpu(), {});
  EXPECT_TRUE(device->Usable().ok());
  EXPECT_FALSE(device->kernels().all().empty());
}

}  // namespace onward::cpu_features_test

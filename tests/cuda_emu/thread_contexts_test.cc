// SPDX-License-Identifier: Apache-2.0
// What the thread sanitizer says of right and wrong kernels, where it is linked
// (./build.sh sanitize-cuda thread).
#include "tests/cuda_emu/thread_contexts.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/cuda_emu/device_array.h"
#include "tests/cuda_emu/faulty_kernels.h"
#include "tests/cuda_emu/kernels.h"

namespace onward::cuda {
namespace {

constexpr int kThreads = 128;

class ThreadSanitizerTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    if (!cuda_emu::ThreadContexts::Active()) GTEST_SKIP() << "the thread sanitizer is not linked";
    std::iota(ramp_.begin(), ramp_.end(), 1.0f);
  }
  // Waits for what was launched.
  static void Run(cudaError_t launched) {
    ASSERT_EQ(launched, cudaSuccess);
    cudaDeviceSynchronize();
  }

  std::vector<float> ramp_ = std::vector<float>(kThreads);
};

TEST_F(ThreadSanitizerTest, RightKernelsAreQuiet) {
  DeviceArray<float> x(ramp_), out(2 * kThreads), sum(std::vector<float>{0});
  for (const int seed : {0, 1}) {
    OnwardEmuSeed(seed);
    Run(TreeSum(2, kThreads, x.get(), out.get(), nullptr));
    Run(WarpSum(2, kThreads, x.get(), out.get(), nullptr));
    Run(AtomicSum(kThreads, x.get(), sum.get(), nullptr));
    Run(Reverse(kThreads, x.get(), out.get(), nullptr));
  }
}

TEST_F(ThreadSanitizerTest, MissingBarriersAreRaces) {
  DeviceArray<float> x(ramp_), out(kThreads);
  DeviceArray<int> sum(std::vector<int>{0}), sums(kThreads);
  for (const int seed : {0, 1}) {
    OnwardEmuSeed(seed);
    EXPECT_DEATH(Run(SumWithoutFirstBarrier(x.get(), out.get(), nullptr)), "data race");
    EXPECT_DEATH(Run(SumWithoutLoopBarrier(x.get(), out.get(), nullptr)), "data race");
    EXPECT_DEATH(Run(RotateWithoutLastBarrier(x.get(), out.get(), 3, nullptr)), "data race");
    EXPECT_DEATH(Run(SwapWithoutSyncwarp(x.get(), out.get(), nullptr)), "data race");
    EXPECT_DEATH(Run(ReadSumTooEarly(sum.get(), sums.get(), nullptr)), "data race");
  }
}

}  // namespace
}  // namespace onward::cuda

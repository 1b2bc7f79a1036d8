// SPDX-License-Identifier: Apache-2.0
// With every access checked, faults are found in the plain schedule, where results would be right.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/cuda_emu/device_array.h"
#include "tests/cuda_emu/faulty_kernels.h"

namespace onward::cuda {
namespace {

class AccessCheckTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    OnwardEmuStrict(2);
    if (!AccessesAreChecked()) GTEST_SKIP() << "the address sanitizer takes the place";
  }
  // Waits for what was launched.
  static void Run(cudaError_t launched) {
    ASSERT_EQ(launched, cudaSuccess);
    cudaDeviceSynchronize();
  }
};

constexpr int kThreads = 128;

TEST_F(AccessCheckTest, MissingBarriersAreRaces) {
  std::vector<float> ramp(kThreads);
  std::iota(ramp.begin(), ramp.end(), 0.0f);
  DeviceArray<float> x(ramp), out(kThreads);
  for (const int seed : {0, 1}) {
    OnwardEmuSeed(seed);
    EXPECT_DEATH(Run(SumWithoutFirstBarrier(x.get(), out.get(), nullptr)),
                 "race: .*TreeKernel<false, true>.* by thread [0-9]* of the same block");
    EXPECT_DEATH(Run(SumWithoutLoopBarrier(x.get(), out.get(), nullptr)),
                 "race: .*TreeKernel<true, false>");
    EXPECT_DEATH(Run(RotateWithoutLastBarrier(x.get(), out.get(), 3, nullptr)),
                 "race: .*RotateKernel");
    EXPECT_DEATH(Run(SwapWithoutSyncwarp(x.get(), out.get(), nullptr)), "race: .*SwapKernel");
  }
}

TEST_F(AccessCheckTest, BlocksThatWriteToOnePlaceRace) {
  DeviceArray<float> x(1);
  Run(WriteFromAllBlocks(x.get(), 1, nullptr));
  EXPECT_DEATH(Run(WriteFromAllBlocks(x.get(), 2, nullptr)),
               "race: a write in .*AllBlocksKernel.* a write by thread 0 of another block");
}

TEST_F(AccessCheckTest, PlainReadsRaceWithAtomics) {
  DeviceArray<int> sum(std::vector<int>{0}), out(kThreads);
  EXPECT_DEATH(Run(ReadSumTooEarly(sum.get(), out.get(), nullptr)), "race: .*EarlyKernel");
}

TEST_F(AccessCheckTest, BoundsAreExact) {
  DeviceArray<float> x(10), out(kThreads);
  Run(WriteAt(x.get(), 9, nullptr));
  EXPECT_DEATH(Run(WriteAt(x.get(), 10, nullptr)),
               "illegal write of 4 bytes .*outside of every allocation.*WriteAtKernel");
  EXPECT_DEATH(Run(WriteAt(x.get(), -1, nullptr)), "illegal write of 4 bytes");
  EXPECT_DEATH(Run(OverrunShared(out.get(), 63, nullptr)),
               "illegal write of 4 bytes .*outside of the shared memory.*OverrunKernel");
}

TEST_F(AccessCheckTest, TellsWhichKernelsItHasSeen) {
  const auto seen = [] {
    std::string names;
    for (int i = 0; i < OnwardEmuCheckedKernels(); ++i) names += OnwardEmuCheckedKernel(i);
    return names;
  };
  DeviceArray<float> x(10);
  OnwardEmuStrict(0);
  Run(FillBlindly(x.get(), 10, nullptr));
  EXPECT_EQ(seen().find("FillBlindlyKernel"), std::string::npos);
  OnwardEmuStrict(2);
  Run(FillBlindly(x.get(), 10, nullptr));
  EXPECT_NE(seen().find("FillBlindlyKernel"), std::string::npos);
}

TEST_F(AccessCheckTest, HostMemoryBehindAPointerIsFound) {
  const float host = 1;
  DeviceArray<float> value(std::vector<float>{1}), out(1);
  DeviceArray<const float*> good(std::vector<const float*>{value.get()});
  DeviceArray<const float*> bad(std::vector<const float*>{&host});
  Run(ReadThrough(good.get(), out.get(), nullptr));
  EXPECT_EQ(out.Values()[0], 1);
  EXPECT_DEATH(Run(ReadThrough(bad.get(), out.get(), nullptr)),
               "illegal read of 4 bytes .*host memory.*ReadThroughKernel");
}

}  // namespace
}  // namespace onward::cuda

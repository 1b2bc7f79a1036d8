// SPDX-License-Identifier: Apache-2.0
// Each fault of a kernel is caught, with a message that names it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "tests/cuda_emu/device_array.h"
#include "tests/cuda_emu/faulty_kernels.h"
#include "tests/cuda_emu/kernels.h"

namespace onward::cuda {
namespace {

using KernelFaultsTest = EmulatorTest;
constexpr int kSeeds = 5;
constexpr int kThreads = 128;

std::vector<float> Ramp(int n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST_F(KernelFaultsTest, HostPointer) {
  DeviceArray<float> x(4);
  std::vector<float> host(4);
  EXPECT_DEATH(FillBlindly(host.data(), 4, nullptr), "argument 0 of .*FillBlindly.* host pointer");
  EXPECT_DEATH(Add(4, x.get(), host.data(), x.get(), nullptr), "argument 2 of .*AddKernel<float>");
}

TEST_F(KernelFaultsTest, PinnedPointer) {
  float* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 16), cudaSuccess);
  EXPECT_DEATH(FillBlindly(pinned, 4, nullptr), "host pointer");
  cudaFreeHost(pinned);
}

TEST_F(KernelFaultsTest, HostPointerInAStruct) {
  std::vector<float> host(4);
  EXPECT_DEATH(FillHidden({4, host.data()}, nullptr), "argument 0 of .*FillHidden.* host pointer");
}

TEST_F(KernelFaultsTest, MisalignedPointer) {
  DeviceArray<float> x(4);
  float* const odd = reinterpret_cast<float*>(reinterpret_cast<char*>(x.get()) + 2);
  EXPECT_DEATH(FillBlindly(odd, 1, nullptr), "argument 0 of .*FillBlindly.* aligned to 4 bytes");
  if (!AccessesAreChecked()) return;
  // What is in a struct is seen when it is used.
  OnwardEmuStrict(2);
  EXPECT_DEATH(
      {
        FillHidden({1, odd}, nullptr);
        cudaDeviceSynchronize();
      },
      "illegal write of 4 bytes at .*misaligned.* in .*FillHidden");
}

TEST_F(KernelFaultsTest, PointerOfFreedMemory) {
  float* data = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), 64), cudaSuccess);
  ASSERT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_DEATH(FillBlindly(data, 4, nullptr), "not allocated any more");
  EXPECT_DEATH(FillHidden({4, data}, nullptr), "not allocated any more");
}

TEST_F(KernelFaultsTest, WritePastTheEndIsFoundAtFree) {
  EXPECT_DEATH(
      {
        DeviceArray<float> x(10);
        FillBlindly(x.get(), 11, nullptr);
      },
      "write past the end of an allocation of 40 bytes on device 0, at byte 40, .*freed");
}

TEST_F(KernelFaultsTest, WriteOutsideIsFoundAfterTheKernelInStrictMode) {
  DeviceArray<float> x(10);
  OnwardEmuStrict(1);
  EXPECT_DEATH(
      {
        FillBlindly(x.get(), 11, nullptr);
        cudaDeviceSynchronize();
      },
      "past the end of .*after .*FillBlindlyKernel");
  EXPECT_DEATH(
      {
        WriteAt(x.get(), -1, nullptr);
        cudaDeviceSynchronize();
      },
      "before an allocation .*at byte -4, .*WriteAtKernel");
}

TEST_F(KernelFaultsTest, WildWrite) {
  DeviceArray<float> x(10);
  EXPECT_DEATH(
      {
        WriteAt(x.get(), 1 << 30, nullptr);
        cudaDeviceSynchronize();
      },
      "illegal access .*WriteAtKernel.*block \\(0, 0, 0\\), thread \\(0, 0, 0\\)");
}

TEST_F(KernelFaultsTest, OverrunOfDynamicSharedMemory) {
  DeviceArray<float> x(kThreads);
  EXPECT_DEATH(
      {
        OverrunShared(x.get(), 64, nullptr);
        cudaDeviceSynchronize();
      },
      "illegal access .*OverrunKernel");
}

// A kernel with a missing barrier passes where nobody shuffles; some seed has to show it.
template <class Run>
int WrongSeeds(Run run) {
  int wrong = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    OnwardEmuSeed(seed);
    wrong += run() ? 0 : 1;
  }
  return wrong;
}

TEST_F(KernelFaultsTest, MissingBarrierInTree) {
  const std::vector<float> x = Ramp(kThreads);
  DeviceArray<float> dx(x), sum(1);
  const float expected = std::accumulate(x.begin(), x.end(), 0.0f);
  const auto right = [&](auto kernel) {
    return [&, kernel] {
      EXPECT_EQ(kernel(dx.get(), sum.get(), nullptr), cudaSuccess);
      return sum.Values()[0] == expected;
    };
  };
  EXPECT_EQ(WrongSeeds(right(SumWithoutFirstBarrier)), kSeeds);
  EXPECT_EQ(WrongSeeds(right(SumWithoutLoopBarrier)), kSeeds);
}

TEST_F(KernelFaultsTest, MissingBarrierBeforeTheNextRound) {
  DeviceArray<float> x(Ramp(kThreads)), out(kThreads);
  const auto right = [&] {
    EXPECT_EQ(RotateWithoutLastBarrier(x.get(), out.get(), 3, nullptr), cudaSuccess);
    const std::vector<float> values = out.Values();
    for (int i = 0; i < kThreads; ++i) {
      if (values[i] != (i + 3) % kThreads + 1) return false;
    }
    return true;
  };
  EXPECT_EQ(WrongSeeds(right), kSeeds);
}

TEST_F(KernelFaultsTest, MissingSyncwarp) {
  DeviceArray<float> x(Ramp(32)), out(32);
  const auto right = [&] {
    EXPECT_EQ(SwapWithoutSyncwarp(x.get(), out.get(), nullptr), cudaSuccess);
    const std::vector<float> values = out.Values();
    for (int i = 0; i < 32; ++i) {
      if (values[i] != (i ^ 1) + 1) return false;
    }
    return true;
  };
  EXPECT_EQ(WrongSeeds(right), kSeeds);
}

// What a test of every kernel does: take each barrier away and see the result change.
TEST_F(KernelFaultsTest, BarriersCanBeTakenAway) {
  const std::vector<float> x = Ramp(kThreads);
  DeviceArray<float> dx(x), partial(1);
  const float expected = std::accumulate(x.begin(), x.end(), 0.0f);
  const auto right = [&] {
    EXPECT_EQ(TreeSum(1, kThreads, dx.get(), partial.get(), nullptr), cudaSuccess);
    return partial.Values()[0] == expected;
  };
  EXPECT_EQ(WrongSeeds(right), 0);
  int found = 0;
  for (int site = 0; site < OnwardEmuBarrierSites(); ++site) {
    const std::string file = OnwardEmuBarrierFile(site);
    if (!file.ends_with("kernels.cu") || file.ends_with("faulty_kernels.cu") ||
        OnwardEmuBarrierLine(site) > 50) {
      continue;
    }
    ++found;
    const int64_t before = OnwardEmuBarrierReached(site);
    right();
    EXPECT_GT(OnwardEmuBarrierReached(site), before) << file << ":" << OnwardEmuBarrierLine(site);
    OnwardEmuSkipBarrier(site);
    EXPECT_EQ(WrongSeeds(right), kSeeds) << file << ":" << OnwardEmuBarrierLine(site);
    if (!AccessesAreChecked()) continue;
    OnwardEmuSeed(0);
    OnwardEmuStrict(2);
    right();
    OnwardEmuStrict(0);
    EXPECT_GT(Counters().races, 0) << file << ":" << OnwardEmuBarrierLine(site);
    OnwardEmuClearCounters();
  }
  EXPECT_EQ(found, 2);
  OnwardEmuSkipBarrier(-1);
  EXPECT_EQ(WrongSeeds(right), 0);
}

TEST_F(KernelFaultsTest, DivergentBarriers) {
  DeviceArray<float> x(kThreads);
  const auto run = [&](auto kernel) {
    kernel(x.get(), nullptr);
    cudaDeviceSynchronize();
  };
  for (const int seed : {0, 1, 2}) {
    OnwardEmuSeed(seed);
    EXPECT_DEATH(run(BarrierInHalfTheThreads), "divergent barrier in .*HalfBarrierKernel");
    EXPECT_DEATH(run(BarrierAfterReturn), "divergent barrier in .*ReturnBeforeBarrierKernel");
    EXPECT_DEATH(run(BarriersOfDifferentLines),
                 "divergent barrier in .*TwoBarriersKernel.* while "
                 "others wait at .*faulty_kernels.cu:");
    EXPECT_DEATH(run(ShuffleInHalfTheWarp), "HalfShuffleKernel");
    EXPECT_DEATH(run(ShuffleOutsideItsMask), "MaskKernel.* does not name the calling lane");
  }
}

TEST_F(KernelFaultsTest, UninitialisedMemoryIsNan) {
  DeviceArray<float> x(4), out(4);
  ASSERT_EQ(Add(4, x.get(), x.get(), out.get(), nullptr), cudaSuccess);
  for (const float value : out.Values()) EXPECT_TRUE(std::isnan(value));
}

TEST_F(KernelFaultsTest, SharedMemoryOfABlockIsNotTheNextOnes) {
  DeviceArray<float> out(6);
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(ReadUnwrittenShared(out.get(), 6, nullptr), cudaSuccess);
    for (const float value : out.Values()) EXPECT_TRUE(std::isnan(value)) << value;
  }
}

TEST_F(KernelFaultsTest, Limits) {
  struct Case {
    dim3 grid, block;
    cudaError_t error;
  };
  const Case cases[] = {
      {1, 1024, cudaSuccess},
      {1, 1025, cudaErrorInvalidConfiguration},
      {1, dim3(32, 32, 2), cudaErrorInvalidConfiguration},
      {1, dim3(1, 1, 64), cudaSuccess},
      {1, dim3(1, 1, 65), cudaErrorInvalidConfiguration},
      {0, 32, cudaErrorInvalidConfiguration},
      {1, 0, cudaErrorInvalidConfiguration},
      {70000, 1, cudaSuccess},
      {dim3(1, 65536), 1, cudaErrorInvalidConfiguration},
      {dim3(1, 1, 65536), 1, cudaErrorInvalidConfiguration},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Nothing(c.grid, c.block, 0, nullptr), c.error) << c.grid.x << " " << c.block.x;
    EXPECT_EQ(cudaGetLastError(), c.error);
  }
  EXPECT_EQ(Counters().widest_block, 1024);
  EXPECT_EQ(Nothing(1, 1, 48 << 10, nullptr), cudaSuccess);
  EXPECT_EQ(Nothing(1, 1, (48 << 10) + 1, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

}  // namespace
}  // namespace onward::cuda

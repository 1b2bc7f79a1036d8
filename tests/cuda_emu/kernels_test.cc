// SPDX-License-Identifier: Apache-2.0
// Right kernels give right results, in the plain schedule and in shuffled ones.
#include "tests/cuda_emu/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "tests/cuda_emu/device_array.h"

namespace onward::cuda {
namespace {

class KernelsTest : public EmulatorTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    OnwardEmuSeed(GetParam());
    OnwardEmuStrict(2);
  }
};

template <class T>
std::vector<T> Ramp(size_t n) {
  std::vector<T> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<T>(static_cast<float>(i % 13) - 3);
  return values;
}

template <class T>
void ExpectAdds(size_t n) {
  const std::vector<T> a = Ramp<T>(n);
  DeviceArray<T> da(a), db(a), out(n);
  ASSERT_EQ(Add(n, da.get(), db.get(), out.get(), nullptr), cudaSuccess);
  const std::vector<T> result = out.Values();
  for (size_t i = 0; i < n; ++i) {
    EXPECT_EQ(static_cast<float>(result[i]), 2 * static_cast<float>(a[i])) << i;
  }
}

TEST_P(KernelsTest, AddElements) {
  ExpectAdds<float>(1000);
  ExpectAdds<__half>(1000);
  ExpectAdds<__nv_bfloat16>(1000);
}

TEST_P(KernelsTest, SumByTree) {
  const std::vector<float> x = Ramp<float>(5000);
  DeviceArray<float> dx(x), partial(3);
  ASSERT_EQ(TreeSum(3, x.size(), dx.get(), partial.get(), nullptr), cudaSuccess);
  const std::vector<float> sums = partial.Values();
  EXPECT_EQ(sums[0] + sums[1] + sums[2], std::accumulate(x.begin(), x.end(), 0.0f));
}

template <class T>
void ExpectWarpSums() {
  const std::vector<T> x = Ramp<T>(5000);
  DeviceArray<T> dx(x), partial(3);
  ASSERT_EQ(WarpSum(3, x.size(), dx.get(), partial.get(), nullptr), cudaSuccess);
  const std::vector<T> sums = partial.Values();
  EXPECT_EQ(sums[0] + sums[1] + sums[2], std::accumulate(x.begin(), x.end(), T(0)));
}

TEST_P(KernelsTest, SumByShuffles) {
  ExpectWarpSums<float>();
  ExpectWarpSums<double>();
}

template <class T>
void ExpectAtomicSum() {
  const std::vector<T> x = Ramp<T>(3000);
  DeviceArray<T> dx(x), sum(1);
  ASSERT_EQ(cudaMemset(sum.get(), 0, sizeof(T)), cudaSuccess);
  ASSERT_EQ(AtomicSum(x.size(), dx.get(), sum.get(), nullptr), cudaSuccess);
  EXPECT_EQ(sum.Values()[0], std::accumulate(x.begin(), x.end(), T(0)));
}

TEST_P(KernelsTest, SumByAtomics) {
  ExpectAtomicSum<float>();
  ExpectAtomicSum<double>();
  ExpectAtomicSum<int>();
}

TEST_P(KernelsTest, VoteInWarpAndBlock) {
  const std::vector<int> x = Ramp<int>(40);
  DeviceArray<int> dx(x);
  DeviceArray<Votes> votes(std::vector<Votes>{{-100, 100, 0, 0, 0, 0, 0}});
  ASSERT_EQ(CollectVotes(40, dx.get(), votes.get(), nullptr), cudaSuccess);
  const Votes result = votes.Values()[0];
  unsigned positive = 0;
  int count = 0;
  for (int i = 0; i < 40; ++i) {
    count += x[i] > 0;
    if (i < 32 && x[i] > 0) positive |= 1u << i;
  }
  EXPECT_EQ(result.max, 9);
  EXPECT_EQ(result.min, -3);
  EXPECT_EQ(result.swapped, std::accumulate(x.begin(), x.end(), 0));
  EXPECT_EQ(result.positive, positive);
  EXPECT_EQ(result.any_negative, 1);
  EXPECT_EQ(result.all_positive, 0);
  EXPECT_EQ(result.count_positive, count);
}

TEST_P(KernelsTest, ShuffleInGroups) {
  std::vector<int> x(64);
  std::iota(x.begin(), x.end(), 100);
  DeviceArray<int> dx(x), out(x.size() * 4);
  for (const int width : {8, 32}) {
    ASSERT_EQ(Shuffles(64, width, dx.get(), out.get(), nullptr), cudaSuccess);
    const std::vector<int> result = out.Values();
    for (int i = 0; i < 64; ++i) {
      const int first = i / width * width, last = first + width - 1;
      EXPECT_EQ(result[i * 4 + 0], x[i == first ? i : i - 1]) << i;
      EXPECT_EQ(result[i * 4 + 1], x[i == last ? i : i + 1]) << i;
      EXPECT_EQ(result[i * 4 + 2], x[i ^ 1]) << i;
      EXPECT_EQ(result[i * 4 + 3], x[first + 3]) << i;
    }
  }
}

TEST_P(KernelsTest, TransposeByTiles) {
  constexpr int kRows = 37, kColumns = 50;
  const std::vector<float> x = Ramp<float>(kRows * kColumns);
  DeviceArray<float> dx(x), out(x.size());
  ASSERT_EQ(Transpose(kRows, kColumns, dx.get(), out.get(), nullptr), cudaSuccess);
  const std::vector<float> result = out.Values();
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      EXPECT_EQ(result[column * kRows + row], x[row * kColumns + column]);
    }
  }
}

TEST_P(KernelsTest, UseMoreSharedMemoryOnlyWhereAllowed) {
  constexpr int kMuch = 20000;  // 80 KB
  const std::vector<float> x = Ramp<float>(kMuch);
  DeviceArray<float> dx(x), out(x.size());
  AllowReverse(48 << 8);
  EXPECT_EQ(Reverse(kMuch, dx.get(), out.get(), nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(AllowReverse(100 << 10), cudaErrorInvalidValue);
  ASSERT_EQ(AllowReverse(kMuch), cudaSuccess);
  ASSERT_EQ(Reverse(kMuch, dx.get(), out.get(), nullptr), cudaSuccess);
  EXPECT_EQ(out.Values(), std::vector<float>(x.rbegin(), x.rend()));
}

TEST_P(KernelsTest, TakePointersInAStruct) {
  DeviceArray<float> a(std::vector<float>(200, 1)), b(std::vector<float>(200, 2));
  Pointers pointers;
  pointers.data[0] = a.get();
  pointers.data[2] = b.get();
  ASSERT_EQ(AddToAll(pointers, 200, 5, nullptr), cudaSuccess);
  EXPECT_EQ(a.Values(), std::vector<float>(200, 6));
  EXPECT_EQ(b.Values(), std::vector<float>(200, 7));
}

// Side by side they would be addresses: of the notes that sanitizers keep, where one is at work.
TEST_P(KernelsTest, TakeSizesInAStruct) {
  DeviceArray<int> sum(1);
  for (const int high : {1, 255, 256, 4095, 4096, 4097, 8191, 12288, 13311, 20000, 21759, 25088}) {
    ASSERT_EQ(SumSizes({{1, high, 3, high}}, sum.get(), nullptr), cudaSuccess);
    EXPECT_EQ(sum.Values()[0], 4 + 2 * high);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, KernelsTest, testing::Values(0, 1, 2, 3, 4, 5));

}  // namespace
}  // namespace onward::cuda

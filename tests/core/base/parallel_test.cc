// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace onward::parallel_test {

class Parallel : public testing::TestWithParam<Walk> {};

TEST_P(Parallel, EveryItemRunsOnceInASlotOfItsOwn) {
  for (int64_t n : {0, 1, 2, 3, 7, 100}) {
    for (int64_t slots : {1, 2, 3, 5}) {
      std::vector<std::atomic<int>> runs(n), busy(slots);
      ParallelItems(
          n, slots,
          [&](int64_t i, int64_t slot) {
            EXPECT_EQ(busy[slot]++, 0);
            ++runs[i];
            busy[slot]--;
          },
          GetParam());
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST_P(Parallel, ASlowThreadIsHelped) {
  std::vector<int64_t> slots(64, -1);
  ParallelItems(
      64, 2,
      [&](int64_t i, int64_t slot) {
        slots[i] = slot;
        if (slot == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      },
      GetParam());
  int of_the_slow_one = 0;
  for (int64_t i = 32; i < 64; ++i) of_the_slow_one += slots[i] == 1 ? 1 : 0;
  EXPECT_LT(of_the_slow_one, 32);
}

// Ranges decide how sums are cut, so they must not depend on who is quick.
TEST_P(Parallel, RangesCoverAllAndRepeat) {
  for (const auto& [n, grain] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {2, 1}, {7, 3}, {1000, 1}, {1000, 400}, {1000, 5000}, {3, 0}}) {
    std::vector<std::pair<int64_t, int64_t>> first;
    for (int round = 0; round < 3; ++round) {
      std::mutex mutex;
      std::vector<std::pair<int64_t, int64_t>> ranges;
      ParallelFor(
          n, grain,
          [&](int64_t begin, int64_t end) {
            const std::lock_guard lock(mutex);
            ranges.emplace_back(begin, end);
          },
          GetParam());
      std::sort(ranges.begin(), ranges.end());
      int64_t covered = 0;
      for (const auto& [begin, end] : ranges) {
        EXPECT_EQ(begin, covered);
        EXPECT_GT(end, begin);
        covered = end;
      }
      EXPECT_EQ(covered, n);
      if (round == 0) first = ranges;
      EXPECT_EQ(ranges, first);
    }
  }
}

TEST_P(Parallel, InsideAnotherLoopEverythingStaysOnTheThread) {
  std::atomic<int> runs = 0;
  ParallelItems(4, 2, [&](int64_t, int64_t) {
    ParallelItems(
        10, 2,
        [&](int64_t, int64_t slot) {
          EXPECT_EQ(slot, 0);
          ++runs;
        },
        GetParam());
  });
  EXPECT_EQ(runs, 40);
}

INSTANTIATE_TEST_SUITE_P(Walks, Parallel, testing::Values(Walk::kForwards, Walk::kBackwards),
                         [](const auto& info) {
                           return info.param == Walk::kForwards ? "Forwards" : "Backwards";
                         });

TEST(ParallelWalk, OneThreadGoesInOrder) {
  std::vector<int64_t> order;
  const auto note = [&](int64_t i, int64_t) { order.push_back(i); };
  ParallelItems(3, 1, note);
  ParallelItems(3, 1, note, Walk::kBackwards);
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 2, 1, 0));
}

}  // namespace onward::parallel_test

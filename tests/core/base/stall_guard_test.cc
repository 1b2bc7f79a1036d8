// SPDX-License-Identifier: Apache-2.0
#include "core/base/stall_guard.h"

#include <gtest/gtest.h>

namespace onward {
namespace {

constexpr int64_t kMicrosecond = 1'000, kMillisecond = 1'000'000;

// Loops of `own` nanoseconds with so much waiting at their end, for `total` of clock time:
// how much of it the guard lets pass with one thread.
int64_t AloneTime(StallGuard* guard, int64_t own, int64_t waited, int64_t total, int64_t now = 1) {
  int64_t alone = 0;
  for (const int64_t end = now + total; now < end;) {
    if (guard->Alone(now)) {
      alone += 2 * own;
      now += 2 * own;
    } else {
      guard->Record(now, now + own, now + own + waited);
      now += own + waited;
    }
  }
  return alone;
}

TEST(StallGuard, WaitsThatBelongToTheWork) {
  for (const int64_t own : {5 * kMicrosecond, 100 * kMicrosecond, 2 * kMillisecond}) {
    for (const int64_t waited : {int64_t{0}, own / 2, own, 2 * own}) {
      StallGuard guard;
      EXPECT_EQ(AloneTime(&guard, own, waited, 1000 * kMillisecond), 0) << own << " " << waited;
    }
  }
  // Waking a thread takes longer than a small loop.
  StallGuard guard;
  EXPECT_EQ(AloneTime(&guard, 5 * kMicrosecond, 100 * kMicrosecond, 1000 * kMillisecond), 0);
}

TEST(StallGuard, OneLongStallIsForgiven) {
  StallGuard guard;
  guard.Record(1, kMicrosecond, 4 * kMillisecond);
  EXPECT_EQ(AloneTime(&guard, 100 * kMicrosecond, 10 * kMicrosecond, 1000 * kMillisecond,
                      4 * kMillisecond),
            0);
}

// What is lost to waiting stays a small part of the time.
TEST(StallGuard, StallsAreMostlyAvoided) {
  for (const int64_t waited : {300 * kMicrosecond, kMillisecond, 4 * kMillisecond}) {
    StallGuard guard;
    const int64_t total = 2000 * kMillisecond;
    EXPECT_GT(AloneTime(&guard, 50 * kMicrosecond, waited, total), total * 9 / 10) << waited;
  }
}

TEST(StallGuard, TheTeamComesBack) {
  StallGuard guard;
  AloneTime(&guard, 50 * kMicrosecond, 4 * kMillisecond, 2000 * kMillisecond);
  const int64_t later = 2500 * kMillisecond;
  EXPECT_EQ(AloneTime(&guard, 50 * kMicrosecond, 0, 1000 * kMillisecond, later), 0);
}

}  // namespace
}  // namespace onward

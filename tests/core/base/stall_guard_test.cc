// SPDX-License-Identifier: Apache-2.0
#include "core/base/stall_guard.h"

#include <gtest/gtest.h>

namespace onward::stall_guard_test {

constexpr int64_t kMicrosecond = 1'000, kMillisecond = 1'000'000;

// A machine on which every loop waits so long at its end, and where others take a core away
// so often.
struct Machine {
  int64_t waited = 0;
  int64_t per_preemption = 0;  // nanoseconds; 0: never
  int64_t now = 1;
  StallGuard guard{[this] { return per_preemption == 0 ? 0 : now / per_preemption; }};

  // Runs loops that take a team of two `own` for `total` of clock time. The part of it that
  // passes with one thread.
  double Alone(int64_t own, int64_t total) {
    int64_t alone = 0;
    for (const int64_t end = now + total; now < end;) {
      const int64_t before = now;
      if (guard.Team(2, now) == 1) {
        now += 2 * own;
        alone += now - before;
      } else {
        now += own + waited;
        guard.Record(2, before, before + own, now, guard.measures() ? 2 * own : 0);
      }
    }
    return static_cast<double>(alone) / static_cast<double>(total);
  }
};

TEST(StallGuard, WaitsWithoutOthersBelongToTheWork) {
  for (const int64_t own : {5 * kMicrosecond, 100 * kMicrosecond, 2 * kMillisecond}) {
    for (const int64_t waited : {int64_t{0}, own / 2, own, 4 * own}) {
      Machine idle{.waited = waited};
      EXPECT_EQ(idle.Alone(own, 1000 * kMillisecond), 0) << own << " " << waited;
    }
  }
}

TEST(StallGuard, OthersThatDoNotHoldUpTheTeam) {
  Machine shared{.waited = 30 * kMicrosecond, .per_preemption = kMillisecond};
  EXPECT_EQ(shared.Alone(50 * kMicrosecond, 1000 * kMillisecond), 0);
}

// Two threads that wait for less than they compute are faster than one.
TEST(StallGuard, ATeamThatIsFasterStays) {
  Machine shared{.waited = 400 * kMicrosecond, .per_preemption = kMillisecond};
  EXPECT_EQ(shared.Alone(500 * kMicrosecond, 1000 * kMillisecond), 0);
}

// What is lost to waiting stays a small part of the time.
TEST(StallGuard, StallsAreMostlyAvoided) {
  for (const int64_t waited : {200 * kMicrosecond, kMillisecond, 4 * kMillisecond}) {
    Machine busy{.waited = waited, .per_preemption = 4 * kMillisecond};
    EXPECT_GT(busy.Alone(50 * kMicrosecond, 3000 * kMillisecond), 0.9) << waited;
  }
}

TEST(StallGuard, TheTeamComesBack) {
  Machine machine{.waited = 4 * kMillisecond, .per_preemption = 4 * kMillisecond};
  EXPECT_GT(machine.Alone(50 * kMicrosecond, 2000 * kMillisecond), 0.8);
  machine.waited = machine.per_preemption = 0;
  machine.Alone(50 * kMicrosecond, 500 * kMillisecond);
  EXPECT_EQ(machine.Alone(50 * kMicrosecond, 1000 * kMillisecond), 0);
}

TEST(StallGuard, LargeTeamsShrinkByHalf) {
  Machine busy{.per_preemption = kMillisecond};
  for (int i = 0; i < 3; ++i) {
    const int64_t begin = busy.now;
    busy.now += 30 * kMillisecond;
    busy.guard.Record(8, begin, begin + kMillisecond, busy.now, kMillisecond);
  }
  EXPECT_EQ(busy.guard.Team(8, busy.now + 1), 4);
  EXPECT_EQ(busy.guard.Team(2, busy.now + 1), 2);
  EXPECT_EQ(busy.guard.Team(8, busy.now + 1000 * kMillisecond), 8);
}

}  // namespace onward::stall_guard_test

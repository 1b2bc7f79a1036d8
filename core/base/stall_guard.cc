// SPDX-License-Identifier: Apache-2.0
#include "core/base/stall_guard.h"

#include <sys/resource.h>
#include <time.h>

namespace onward {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
// Waking a sleeping thread takes less, and so do most items that another has begun.
constexpr int64_t kShortestStall = kMillisecond * 3 / 20;
constexpr int64_t kWindow = 15 * kMillisecond;
// Waiting and losing cores together are reason to measure; either alone is part of the work.
constexpr int64_t kStalledPart = 10;
constexpr int64_t kFewPreemptions = 2;
constexpr int64_t kMeasured = 20 * kMillisecond;
constexpr int64_t kShortestRest = 100 * kMillisecond, kLongestRest = 400 * kMillisecond;

}  // namespace

void StallGuard::Record(int64_t threads, int64_t begin, int64_t own_end, int64_t end,
                        int64_t busy) {
  if (measures_) return Measure(threads, begin, end, busy);
  if (window_begin_ == 0) Watch(begin);
  if (end - own_end > kShortestStall) waited_ += end - own_end;
  const int64_t watched = end - window_begin_;
  if (watched < kWindow) return;
  measures_ =
      waited_ * kStalledPart >= watched && preemptions_() - preempted_before_ >= kFewPreemptions;
  measured_ = busy_ = 0;
  Watch(end);
}

void StallGuard::Watch(int64_t now) {
  window_begin_ = now;
  preempted_before_ = preemptions_();
  waited_ = 0;
}

// One thread alone computes for as long as the loops take, at best. After a rest it is
// measured again at once.
void StallGuard::Measure(int64_t threads, int64_t begin, int64_t end, int64_t busy) {
  measured_ += end - begin;
  busy_ += busy;
  if (measured_ < kMeasured) return;
  if (busy_ < measured_) {
    rest_ = std::clamp(2 * rest_, kShortestRest, kLongestRest);
    limit_ = std::max<int64_t>(1, threads / 2);
    rest_until_ = end + rest_;
  } else {
    rest_ = 0;
    measures_ = false;
    Watch(end);
  }
  measured_ = busy_ = 0;
}

int64_t Preemptions() {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

int64_t ThreadTime() {
  struct timespec t;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return 0;
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

}  // namespace onward

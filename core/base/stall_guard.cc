// SPDX-License-Identifier: Apache-2.0
#include "core/base/stall_guard.h"

#include <sys/resource.h>

#include <algorithm>

namespace onward {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
// Waking a sleeping thread takes less, and so do most items that another has begun.
constexpr int64_t kShortestStall = kMillisecond * 3 / 20;
constexpr int64_t kWindow = 15 * kMillisecond;
// Waiting and losing cores together tell of others; either alone is part of the work.
constexpr int64_t kStalledPart = 10;
constexpr int64_t kFewPreemptions = 2;
constexpr int64_t kShortestRest = 100 * kMillisecond, kLongestRest = 400 * kMillisecond;

}  // namespace

void StallGuard::BeginWindow(int64_t now) {
  window_begin_ = now;
  preempted_before_ = preemptions_();
  waited_ = 0;
}

void StallGuard::Record(int64_t threads, int64_t begin, int64_t own_end, int64_t end) {
  if (window_begin_ < rest_until_ || window_begin_ == 0) BeginWindow(begin);
  if (end - own_end > kShortestStall) waited_ += end - own_end;
  const int64_t watched = end - window_begin_;
  if (watched < kWindow) return;
  const bool stalls =
      waited_ * kStalledPart >= watched && preemptions_() - preempted_before_ >= kFewPreemptions;
  rest_ = stalls ? std::clamp(2 * rest_, kShortestRest, kLongestRest) : 0;
  if (stalls) {
    limit_ = std::max<int64_t>(1, threads / 2);
    rest_until_ = end + rest_;
  } else {
    BeginWindow(end);
  }
}

int64_t Preemptions() {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace onward

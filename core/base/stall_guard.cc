// SPDX-License-Identifier: Apache-2.0
#include "core/base/stall_guard.h"

#include <algorithm>

namespace onward {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
// Waking a sleeping thread takes less; an item that another thread has begun seldom takes
// longer than what this one did itself.
constexpr int64_t kShortestStall = kMillisecond * 3 / 20;
constexpr int64_t kWindow = 15 * kMillisecond;
// Beyond this share of waiting, a team of two is no faster than one thread.
constexpr int64_t kStalledPart = 3;
// From one failed attempt to the next.
constexpr int64_t kShortestRest = 50 * kMillisecond, kLongestRest = 400 * kMillisecond;

}  // namespace

void StallGuard::Record(int64_t begin, int64_t own_end, int64_t end) {
  const int64_t waited = end - own_end;
  if (waited > kShortestStall && waited > 2 * (own_end - begin)) stalled_ += waited;
  if (window_begin_ == 0) window_begin_ = begin;
  const int64_t watched = end - window_begin_;
  // Long waits tell at once, many short ones at the end of the window.
  if (watched < kWindow && stalled_ < kWindow / kStalledPart) return;
  if (stalled_ * kStalledPart >= std::min(watched, kWindow)) {
    alone_for_ = std::clamp(2 * alone_for_, kShortestRest, kLongestRest);
    alone_until_ = end + alone_for_;
    window_begin_ = alone_until_;
  } else {
    alone_for_ = 0;
    window_begin_ = end;
  }
  stalled_ = 0;
}

}  // namespace onward

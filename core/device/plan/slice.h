// SPDX-License-Identifier: Apache-2.0
// What Slice takes of an axis.
#ifndef ONWARD_CORE_DEVICE_PLAN_SLICE_H_
#define ONWARD_CORE_DEVICE_PLAN_SLICE_H_

#include <algorithm>
#include <cstdint>

namespace onward {

// `count` elements from `start` on.
struct AxisRange {
  int64_t start = 0, count = 0, step = 1;
};

// Negative positions count from the end, then all are clamped: going forward to [0, size];
// going backward the start to [0, size - 1] (where Python stops at -1), the end to
// [-1, size - 1].
inline AxisRange ClampRange(int64_t size, int64_t start, int64_t end, int64_t step) {
  // Any step beyond the axis selects one element, as does this one.
  step = std::clamp(step, -size - 1, size + 1);
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? size : size - 1;
  if (size == 0) return {0, 0, 1};
  start = std::clamp<int64_t>(start < 0 ? start + size : start, 0, high);
  end = std::clamp(end < 0 ? end + size : end, low, high);
  const int64_t count =
      step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
  return {start, std::max<int64_t>(count, 0), step};
}

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_SLICE_H_

// SPDX-License-Identifier: Apache-2.0
// Resize in mode nearest: elements of any width are copied, lines that repeat are copied
// whole.
#ifndef ONWARD_CORE_OPS_IMAGE_RESIZE_NEAREST_H_
#define ONWARD_CORE_OPS_IMAGE_RESIZE_NEAREST_H_

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/ops/image/resize.h"
#include "core/ops/movement/movement.h"

namespace onward {

struct NearestPlan {
  // One axis, or several that are passed through together.
  struct Level {
    int64_t size = 1;
    std::vector<int32_t> from;  // -1: outside; empty: passed through
    int64_t repeat = 0;         // every source so often, one after the other; 0: not so
    int64_t dst_stride = 1, src_stride = 1;
    int64_t Source(int64_t i) const { return from.empty() ? i : from[i]; }
  };
  Shape shape;
  std::vector<Level> levels;
  int64_t block = 1;  // elements behind the last resized axis

  NearestPlan() = default;
  NearestPlan(const Shape& in, const ResizePlan& plan);
};

// Every element twice, and the same in a second line.
template <typename T>
void Double(const T* src, T* dst, T* again, int64_t n) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, uint32_t>) {
    typedef uint32_t Eight __attribute__((vector_size(32)));
    for (; i + 8 <= n; i += 8) {
      Eight v;
      std::memcpy(&v, src + i, sizeof(v));
      const Eight low = __builtin_shuffle(v, Eight{0, 0, 1, 1, 2, 2, 3, 3});
      const Eight high = __builtin_shuffle(v, Eight{4, 4, 5, 5, 6, 6, 7, 7});
      for (T* line : {dst, again}) {
        std::memcpy(line + 2 * i, &low, sizeof(low));
        std::memcpy(line + 2 * i + 8, &high, sizeof(high));
      }
    }
  }
  for (; i < n; ++i) dst[2 * i] = dst[2 * i + 1] = again[2 * i] = again[2 * i + 1] = src[i];
}

// Fills output positions [begin, end) of one level.
template <typename T>
void CopyNearest(const NearestPlan& plan, size_t depth, const T* src, T* dst, const T& outside,
                 int64_t begin, int64_t end) {
  const NearestPlan::Level& level = plan.levels[depth];
  const bool last = depth + 1 == plan.levels.size();
  // Twice as large, the usual case.
  if (depth + 2 == plan.levels.size() && level.repeat == 2 && plan.levels[depth + 1].repeat == 2 &&
      plan.block == 1 && begin % 2 == 0 && end % 2 == 0) {
    const int64_t width = level.src_stride;
    for (int64_t i = begin; i < end; i += 2) {
      T* line = dst + i * level.dst_stride;
      Double(src + i / 2 * width, line, line + level.dst_stride, width);
    }
    return;
  }
  if (last && level.dst_stride == 1 && !level.from.empty()) {
    const int32_t* from = level.from.data();
    for (int64_t i = begin; i < end; ++i) dst[i] = from[i] < 0 ? outside : src[from[i]];
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = level.Source(i);
    T* out = dst + i * level.dst_stride;
    if (from < 0) {
      std::fill_n(out, level.dst_stride, outside);
    } else if (i > begin && from == level.Source(i - 1)) {
      CopyRun(out, out - level.dst_stride, level.dst_stride);
    } else if (last) {
      CopyRun(out, src + from * level.src_stride, level.dst_stride);
    } else {
      CopyNearest(plan, depth + 1, src + from * level.src_stride, out, outside, 0,
                  plan.levels[depth + 1].size);
    }
  }
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_IMAGE_RESIZE_NEAREST_H_

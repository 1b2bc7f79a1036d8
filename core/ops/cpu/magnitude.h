// SPDX-License-Identifier: Apache-2.0
// The largest absolute value of many numbers: what bounds everything computed from them.
#ifndef ONWARD_CORE_OPS_CPU_MAGNITUDE_H_
#define ONWARD_CORE_OPS_CPU_MAGNITUDE_H_

#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/parallel.h"
#include "core/ops/cpu/vec.h"

namespace onward {

// The largest of what several threads offer.
class SharedMax {
 public:
  void Offer(double value) {
    double seen = value_.load(std::memory_order_relaxed);
    while (value > seen && !value_.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_ = 0;
};

// Infinite if there is a NaN; 0 of nothing.
template <typename T>
double LargestMagnitude(const T* data, int64_t n) {
  IntVec<T> largest[4] = {};  // of the bits, whose order is that of the values, NaN last
  const auto take = [&](IntVec<T>& top, int64_t at, int count) {
    const auto bits = (IntVec<T>)Magnitude(Load(data + at, count));
    top = bits > top ? bits : top;
  };
  int64_t i = 0;
  for (; i + 4 * kLanes<T> <= n; i += 4 * kLanes<T>) {
    for (int u = 0; u < 4; ++u) take(largest[u], i + u * kLanes<T>, kLanes<T>);
  }
  ForVecs<T>(n - i, [&](int64_t at, int count) { take(largest[0], i + at, count); });
  double top = 0;
  for (const IntVec<T>& bits : largest) {
    const auto values = (Vec<T>)bits;
    for (int lane = 0; lane < kLanes<T>; ++lane) {
      if (std::isnan(values[lane])) return std::numeric_limits<double>::infinity();
      if (values[lane] > top) top = values[lane];
    }
  }
  return top;
}

// The same on all threads.
template <typename T>
double SharedLargestMagnitude(const T* data, int64_t n) {
  constexpr int64_t kGrain = 65536;
  SharedMax largest;
  ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    largest.Offer(LargestMagnitude(data + begin, end - begin));
  });
  return largest.value();
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_MAGNITUDE_H_

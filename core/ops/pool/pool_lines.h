// SPDX-License-Identifier: Apache-2.0
// Pools over one channel in plain layout, a line of windows at a time: first down the rows that
// the line covers, many columns at once, then along the columns.
#ifndef ONWARD_CORE_OPS_POOL_POOL_LINES_H_
#define ONWARD_CORE_OPS_POOL_POOL_LINES_H_

#include <algorithm>
#include <cstdint>

#include "core/ops/pool/pool.h"

namespace onward {

// The windows along the last axis, on columns with padding at both ends, so that all of them
// are whole.
struct PoolLine {
  static constexpr int64_t kMostColumns = 2048;
  int64_t kernel, stride, dilation, out;
  int64_t before;   // of padding
  int64_t columns;  // with padding

  explicit PoolLine(const Window& window) {
    const int last = window.rank() - 1;
    kernel = window.kernel[last];
    stride = window.strides[last];
    dilation = window.dilations[last];
    out = window.out[last];
    before = window.pads_begin[last];
    columns = (out - 1) * stride + (kernel - 1) * dilation + 1;
  }
  bool fits() const { return out > 0 && columns <= kMostColumns; }
};

// What a pool makes of two numbers, and what it begins with.
struct KeepLarger {
  template <typename T>
  static constexpr T Start() {
    return LowestValue<T>();
  }
  // Without a branch, since which one is larger cannot be foreseen.
  template <typename T>
  static T Join(T best, T v) {
    const T larger = v > best ? v : best;
    return v != v ? v : larger;
  }
};
struct AddUp {
  template <typename T>
  static constexpr T Start() {
    return T(0);
  }
  template <typename T>
  static T Join(T sum, T v) {
    return sum + v;
  }
};

// to[i] = the rows `begin`, `begin` + step, ... joined.
template <typename Pool, typename T>
void JoinRows(const T* begin, int64_t step, int64_t count, int64_t n, T* to) {
  int64_t done = std::min<int64_t>(count, 3);
  const T* const second = begin + (done - 1) / 2 * step;
  const T* const last = begin + (done - 1) * step;
  if (done == 3) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = Pool::Join(Pool::Join(begin[i], second[i]), last[i]);
  } else if (done == 2) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = Pool::Join(begin[i], last[i]);
  } else {
    std::copy_n(begin, n, to);
  }
  for (; done < count; ++done) {
    const T* row = begin + done * step;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = Pool::Join(to[i], row[i]);
  }
}

// The same along the columns; kStride 0: whatever the line says.
template <typename Pool, int64_t kStride, typename T>
void JoinColumns(const PoolLine& line, const T* columns, T* y) {
  const int64_t stride = kStride == 0 ? line.stride : kStride;
  int64_t done = std::min<int64_t>(line.kernel, 3);
  const T* const second = columns + (done - 1) / 2 * line.dilation;
  const T* const last = columns + (done - 1) * line.dilation;
  if (done == 3) {
#pragma omp simd
    for (int64_t o = 0; o < line.out; ++o) {
      y[o] = Pool::Join(Pool::Join(columns[o * stride], second[o * stride]), last[o * stride]);
    }
  } else if (done == 2) {
#pragma omp simd
    for (int64_t o = 0; o < line.out; ++o) {
      y[o] = Pool::Join(columns[o * stride], last[o * stride]);
    }
  } else {
    for (int64_t o = 0; o < line.out; ++o) y[o] = columns[o * stride];
  }
  for (; done < line.kernel; ++done) {
    const T* tap = columns + done * line.dilation;
#pragma omp simd
    for (int64_t o = 0; o < line.out; ++o) y[o] = Pool::Join(y[o], tap[o * stride]);
  }
}

// finish(y, depth, height) for each line of results, with the spans of its windows.
template <typename Pool, typename T, typename Finish>
void PoolByLines(const PoolPlan& plan, const PoolLine& line, const T* x, T* y,
                 const Finish& finish) {
  const auto& [d, h, w] = plan.axes;
  const int64_t first = std::max<int64_t>(0, -line.before);
  const int64_t at = std::min(line.before + first, line.columns);
  const int64_t inside = std::max<int64_t>(std::min(w.in - first, line.columns - at), 0);
  T columns[PoolLine::kMostColumns];
  std::fill_n(columns, line.columns, Pool::template Start<T>());
  T* const begin = columns + at;
  for (const PoolAxis::Span& sd : d.spans) {
    for (const PoolAxis::Span& sh : h.spans) {
      const T* const plane = x + (sd.begin * h.in + sh.begin) * w.in + first;
      if (sd.count * sh.count == 0) std::fill_n(begin, inside, Pool::template Start<T>());
      for (int64_t k = 0; k < sd.count && sh.count > 0; ++k) {
        const T* rows = plane + k * d.dilation * h.in * w.in;
        if (k == 0) {
          JoinRows<Pool>(rows, h.dilation * w.in, sh.count, inside, begin);
          continue;
        }
        for (int64_t r = 0; r < sh.count; ++r, rows += h.dilation * w.in) {
#pragma omp simd
          for (int64_t i = 0; i < inside; ++i) begin[i] = Pool::Join(begin[i], rows[i]);
        }
      }
      switch (line.stride) {
        case 1: JoinColumns<Pool, 1>(line, columns, y); break;
        case 2: JoinColumns<Pool, 2>(line, columns, y); break;
        default: JoinColumns<Pool, 0>(line, columns, y); break;
      }
      finish(y, sd, sh);
      y += line.out;
    }
  }
}

template <typename T>
void MaxByLines(const PoolPlan& plan, const PoolLine& line, const T* x, T* y) {
  PoolByLines<KeepLarger>(plan, line, x, y,
                          [](T*, const PoolAxis::Span&, const PoolAxis::Span&) {});
}

template <typename T>
void AverageByLines(const PoolPlan& plan, const PoolLine& line, const T* x, T* y) {
  T widths[PoolLine::kMostColumns];
  for (int64_t o = 0; o < line.out; ++o) {
    widths[o] = static_cast<T>(std::max<int64_t>(plan.axes[2].spans[o].divisor, 1));
  }
  PoolByLines<AddUp>(plan, line, x, y,
                     [&](T* sums, const PoolAxis::Span& sd, const PoolAxis::Span& sh) {
                       const T rows = static_cast<T>(std::max<int64_t>(sd.divisor * sh.divisor, 1));
#pragma omp simd
                       for (int64_t o = 0; o < line.out; ++o) sums[o] /= rows * widths[o];
                     });
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_POOL_POOL_LINES_H_

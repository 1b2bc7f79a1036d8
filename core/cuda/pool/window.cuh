// SPDX-License-Identifier: Apache-2.0
// What the kernels of MaxPool, AveragePool and LpPool share: the taps of a window, and the windows
// of an element.
#pragma once

#include "core/cuda/pool/kernels.h"
#include "core/cuda/types.cuh"

namespace onward::cuda {

// The taps of a window along one axis: `count` of them inside the input, the first at `begin`.
struct PoolSpan {
  int begin, count;
  int divisor;  // taps that an average counts
};

// Taps t in [0, kernel) with start + t*dilation < end.
__device__ inline int TapsBefore(const PoolAxis& a, int64_t start, int64_t end) {
  const int64_t room = end > start ? end - start : 0;
  const int64_t taps = (room + a.dilation - 1) / a.dilation;
  return static_cast<int>(taps < a.kernel ? taps : a.kernel);
}

__device__ inline PoolSpan SpanOf(const PoolAxis& a, int o, int count_pads) {
  const int64_t start = static_cast<int64_t>(o) * a.stride - a.pad_begin;
  const int first = TapsBefore(a, start, 0), last = TapsBefore(a, start, a.in);
  const int divisor =
      count_pads != 0 ? TapsBefore(a, start, static_cast<int64_t>(a.in) + a.pad_end) : last - first;
  return {static_cast<int>(start + static_cast<int64_t>(first) * a.dilation), last - first,
          divisor};
}

// The window that reaches element i of the axis with a tap; -1: none.
__device__ inline int WindowOf(const PoolAxis& a, int i, int tap) {
  const int64_t at = static_cast<int64_t>(i) + a.pad_begin - static_cast<int64_t>(tap) * a.dilation;
  if (at < 0 || at % a.stride != 0) return -1;
  return at / a.stride < a.out ? static_cast<int>(at / a.stride) : -1;
}

struct PoolPosition {
  int d, h, w;
};
__device__ inline PoolPosition PositionOf(int64_t p, int h, int w) {
  const int64_t line = p / w;
  return {static_cast<int>(line / h), static_cast<int>(line % h), static_cast<int>(p % w)};
}

__host__ __device__ inline int64_t InPositions(const PoolShape& s) {
  return static_cast<int64_t>(s.axes[0].in) * s.axes[1].in * s.axes[2].in;
}
__host__ __device__ inline int64_t OutPositions(const PoolShape& s) {
  return static_cast<int64_t>(s.axes[0].out) * s.axes[1].out * s.axes[2].out;
}

// Calls body(position in the plane) for the taps of the window of output position p that lie
// inside, in row-major order; returns how many taps an average counts.
template <class Body>
__device__ int64_t ForTaps(const PoolShape& s, int64_t p, const Body& body) {
  const PoolAxis &d = s.axes[0], &h = s.axes[1], &w = s.axes[2];
  const PoolPosition o = PositionOf(p, h.out, w.out);
  const PoolSpan sd = SpanOf(d, o.d, s.count_pads), sh = SpanOf(h, o.h, s.count_pads);
  const PoolSpan sw = SpanOf(w, o.w, s.count_pads);
  for (int kd = 0; kd < sd.count; ++kd) {
    const int64_t id = sd.begin + static_cast<int64_t>(kd) * d.dilation;
    for (int kh = 0; kh < sh.count; ++kh) {
      const int64_t ih = sh.begin + static_cast<int64_t>(kh) * h.dilation;
      for (int kw = 0; kw < sw.count; ++kw) {
        body((id * h.in + ih) * w.in + sw.begin + static_cast<int64_t>(kw) * w.dilation);
      }
    }
  }
  return static_cast<int64_t>(sd.divisor) * sh.divisor * sw.divisor;
}

// Calls body(output position) for the windows that reach input position p, in row-major order.
template <class Body>
__device__ void ForWindows(const PoolShape& s, int64_t p, const Body& body) {
  const PoolAxis &d = s.axes[0], &h = s.axes[1], &w = s.axes[2];
  const PoolPosition i = PositionOf(p, h.in, w.in);
  for (int kd = d.kernel - 1; kd >= 0; --kd) {
    const int od = WindowOf(d, i.d, kd);
    for (int kh = h.kernel - 1; od >= 0 && kh >= 0; --kh) {
      const int oh = WindowOf(h, i.h, kh);
      for (int kw = w.kernel - 1; oh >= 0 && kw >= 0; --kw) {
        const int ow = WindowOf(w, i.w, kw);
        if (ow >= 0) body((static_cast<int64_t>(od) * h.out + oh) * w.out + ow);
      }
    }
  }
}

// NaN must not vanish in a pool.
template <class C>
__device__ inline bool Exceeds(C v, C best) {
  return v > best || v != v;
}

template <class T>
__device__ inline Compute<T> LowestValue() {
  if constexpr (kIsReal<T>) {
    return -Infinity<Compute<T>>();
  } else {
    return std::is_signed_v<T> ? static_cast<T>(T(1) << (8 * sizeof(T) - 1)) : T(0);
  }
}

__device__ inline float Power(float x, float p) { return powf(x, p); }
__device__ inline double Power(double x, double p) { return pow(x, p); }
__device__ inline float Magnitude(float x) { return fabsf(x); }
__device__ inline double Magnitude(double x) { return fabs(x); }

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// Reading pictures between their pixels: which pixels count, and how much. Shared by what
// samples at given coordinates.
#ifndef ONWARD_CORE_OPS_IMAGE_SAMPLING_H_
#define ONWARD_CORE_OPS_IMAGE_SAMPLING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace onward {

enum class Interpolation { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

inline constexpr int kMostTaps = 4;
inline int TapsOf(Interpolation mode) {
  return mode == Interpolation::kNearest ? 1 : mode == Interpolation::kLinear ? 2 : 4;
}

// The pixels along one axis that a coordinate reads: index -1 stands for a zero. `slope` is
// the derivative of the weight by the coordinate.
template <typename A>
struct LineTaps {
  int64_t index[kMostTaps];
  A weight[kMostTaps], slope[kMostTaps];
};

// Mirrored at `low` and `low + range` until it lies between them; `sign` tells which way the
// result moves.
template <typename A>
inline A Reflected(A x, A low, A range, A* sign) {
  *sign = 1;
  if (!(range > 0)) {
    *sign = 0;
    return 0;
  }
  const A from = x - low, turns = std::floor(from / (2 * range));
  const A rest = from - turns * 2 * range;
  if (rest <= range) return low + rest;
  *sign = -1;
  return low + 2 * range - rest;
}

// How an axis of `size` pixels is read.
template <typename A>
struct LineSampler {
  int64_t size = 1;
  Interpolation mode = Interpolation::kLinear;
  Padding padding = Padding::kZeros;
  A low = 0, range = 0;  // where reflection turns

  LineSampler(int64_t pixels, Interpolation how, Padding beyond, bool align_corners)
      : size(pixels),
        mode(how),
        padding(beyond),
        low(align_corners ? A(0) : A(-0.5)),
        range(static_cast<A>(align_corners ? pixels - 1 : pixels)) {}

  int64_t PixelAt(A i) const {
    const A last = static_cast<A>(size - 1);
    A sign = 1;
    switch (padding) {
      case Padding::kZeros: return i >= 0 && i <= last ? static_cast<int64_t>(i) : -1;
      case Padding::kBorder: break;
      case Padding::kReflection: i = std::floor(Reflected(i, low, range, &sign)); break;
    }
    return static_cast<int64_t>(std::clamp(i, A(0), last));
  }

  // A coordinate in pixels.
  void Sample(A x, LineTaps<A>* taps) const {
    A sign = 1;
    if (mode == Interpolation::kNearest) x = std::nearbyint(x);
    // The taps of cubic are led back one by one, as PyTorch and onnxruntime have it.
    if (mode != Interpolation::kCubic && padding != Padding::kZeros) {
      if (padding == Padding::kReflection && (x < low || x > low + range)) {
        x = Reflected(x, low, range, &sign);
      }
      const A last = static_cast<A>(size - 1);
      // Also on the outermost pixels the result stands still, as in PyTorch.
      if (x <= 0 || x >= last) sign = 0;
      if (x < 0 || x > last) x = std::clamp(x, A(0), last);
    }
    const int n = TapsOf(mode);
    // What is no number shows in every result; what is beyond any picture in none.
    if (std::isnan(x)) {
      std::fill_n(taps->index, n, int64_t{0});
      std::fill_n(taps->weight, n, x);
      std::fill_n(taps->slope, n, x);
      return;
    }
    if (mode == Interpolation::kNearest) {
      taps->index[0] = PixelAt(x);
      taps->weight[0] = 1;
      taps->slope[0] = 0;
      return;
    }
    const A left = std::floor(x), t = x - left, first = mode == Interpolation::kLinear ? 0 : -1;
    for (int k = 0; k < n; ++k) taps->index[k] = PixelAt(left + first + static_cast<A>(k));
    if (mode == Interpolation::kLinear) {
      taps->weight[0] = 1 - t;
      taps->weight[1] = t;
      taps->slope[0] = -sign;
      taps->slope[1] = sign;
    } else {
      Cubic(t, sign, taps);
    }
    // What counts for nothing is not read: it may be infinite.
    for (int k = 0; k < n; ++k) {
      if (taps->weight[k] == 0 && taps->slope[k] == 0) taps->index[k] = -1;
    }
  }

 private:
  // Keys' kernel with a = -3/4 at the distances 1 + t, t, 1 - t, 2 - t.
  static void Cubic(A t, A sign, LineTaps<A>* taps) {
    constexpr A a = -0.75;
    const auto inner = [](A d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto outer = [](A d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    const auto inner_slope = [](A d) { return (3 * (a + 2) * d - 2 * (a + 3)) * d; };
    const auto outer_slope = [](A d) { return (3 * a * d - 10 * a) * d + 8 * a; };
    taps->weight[0] = outer(1 + t);
    taps->weight[1] = inner(t);
    taps->weight[2] = inner(1 - t);
    taps->weight[3] = outer(2 - t);
    taps->slope[0] = sign * outer_slope(1 + t);
    taps->slope[1] = sign * inner_slope(t);
    taps->slope[2] = -sign * inner_slope(1 - t);
    taps->slope[3] = -sign * outer_slope(2 - t);
  }
};

// Points that are looked up together: their taps stay in the cache while the channels pass.
inline constexpr int64_t kPointsTogether = 256;

// What some points of a picture read, as [tap][point]: positions (-1 is a zero) and weights.
template <typename A>
struct PointTaps {
  int64_t count = 0, taps = 1;
  std::vector<int32_t> position;
  std::vector<A> weight;
  std::vector<A> slope;  // [axis][tap][point], by the coordinate of the axis

  // `lines` has a sampler for each axis; coordinate(point, axis) is in pixels.
  template <typename Coordinate>
  void Find(const std::vector<LineSampler<A>>& lines, int64_t points, bool with_slopes,
            const Coordinate& coordinate) {
    const int axes = static_cast<int>(lines.size());
    const int line = TapsOf(lines[0].mode), bits = line == 4 ? 2 : line == 2 ? 1 : 0;
    count = points;
    taps = int64_t{1} << (bits * axes);
    position.resize(taps * count);
    weight.resize(taps * count);
    if (with_slopes) slope.resize(axes * taps * count);
    absl::InlinedVector<LineTaps<A>, 3> found(axes);
    for (int64_t p = 0; p < count; ++p) {
      for (int axis = 0; axis < axes; ++axis) {
        lines[axis].Sample(coordinate(p, axis), &found[axis]);
      }
      for (int64_t t = 0; t < taps; ++t) {
        // Which tap of each axis: the last axis counts fastest.
        const auto tap = [&](int axis) { return t >> bits * (axes - 1 - axis) & (line - 1); };
        int64_t at = 0;
        A product = 1;
        bool inside = true;
        for (int axis = 0; axis < axes; ++axis) {
          const int64_t k = tap(axis);
          inside = inside && found[axis].index[k] >= 0;
          at = at * lines[axis].size + found[axis].index[k];
          product *= found[axis].weight[k];
        }
        position[t * count + p] = inside ? static_cast<int32_t>(at) : -1;
        weight[t * count + p] = inside ? product : A(0);
        for (int of = 0; with_slopes && of < axes; ++of) {
          A part = inside ? A(1) : A(0);
          for (int axis = 0; inside && axis < axes; ++axis) {
            const int64_t k = tap(axis);
            part *= axis == of ? found[axis].slope[k] : found[axis].weight[k];
          }
          slope[(of * taps + t) * count + p] = part;
        }
      }
    }
  }

  // y[point] = sum of weight * x[position], for channels that lie so far apart in x and y.
  template <typename T, typename Y>
  void Read(const T* x, int64_t x_stride, int64_t channels, Y* y, int64_t y_stride) const {
    int64_t c = 0;
    for (; c + 4 <= channels; c += 4)
      ReadTogether<4>(x + c * x_stride, x_stride, y + c * y_stride, y_stride);
    for (; c < channels; ++c)
      ReadTogether<1>(x + c * x_stride, x_stride, y + c * y_stride, y_stride);
  }

  // dx[position] += weight * dy[point].
  void Add(const A* dy, A* dx) const {
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t p = 0; p < count; ++p) {
        const int64_t i = t * count + p;
        if (position[i] >= 0) dx[position[i]] += weight[i] * dy[p];
      }
    }
  }

  // moments[tap][point] += dy[point] * x[position].
  void AddMoments(const A* dy, const A* x, A* moments) const {
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t p = 0; p < count; ++p) {
        const int64_t i = t * count + p;
        if (position[i] >= 0) moments[i] += dy[p] * x[position[i]];
      }
    }
  }

  // The derivative by a coordinate of a point, from the sums over all channels.
  A Slope(const A* moments, int axis, int64_t p) const {
    A sum = 0;
    for (int64_t t = 0; t < taps; ++t) {
      sum += moments[t * count + p] * slope[(axis * taps + t) * count + p];
    }
    return sum;
  }

 private:
  // Positions and weights are looked up once for several channels.
  template <int C, typename T, typename Y>
  void ReadTogether(const T* x, int64_t x_stride, Y* y, int64_t y_stride) const {
    const int32_t* at = position.data();
    const A* w = weight.data();
    const int64_t n = count;
    for (int64_t p = 0; p < n; ++p) {
      A sums[C] = {};
      for (int64_t i = p; i < taps * n; i += n) {
        if (at[i] < 0) continue;
        for (int c = 0; c < C; ++c) sums[c] += w[i] * static_cast<A>(x[c * x_stride + at[i]]);
      }
      for (int c = 0; c < C; ++c) y[c * y_stride + p] = static_cast<Y>(sums[c]);
    }
  }
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_IMAGE_SAMPLING_H_

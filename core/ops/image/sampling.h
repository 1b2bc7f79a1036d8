// SPDX-License-Identifier: Apache-2.0
// Reading pictures between their pixels: which pixels count, and how much. Shared by what
// samples at given coordinates.
#ifndef ONWARD_CORE_OPS_IMAGE_SAMPLING_H_
#define ONWARD_CORE_OPS_IMAGE_SAMPLING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

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
    if (x < low || x > low + range) {
      if (padding == Padding::kBorder) {
        x = std::clamp(x, A(0), static_cast<A>(size - 1));
        sign = 0;
      } else if (padding == Padding::kReflection) {
        x = Reflected(x, low, range, &sign);
      }
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
    const int axes = static_cast<int>(lines.size()), line = TapsOf(lines[0].mode);
    count = points;
    taps = 1;
    for (int axis = 0; axis < axes; ++axis) taps *= line;
    position.assign(taps * count, 0);
    weight.assign(taps * count, 1);
    if (with_slopes) slope.assign(axes * taps * count, 1);
    LineTaps<A> found;
    int64_t before = 1, behind = taps;  // combinations of the taps of the other axes
    for (int axis = 0; axis < axes; ++axis, before *= line) {
      behind /= line;
      for (int64_t p = 0; p < count; ++p) {
        lines[axis].Sample(coordinate(p, axis), &found);
        int64_t t = 0;
        for (int64_t b = 0; b < before; ++b) {
          for (int k = 0; k < line; ++k) {
            for (int64_t r = 0; r < behind; ++r, ++t) {
              Meet(found, k, lines[axis].size, t * count + p);
              for (int other = 0; with_slopes && other < axes; ++other) {
                slope[(other * taps + t) * count + p] *=
                    other == axis ? found.slope[k] : found.weight[k];
              }
            }
          }
        }
      }
    }
  }

  // y[point] = sum of weight * x[position].
  template <typename T, typename Y>
  void Read(const T* x, Y* y) const {
    switch (taps) {
      case 1: return ReadFew<1>(x, y);
      case 2: return ReadFew<2>(x, y);
      case 4: return ReadFew<4>(x, y);
      case 8: return ReadFew<8>(x, y);
      case 16: return ReadFew<16>(x, y);
      default: return ReadMany(x, y);
    }
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
  // Tap k of one more axis.
  void Meet(const LineTaps<A>& found, int k, int64_t size, int64_t i) {
    const bool outside = found.index[k] < 0 || position[i] < 0;
    position[i] = outside ? -1 : static_cast<int32_t>(position[i] * size + found.index[k]);
    weight[i] = outside ? A(0) : weight[i] * found.weight[k];
  }

  // Pixels that are not there are read as zero: nothing of what lies in their place shows.
  template <int K, typename T, typename Y>
  void ReadFew(const T* x, Y* y) const {
    const int32_t* at = position.data();
    const A* w = weight.data();
    const int64_t n = count;
    for (int64_t p = 0; p < n; ++p) {
      A sum = 0;
      for (int k = 0; k < K; ++k) {
        const int32_t i = at[k * n + p];
        const A pixel = static_cast<A>(x[i < 0 ? 0 : i]);
        sum += w[k * n + p] * (i < 0 ? A(0) : pixel);
      }
      y[p] = static_cast<Y>(sum);
    }
  }

  template <typename T, typename Y>
  void ReadMany(const T* x, Y* y) const {
    for (int64_t p = 0; p < count; ++p) {
      A sum = 0;
      for (int64_t i = p; i < taps * count; i += count) {
        if (position[i] >= 0) sum += weight[i] * static_cast<A>(x[position[i]]);
      }
      y[p] = static_cast<Y>(sum);
    }
  }
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_IMAGE_SAMPLING_H_

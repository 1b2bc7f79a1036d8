// SPDX-License-Identifier: Apache-2.0
#include "core/ops/image/resample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/parallel.h"
#include "core/ops/cpu/type_list.h"

namespace onward {
namespace {

constexpr int64_t kGrain = 1 << 14;

// To the type of the elements.
template <typename T, typename A>
inline T Stored(A v, bool rounds) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    // Weights are rounded: what misses an integer by so little is meant to be one.
    constexpr double kMiss = 1e-4;
    const double wide = static_cast<double>(v);
    const double r = rounds ? std::round(wide) : std::trunc(wide + std::copysign(kMiss, wide));
    // The largest 64-bit integers are no doubles: what reaches them is cut off.
    if (!(r > static_cast<double>(Limits::min()))) return Limits::min();
    return r >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<T>(r);
  } else {
    return static_cast<T>(v);
  }
}

template <typename T, typename A>
void Convert(const T* from, A* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<A>(from[i]);
}

template <typename A, typename T>
void Store(const A* from, T* to, int64_t n, bool rounds) {
  for (int64_t i = 0; i < n; ++i) to[i] = Stored<T>(from[i], rounds);
}

template <int K, typename A>
void ApplyEven(const int32_t* index, const A* weight, int64_t out, const A* x, A* y) {
  for (int64_t o = 0; o < out; ++o) {
    A sum = weight[o] * x[index[o]];
    for (int k = 1; k < K; ++k) sum += weight[k * out + o] * x[index[k * out + o]];
    y[o] = sum;
  }
}

}  // namespace

template <typename A>
AxisTaps<A>::AxisTaps(const AxisMap& map)
    : in(map.in),
      out(map.out),
      starts(map.starts),
      index(map.index),
      weight(map.weight.begin(), map.weight.end()) {
  int64_t most = 0, least = INT64_MAX;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t count = starts[o + 1] - starts[o];
    most = std::max(most, count);
    least = std::min(least, count);
    if (count > 0) span = std::max<int64_t>(span, index[starts[o + 1] - 1] - index[starts[o]] + 1);
  }
  const double padded = static_cast<double>(most) * static_cast<double>(out);
  if (least < 1 || padded > 2.0 * static_cast<double>(index.size()) + 64) return;
  even = most;
  even_index.resize(most * out);
  even_weight.resize(most * out);
  for (int64_t o = 0; o < out; ++o) {
    const int64_t count = starts[o + 1] - starts[o];
    for (int64_t k = 0; k < most; ++k) {
      const int64_t from = starts[o] + std::min(k, count - 1);
      even_index[k * out + o] = index[from];
      // The last tap in halves, quarters, ... and the rest.
      const int64_t halvings = std::max<int64_t>(std::min(k, most - 2) - (count - 2), 0);
      even_weight[k * out + o] = std::ldexp(weight[from], -static_cast<int>(halvings));
    }
  }
}

template <typename A>
void AxisTaps<A>::Apply(const A* x, A* y) const {
  switch (even) {
    case 1: return ApplyEven<1>(even_index.data(), even_weight.data(), out, x, y);
    case 2: return ApplyEven<2>(even_index.data(), even_weight.data(), out, x, y);
    case 3: return ApplyEven<3>(even_index.data(), even_weight.data(), out, x, y);
    case 4: return ApplyEven<4>(even_index.data(), even_weight.data(), out, x, y);
    default: break;
  }
  for (int64_t o = 0; o < out; ++o) {
    A sum = 0;
    for (int64_t k = starts[o]; k < starts[o + 1]; ++k) sum += weight[k] * x[index[k]];
    y[o] = sum;
  }
}

template <typename A>
template <typename Row>
void AxisTaps<A>::Combine(int64_t o, const Row& row, int64_t n, A* y) const {
  int64_t k = starts[o];
  const int64_t count = starts[o + 1] - k;
  if (count == 0) {
    std::fill_n(y, n, A{0});
    return;
  }
  if (count == 1) {
    const A w = weight[k];
    const A* a = row(index[k]);
    for (int64_t i = 0; i < n; ++i) y[i] = w * a[i];
    return;
  }
  {
    const A u = weight[k], v = weight[k + 1];
    const A *a = row(index[k]), *b = row(index[k + 1]);
    for (int64_t i = 0; i < n; ++i) y[i] = u * a[i] + v * b[i];
    k += 2;
  }
  for (; k + 1 < starts[o + 1]; k += 2) {
    const A u = weight[k], v = weight[k + 1];
    const A *a = row(index[k]), *b = row(index[k + 1]);
    for (int64_t i = 0; i < n; ++i) y[i] += u * a[i] + v * b[i];
  }
  if (k < starts[o + 1]) {
    const A u = weight[k];
    const A* a = row(index[k]);
    for (int64_t i = 0; i < n; ++i) y[i] += u * a[i];
  }
}

template <typename A>
Resampler<A>::Resampler(const Shape& in, const Shape& out, const std::vector<AxisMap>& maps,
                        bool rounds)
    : in_elements_(in.elements()), out_elements_(out.elements()), rounds_(rounds) {
  const int rank = in.rank();
  lines_ = maps.size() == 1 && maps[0].axis == rank - 1;
  planes_ = maps.size() == 2 && maps[0].axis == rank - 2 && maps[1].axis == rank - 1;
  // What shrinks goes first: less is left for the others.
  std::vector<const AxisMap*> order;
  for (const AxisMap& map : maps) order.push_back(&map);
  if (!planes_) {
    std::stable_sort(order.begin(), order.end(), [](const AxisMap* a, const AxisMap* b) {
      return static_cast<double>(a->out) / static_cast<double>(a->in) <
             static_cast<double>(b->out) / static_cast<double>(b->in);
    });
  }
  Shape now = in;
  if (lines_) outer_ = in.elements(0, rank - 1);
  if (planes_) outer_ = in.elements(0, rank - 2);
  for (const AxisMap* map : order) {
    passes_.push_back(
        {AxisTaps<A>(*map), now.elements(0, map->axis), now.elements(map->axis + 1, rank)});
    now[map->axis] = map->out;
  }
}

template <typename A>
void Resampler<A>::RunPass(const Pass& pass, const A* x, A* y) const {
  const AxisTaps<A>& taps = pass.taps;
  const int64_t inner = pass.inner;
  if (inner == 1) {
    ParallelFor(pass.outer, kGrain / taps.out + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) taps.Apply(x + i * taps.in, y + i * taps.out);
    });
    return;
  }
  ParallelFor(pass.outer * taps.out, kGrain / inner + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const A* from = x + i / taps.out * taps.in * inner;
      taps.Combine(
          i % taps.out, [&](int64_t row) { return from + row * inner; }, inner, y + i * inner);
    }
  });
}

template <typename A>
template <typename T>
void Resampler<A>::RunLines(const T* x, T* y) const {
  const AxisTaps<A>& taps = passes_[0].taps;
  ParallelFor(outer_, kGrain / taps.out + 1, [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, A>) {
      for (int64_t i = begin; i < end; ++i) taps.Apply(x + i * taps.in, y + i * taps.out);
    } else {
      std::vector<A> line(taps.in), made(taps.out);
      for (int64_t i = begin; i < end; ++i) {
        Convert(x + i * taps.in, line.data(), taps.in);
        taps.Apply(line.data(), made.data());
        Store(made.data(), y + i * taps.out, taps.out, rounds_);
      }
    }
  });
}

// Lines that are resized along their length wait in a ring until the last output that
// needs them is made.
template <typename A>
template <typename T>
void Resampler<A>::RunPlanes(const T* x, T* y) const {
  const AxisTaps<A>&down = passes_[0].taps, &across = passes_[1].taps;
  const int64_t width = across.out, slots = down.span;
  ParallelFor(outer_ * down.out, kGrain / width + 1, [&](int64_t begin, int64_t end) {
    std::vector<A> ring(slots * width), line, made;
    std::vector<int64_t> holds(slots, -1);
    if constexpr (!std::is_same_v<T, A>) {
      line.resize(across.in);
      made.resize(width);
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / down.out, first = plane * down.in;
      const auto row = [&](int64_t r) -> const A* {
        const int64_t slot = r % slots;
        A* at = ring.data() + slot * width;
        if (holds[slot] == first + r) return at;
        const T* from = x + (first + r) * across.in;
        if constexpr (std::is_same_v<T, A>) {
          across.Apply(from, at);
        } else {
          Convert(from, line.data(), across.in);
          across.Apply(line.data(), at);
        }
        holds[slot] = first + r;
        return at;
      };
      if constexpr (std::is_same_v<T, A>) {
        down.Combine(i % down.out, row, width, y + i * width);
      } else {
        down.Combine(i % down.out, row, width, made.data());
        Store(made.data(), y + i * width, width, rounds_);
      }
    }
  });
}

template <typename A>
template <typename T>
void Resampler<A>::Run(const T* x, T* y) const {
  if (out_elements_ == 0) return;
  if (lines_) return RunLines(x, y);
  if (planes_) return RunPlanes(x, y);
  constexpr bool kSame = std::is_same_v<T, A>;
  std::vector<A> from, to;
  const A* now = nullptr;
  if constexpr (kSame) {
    now = x;
  } else {
    from.resize(in_elements_);
    Convert(x, from.data(), in_elements_);
    now = from.data();
  }
  for (size_t p = 0; p < passes_.size(); ++p) {
    const Pass& pass = passes_[p];
    A* made = nullptr;
    if constexpr (kSame) {
      if (p + 1 == passes_.size()) made = y;
    }
    if (made == nullptr) {
      to.resize(pass.outer * pass.taps.out * pass.inner);
      made = to.data();
    }
    RunPass(pass, now, made);
    now = made;
    if (made == to.data()) std::swap(from, to);
  }
  if constexpr (kSame) {
    if (passes_.empty()) std::copy_n(x, out_elements_, y);
  } else {
    Store(now, y, out_elements_, rounds_);
  }
}

template class Resampler<float>;
template class Resampler<double>;
template void Resampler<float>::Run(const float*, float*) const;
template void Resampler<float>::Run(const Float16*, Float16*) const;
template void Resampler<float>::Run(const BFloat16*, BFloat16*) const;
template void Resampler<double>::Run(const double*, double*) const;
template void Resampler<double>::Run(const int8_t*, int8_t*) const;
template void Resampler<double>::Run(const uint8_t*, uint8_t*) const;
template void Resampler<double>::Run(const int16_t*, int16_t*) const;
template void Resampler<double>::Run(const uint16_t*, uint16_t*) const;
template void Resampler<double>::Run(const int32_t*, int32_t*) const;
template void Resampler<double>::Run(const uint32_t*, uint32_t*) const;
template void Resampler<double>::Run(const int64_t*, int64_t*) const;
template void Resampler<double>::Run(const uint64_t*, uint64_t*) const;

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// How BatchNormalization walks a tensor: per channel, over the pixels (all
// other axes), in plain and in channel-blocked layouts alike, so that neither
// needs a reorder.
#ifndef ONWARD_CORE_OPS_CPU_CHANNEL_VIEW_H_
#define ONWARD_CORE_OPS_CPU_CHANNEL_VIEW_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "core/base/parallel.h"
#include "core/device/kernel.h"
#include "core/ops/cpu/vec.h"

namespace onward {

// Pixel p = (n, s) of channel c is the element
//   c / block * block_stride + c % block + n * outer_stride + s * inner_stride.
struct ChannelView {
  // planes: the pixels s of a channel are neighbours (inner_stride = 1, block =
  // 1). Otherwise channels are neighbours, and a vector holds several of them.
  bool planes = true;
  int64_t channels = 1;
  // Channels in memory; those beyond `channels` hold zeros and are kept so.
  int64_t stored_channels = 1;
  int64_t outer = 1, outer_stride = 0;
  int64_t inner = 1, inner_stride = 1;
  int64_t block = 1, block_stride = 0;

  int64_t pixels() const { return outer * inner; }
};

// The view of a tensor of this shape, axis 1 being the channels (a 1-D tensor
// has one channel); nullopt if the layout has another form.
std::optional<ChannelView> ChannelViewOf(const Shape& shape, const Layout& layout);

// The channels that are worked on together; lanes without a channel (the end of
// a padded layout) take part with zeros.
struct ChannelGroup {
  int64_t first = 0;
  int lanes = 1;     // channels
  int width = 1;     // elements of a vector that may be touched
  int64_t base = 0;  // offset of the first channel's first pixel
};

template <typename T>
int64_t GroupCount(const ChannelView& v) {
  return v.planes ? v.channels : (v.stored_channels + kLanes<T> - 1) / kLanes<T>;
}

template <typename T>
ChannelGroup GroupAt(const ChannelView& v, int64_t g) {
  if (v.planes) return {g, 1, kLanes<T>, g * v.block_stride};
  const int64_t first = g * kLanes<T>;
  auto up_to = [&](int64_t end) {
    return static_cast<int>(std::clamp<int64_t>(end - first, 0, kLanes<T>));
  };
  return {first, up_to(v.channels), up_to(v.stored_channels),
          first / v.block * v.block_stride + first % v.block};
}

enum class WalkForm { kPlanes, kLanes, kSomeLanes };

// Calls f(offset, count, u) for the vectors that make up pixels [from, to) of a
// group. u is a constant that goes round 0..3: f may keep four independent
// accumulators.
template <typename T, WalkForm kForm, typename F>
inline void Walk(const ChannelView& v, const ChannelGroup& group, int64_t from, int64_t to,
                 const F& f) {
  constexpr bool kPlanes = kForm == WalkForm::kPlanes;
  const int count = kForm == WalkForm::kSomeLanes ? group.width : kLanes<T>;
  const int64_t step = kPlanes ? kLanes<T> : v.inner_stride;
  while (from < to) {
    const int64_t n = from / v.inner, s = from - n * v.inner;
    const int64_t length = std::min(v.inner - s, to - from);
    const int64_t vectors = kPlanes ? length / kLanes<T> : length;
    int64_t at = group.base + n * v.outer_stride + s * v.inner_stride;
    int64_t i = 0;
    for (; i + 4 <= vectors; i += 4, at += 4 * step) {
      f(at, count, std::integral_constant<int, 0>());
      f(at + step, count, std::integral_constant<int, 1>());
      f(at + 2 * step, count, std::integral_constant<int, 2>());
      f(at + 3 * step, count, std::integral_constant<int, 3>());
    }
    for (; i < vectors; ++i, at += step) f(at, count, std::integral_constant<int, 0>());
    if constexpr (kPlanes) {
      const int rest = static_cast<int>(length % kLanes<T>);
      if (rest > 0) f(at, rest, std::integral_constant<int, 1>());
    }
    from += length;
  }
}

// Calls f.template operator()<form>() with the form that fits the group.
template <typename T, typename F>
inline void WithForm(const ChannelView& v, const ChannelGroup& group, const F& f) {
  if (v.planes) {
    f.template operator()<WalkForm::kPlanes>();
  } else if (group.width == kLanes<T>) {
    f.template operator()<WalkForm::kLanes>();
  } else {
    f.template operator()<WalkForm::kSomeLanes>();
  }
}

// A per-channel number of a group as a vector: one lane per channel, or the
// same in all lanes for planes.
template <typename T, WalkForm kForm, typename Number>
inline Vec<T> PerChannel(const ChannelGroup& group, const Number* values) {
  Vec<T> v = {};
  if constexpr (kForm == WalkForm::kPlanes) {
    v = Splat(static_cast<T>(values[group.first]));
  } else {
    for (int i = 0; i < group.lanes; ++i) v[i] = static_cast<T>(values[group.first + i]);
  }
  return v;
}

// The same number for every channel of a group; zero in lanes without one.
template <typename T, WalkForm kForm>
inline Vec<T> OverChannels(const ChannelGroup& group, double value) {
  if constexpr (kForm == WalkForm::kPlanes) return Splat(static_cast<T>(value));
  return Keep<T>(Splat(static_cast<T>(value)), group.lanes);
}

// Normalisation as a function of an element. Forward pass and gradient both call
// this, so that both see the same bits.
template <typename T>
struct ChannelAffine {
  Vec<T> mean, factor, shift;
  Vec<T> operator()(Vec<T> x) const { return (x - mean) * factor + shift; }
};

// Mean, sum of squared deviations, and the two sums of BatchNormalization's
// gradient, of the channels of one group over some pixels. Parts are computed
// in cache-sized chunks around their own mean and merged in double (Chan et
// al.), so one pass over memory is as exact as two.
struct Moments {
  static constexpr int kMax = 8;
  double count = 0;
  std::array<double, kMax> mean{}, m2{};
  std::array<double, kMax> dy{};   // sum of dy
  std::array<double, kMax> dyx{};  // sum of dy * (x - mean)

  void Merge(const Moments& b);
};

// Splits BatchNormalization's work over threads: by channel groups where there
// are enough of them (statistics and use then share the cache), else by pixels.
struct ChannelSplit {
  int64_t groups = 1, parts = 1;  // parts > 1: by pixels
  int64_t grain = 1;              // groups per thread at least
  size_t moments_bytes() const { return parts > 1 ? parts * groups * sizeof(Moments) : 0; }
};

template <typename T>
ChannelSplit SplitOf(const ChannelView& v) {
  constexpr int64_t kSmall = 16384;  // elements
  const int64_t groups = GroupCount<T>(v), threads = Threads();
  const int64_t each = std::max<int64_t>(1, v.pixels() * (v.planes ? 1 : kLanes<T>));
  const int64_t grain = std::max<int64_t>(1, kSmall / each);
  const bool even = groups >= 4 * threads || groups % threads == 0;
  const bool by_pixels = threads > 1 && !even && v.channels * v.pixels() > kSmall;
  return {groups, by_pixels ? threads : 1, grain};
}

// For every group: m = measure(g, from, to) over the pixels, finish(g, m), then
// apply(g, from, to).
template <typename Measure, typename Finish, typename Apply>
void MeasureAndApply(const ChannelSplit& split, int64_t pixels, Moments* partial,
                     const Measure& measure, const Finish& finish, const Apply& apply) {
  if (split.parts == 1) {
    ParallelFor(split.groups, split.grain, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        finish(g, measure(g, 0, pixels));
        apply(g, 0, pixels);
      }
    });
    return;
  }
  auto edge = [&](int64_t part) { return pixels * part / split.parts; };
  ParallelFor(split.parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t g = 0; g < split.groups; ++g) {
        partial[p * split.groups + g] = measure(g, edge(p), edge(p + 1));
      }
    }
  });
  for (int64_t g = 0; g < split.groups; ++g) {
    Moments all = partial[g];
    for (int64_t p = 1; p < split.parts; ++p) all.Merge(partial[p * split.groups + g]);
    finish(g, all);
  }
  ParallelFor(split.parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t g = 0; g < split.groups; ++g) apply(g, edge(p), edge(p + 1));
    }
  });
}

// A float or double tensor of n elements from and to double.
void ReadDoubles(const Tensor& t, double* values);
void WriteDoubles(const double* values, Tensor& t);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_CHANNEL_VIEW_H_

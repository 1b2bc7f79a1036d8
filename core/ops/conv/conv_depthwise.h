// SPDX-License-Identifier: Apache-2.0
// What the depthwise convolutions share: their shape, and taps by vectors.
#ifndef ONWARD_CORE_OPS_CONV_CONV_DEPTHWISE_H_
#define ONWARD_CORE_OPS_CONV_CONV_DEPTHWISE_H_

#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/device/plan/window.h"
#include "core/ops/conv/conv_direct_work.h"
#include "core/ops/cpu/vec.h"

namespace onward::direct {

inline constexpr int64_t kMaxTaps = 49;

struct DepthwiseProblem {
  struct Axis {
    int64_t in, out, pad;
  };
  int64_t batch, channels, blocks, kernel, stride;
  Axis h, w;

  explicit DepthwiseProblem(const ConvGeometry& g)
      : batch(g.batch),
        channels(g.in_channels),
        blocks(CeilDiv(g.in_channels, kLane)),
        kernel(g.window.kernel[0]),
        stride(g.window.strides[0]),
        h{g.window.in[0], g.window.out[0], g.window.pads_begin[0]},
        w{g.window.in[1], g.window.out[1], g.window.pads_begin[1]} {}

  int64_t taps() const { return kernel * kernel; }
  // Multiplications of a pass.
  int64_t work() const { return batch * blocks * kLane * h.out * w.out * taps(); }
};

// The taps of a block of channels, from [lanes][taps] to [taps][8].
inline void PackTaps(const float* w, int lanes, int64_t taps, float* to) {
  int64_t t = 0;
  for (; t + kLane <= taps; t += kLane) {
    Vec<float> v[kLane] = {};
    for (int c = 0; c < lanes; ++c) v[c] = Load(w + c * taps + t);
    Transpose8(v);
    for (int i = 0; i < kLane; ++i) Store(to + (t + i) * kLane, v[i]);
  }
  for (; t < taps; ++t) {
    for (int c = 0; c < kLane; ++c) to[t * kLane + c] = c < lanes ? w[c * taps + t] : 0.0f;
  }
}

template <int N>
using Number = std::integral_constant<int, N>;

// f(Number<i>()) for i in [0, N).
template <int N, typename F>
[[gnu::always_inline]] constexpr void ForConstants(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (f(Number<I>()), ...);
  }
  (std::make_integer_sequence<int, N>());
}

}  // namespace onward::direct

#endif  // ONWARD_CORE_OPS_CONV_CONV_DEPTHWISE_H_

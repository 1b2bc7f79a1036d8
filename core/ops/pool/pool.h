// SPDX-License-Identifier: Apache-2.0
// Loops of the pools over one plane: the spatial positions of one channel
// (plain layout), or of 8 channels at once (channel blocks).
#ifndef ONWARD_CORE_OPS_POOL_POOL_H_
#define ONWARD_CORE_OPS_POOL_POOL_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/device/kernel.h"
#include "core/device/plan/window.h"
#include "core/ops/cpu/vec.h"

namespace onward {

// The taps of every window along one axis.
struct PoolAxis {
  struct Span {
    int64_t begin = 0;    // the first input position inside the input
    int64_t count = 1;    // taps inside the input
    int64_t divisor = 1;  // taps that an average counts
  };
  int64_t in = 1, dilation = 1;
  std::vector<Span> spans = {Span()};  // one per output position
};

// Three axes, the missing ones in front with size 1.
struct PoolPlan {
  std::array<PoolAxis, 3> axes;
  int64_t in = 1, out = 1;     // positions of a plane
  double work = 1;             // taps of all windows, roughly
  bool empty_windows = false;  // some window lies in the padding alone

  // An average counts padding too if asked for, except what lies beyond the
  // stated pads (ceil_mode).
  PoolPlan(const Window& window, bool count_include_pad);
};

// One window: `at` is its first input position; tap (d, h, w) lies at
// at + d*step_d + h*step_h + w*step_w.
struct PoolWindow {
  int64_t at, depth, height, width, divisor;
};

// Calls body(output position, window) in row-major order.
template <typename Body>
inline void ForWindows(const PoolPlan& plan, const Body& body) {
  const auto& [d, h, w] = plan.axes;
  int64_t out = 0;
  for (const PoolAxis::Span& sd : d.spans) {
    for (const PoolAxis::Span& sh : h.spans) {
      const int64_t line = (sd.begin * h.in + sh.begin) * w.in;
      const int64_t divisor = sd.divisor * sh.divisor;
      for (const PoolAxis::Span& sw : w.spans) {
        body(out++,
             PoolWindow{line + sw.begin, sd.count, sh.count, sw.count, divisor * sw.divisor});
      }
    }
  }
}

// Calls body(input position) for the taps of a window in row-major order. The
// usual sizes get loops of constant length, which the compiler unrolls.
template <typename Body>
inline __attribute__((always_inline)) void ForTaps(const PoolPlan& plan, const PoolWindow& window,
                                                   const Body& body) {
  const auto& [d, h, w] = plan.axes;
  const int64_t step_h = h.dilation * w.in, step_d = d.dilation * h.in * w.in;
  if (window.depth == 1 && window.height == 2 && window.width == 2) {
    for (int64_t kh = 0; kh < 2; ++kh) {
      for (int64_t kw = 0; kw < 2; ++kw) body(window.at + kh * step_h + kw * w.dilation);
    }
    return;
  }
  if (window.depth == 1 && window.height == 3 && window.width == 3) {
    for (int64_t kh = 0; kh < 3; ++kh) {
      for (int64_t kw = 0; kw < 3; ++kw) body(window.at + kh * step_h + kw * w.dilation);
    }
    return;
  }
  for (int64_t kd = 0; kd < window.depth; ++kd) {
    for (int64_t kh = 0; kh < window.height; ++kh) {
      const int64_t line = window.at + kd * step_d + kh * step_h;
      for (int64_t kw = 0; kw < window.width; ++kw) body(line + kw * w.dilation);
    }
  }
}

// One channel: position p is element p.
template <typename T>
struct OneChannel {
  using Element = T;
  using Value = T;
  using Index = int64_t;
  static constexpr int64_t kStep = 1;
  static Value Get(const T* plane, int64_t p) { return plane[p]; }
  static void Put(T* plane, int64_t p, Value v) { plane[p] = v; }
  static Value Of(T v) { return v; }
};

// 8 channels of a block of B.
template <int B>
struct EightChannels {
  using Element = float;
  using Value = Vec<float>;
  using Index = IntVec<float>;
  static constexpr int64_t kStep = B;
  static Value Get(const float* plane, int64_t p) { return Load(plane + p * B); }
  static void Put(float* plane, int64_t p, Value v) { Store(plane + p * B, v); }
  static Value Of(float v) { return Splat(v); }
};

// A NaN wins, as in other frameworks: it must not vanish in a pool.
template <typename V>
inline auto Exceeds(V v, V best) {
  return (v > best) | (v != v);
}

template <typename T>
constexpr T LowestValue() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}

template <typename C, typename T = typename C::Element>
void MaxPlane(const PoolPlan& plan, const T* x, T* y) {
  ForWindows(plan, [&](int64_t out, const PoolWindow& window) {
    auto best = C::Of(LowestValue<T>());
    ForTaps(plan, window, [&](int64_t p) {
      const auto v = C::Get(x, p);
      best = Exceeds(v, best) ? v : best;
    });
    C::Put(y, out, best);
  });
}

// The first largest element of a window and which of its taps that is.
template <typename C>
struct Winner {
  typename C::Value best;
  typename C::Index tap;
};

template <typename C, typename T = typename C::Element>
inline __attribute__((always_inline)) Winner<C> FindWinner(const PoolPlan& plan,
                                                           const PoolWindow& window, const T* x) {
  Winner<C> winner{C::Of(LowestValue<T>()), {}};
  typename C::Index tap{};
  ForTaps(plan, window, [&](int64_t p) {
    const auto v = C::Get(x, p);
    const auto larger = Exceeds(v, winner.best);
    winner.best = larger ? v : winner.best;
    winner.tap = larger ? tap : winner.tap;
    tap += 1;
  });
  return winner;
}

// Gives the gradient of a window to one of its taps: added to what dx holds there, or,
// where no two windows share a position, written.
template <typename C, bool kAdd, typename T = typename C::Element>
inline __attribute__((always_inline)) void GiveToTap(const PoolPlan& plan, const PoolWindow& window,
                                                     typename C::Value gradient,
                                                     typename C::Index winner, T* dx) {
  typename C::Index tap{};
  ForTaps(plan, window, [&](int64_t p) {
    const auto part = winner == tap ? gradient : C::Of(T{0});
    C::Put(dx, p, kAdd ? C::Get(dx, p) + part : part);
    tap += 1;
  });
}

// dx has to be zero at the start.
template <typename C, typename T = typename C::Element>
void MaxGradPlane(const PoolPlan& plan, const T* dy, const T* x, T* dx) {
  ForWindows(plan, [&](int64_t out, const PoolWindow& window) {
    GiveToTap<C, true>(plan, window, C::Get(dy, out), FindWinner<C>(plan, window, x).tap, dx);
  });
}

template <typename C, typename T = typename C::Element>
void AveragePlane(const PoolPlan& plan, const T* x, T* y) {
  ForWindows(plan, [&](int64_t out, const PoolWindow& window) {
    auto sum = C::Of(T{0});
    ForTaps(plan, window, [&](int64_t p) { sum += C::Get(x, p); });
    C::Put(y, out, sum / static_cast<T>(std::max<int64_t>(window.divisor, 1)));
  });
}

// dx has to be zero at the start.
template <typename C, typename T = typename C::Element>
void AverageGradPlane(const PoolPlan& plan, const T* dy, T* dx) {
  ForWindows(plan, [&](int64_t out, const PoolWindow& window) {
    const auto part = C::Get(dy, out) / static_cast<T>(std::max<int64_t>(window.divisor, 1));
    ForTaps(plan, window, [&](int64_t p) { C::Put(dx, p, C::Get(dx, p) + part); });
  });
}

// GlobalAveragePool, GlobalMaxPool, GlobalLpPool and the gradient of the first.
void RegisterGlobalPoolKernels(KernelTable& table);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_POOL_POOL_H_

// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions and their input gradients: a vector holds 8 channels,
// up to 8 neighbours of a row of the result stay in registers.
//
//   forward         Y[oh][ow] = sum over kh, kw of W[kh][kw] * X[oh*s + kh - p][ow*s + kw - p]
//   input gradient  dX[ih][iw] = sum over kh, kw of W[kh][kw] * dY[oh][ow],
//                   where oh*s + kh - p = ih and ow*s + kw - p = iw
//
// Rows of taps that meet the padding are left out. Columns that meet it are
// left out by segments at the border; others do not check.
#include "core/ops/conv/conv_depthwise.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/ops/conv/conv_direct.h"
#include "core/ops/conv/conv_direct_work.h"
#include "core/ops/cpu/vec.h"

namespace onward::direct {
namespace {

constexpr int kMaxSegment = 8;

// One image of a block of channels.
struct Plane {
  const float* x;
  const float* taps;
  float* y;
  // What follows a forward sum. `residual` may be null.
  const float* residual = nullptr;
  Vec<float> bias = {};
  int lanes = kLane;
  Bounds bounds = {};
};

// Rows of the source that rows of taps meet: `count` of them, `step` apart.
struct Rows {
  const float* first;
  int64_t step, count;
  const float* taps;
  int64_t tap_step;
};

// T results of a row, the first of which starts to read at `column`.
template <int K, int S, int T, bool kInside>
[[gnu::always_inline]] inline void SumConv(const Rows& rows, int64_t column, int64_t width,
                                           Vec<float> (&sum)[T]) {
  const float* x = rows.first + column * kLane;
  const float* taps = rows.taps;
  for (int64_t r = 0; r < rows.count; ++r, x += rows.step, taps += rows.tap_step) {
    Vec<float> w[K];
    ForConstants<K>([&](auto k) { w[k] = Load(taps + k * kLane); });
    ForConstants<(T - 1) * S + K>([&](auto j) {
      if (!kInside && (column + j < 0 || column + j >= width)) return;
      const Vec<float> value = Load(x + j * kLane);
      ForConstants<K>([&](auto k) {
        constexpr int at = j - k;
        if constexpr (at >= 0 && at % S == 0 && at / S < T) {
          sum[at / S] = _mm256_fmadd_ps(value, w[k], sum[at / S]);
        }
      });
    });
  }
}

template <int K, int S, int T>
void ConvPlane(const DepthwiseProblem& p, const Plane& plane) {
  const int64_t in = p.w.in, out = p.w.out, pad = p.w.pad;
  const bool follow = plane.residual != nullptr || plane.bounds.any();
  float* y = plane.y;
  for (int64_t oh = 0; oh < p.h.out; ++oh, y += out * kLane) {
    const int64_t ih = oh * S - p.h.pad;
    const int64_t first = std::clamp<int64_t>(-ih, 0, K);
    const int64_t last = std::clamp<int64_t>(p.h.in - ih, first, K);
    const Rows rows{plane.x + (first < last ? (ih + first) * in * kLane : 0), in * kLane,
                    last - first, plane.taps + first * K * kLane, K * kLane};
    for (int64_t start = 0; start < out; start += T) {
      // The last segment may lie over the one before.
      const int64_t ow = std::min(start, out - T), column = ow * S - pad;
      Vec<float> sum[T];
      ForConstants<T>([&](auto i) { sum[i] = plane.bias; });
      if (column >= 0 && column + (T - 1) * S + K <= in) {
        SumConv<K, S, T, true>(rows, column, in, sum);
      } else {
        SumConv<K, S, T, false>(rows, column, in, sum);
      }
      if (follow) {
        const float* residual = plane.residual;
        if (residual != nullptr) residual += (oh * out + ow) * kLane;
        ForConstants<T>([&](auto i) {
          if (residual != nullptr) sum[i] += Load(residual + i * kLane);
          const Vec<float> v = Within(Splat(plane.bounds.low), sum[i], Splat(plane.bounds.high));
          sum[i] = Keep<float>(v, plane.lanes);
        });
      }
      ForConstants<T>([&](auto i) { Store(y + (ow + i) * kLane, sum[i]); });
    }
  }
}

// T results of a row, the first of which is column a*S - pad; column a + j of dY
// reaches j*S + k by tap k. T is a multiple of S.
template <int K, int S, int T, bool kInside>
[[gnu::always_inline]] inline void SumGrad(const Rows& rows, int64_t a, int64_t width,
                                           Vec<float> (&sum)[T]) {
  constexpr int kBefore = (K - 1) / S;
  const float* x = rows.first + (a - kBefore) * kLane;
  const float* taps = rows.taps;
  for (int64_t r = 0; r < rows.count; ++r, x += rows.step, taps += rows.tap_step) {
    Vec<float> w[K];
    ForConstants<K>([&](auto k) { w[k] = Load(taps + k * kLane); });
    ForConstants<kBefore + T / S>([&](auto j) {
      const int64_t column = a - kBefore + j;
      if (!kInside && (column < 0 || column >= width)) return;
      const Vec<float> value = Load(x + j * kLane);
      ForConstants<K>([&](auto k) {
        constexpr int at = (j - kBefore) * S + k;
        if constexpr (at >= 0 && at < T) sum[at] = _mm256_fmadd_ps(value, w[k], sum[at]);
      });
    });
  }
}

// plane.x is dY, plane.y is dX.
template <int K, int S, int T>
void GradPlane(const DepthwiseProblem& p, const Plane& plane) {
  const int64_t in = p.w.in, out = p.w.out, pad = p.w.pad, row = out * kLane;
  float* y = plane.y;
  for (int64_t ih = 0; ih < p.h.in; ++ih, y += in * kLane) {
    // Taps kh + i*S meet rows oh - i of dY.
    const int64_t kh = (ih + p.h.pad) % S, oh = (ih + p.h.pad) / S;
    const int64_t first = std::max<int64_t>(oh - p.h.out + 1, 0);
    const int64_t count = std::max<int64_t>(std::min((K - 1 - kh) / S, oh) - first + 1, 0);
    const Rows rows{plane.x + (count > 0 ? (oh - first) * row : 0), -row, count,
                    plane.taps + (count > 0 ? (kh + first * S) * K * kLane : 0), S * K * kLane};
    for (int64_t a = pad / S; a * S - pad < in; a += T / S) {
      const int64_t iw = a * S - pad;
      Vec<float> sum[T] = {};
      if (iw >= 0 && iw + T <= in && a >= (K - 1) / S && a + (T - 1) / S < out) {
        SumGrad<K, S, T, true>(rows, a, out, sum);
        ForConstants<T>([&](auto i) { Store(y + (iw + i) * kLane, sum[i]); });
      } else {
        SumGrad<K, S, T, false>(rows, a, out, sum);
        ForConstants<T>([&](auto i) {
          if (iw + i >= 0 && iw + i < in) Store(y + (iw + i) * kLane, sum[i]);
        });
      }
    }
  }
}

using PlaneFunction = void (*)(const DepthwiseProblem&, const Plane&);
using ByLength = std::array<PlaneFunction, kMaxSegment + 1>;

template <int K, int S, bool kGrad>
constexpr ByLength MakeByLength() {
  ByLength table{};
  ForConstants<kMaxSegment>([&](auto i) {
    constexpr int T = i + 1;
    if constexpr (!kGrad) {
      table[T] = ConvPlane<K, S, T>;
    } else if constexpr (T % S == 0) {
      table[T] = GradPlane<K, S, T>;
    }
  });
  return table;
}

template <bool kGrad>
PlaneFunction PlaneFunctionOf(int64_t kernel, int64_t stride, int64_t length) {
  static constexpr ByLength kTable[][2] = {
      {MakeByLength<3, 1, kGrad>(), MakeByLength<3, 2, kGrad>()},
      {MakeByLength<5, 1, kGrad>(), MakeByLength<5, 2, kGrad>()},
      {MakeByLength<7, 1, kGrad>(), MakeByLength<7, 2, kGrad>()}};
  return kTable[kernel / 2 - 1][stride == 2][length];
}

class Depthwise {
 public:
  Depthwise(const ConvGeometry& g, bool grad, const Bounds& bounds, const ConstantInput& constant)
      : p_(g), grad_(grad), bounds_(bounds), threads_(p_.work() < kSmallWork ? 1 : Threads()) {
    const auto length = [](int64_t n) { return CeilDiv(n, CeilDiv(n, kMaxSegment)); };
    const int64_t s = p_.stride;
    // The first segment of a gradient starts at a column a*s - pad <= 0.
    plane_ =
        grad ? PlaneFunctionOf<true>(p_.kernel, s, CeilDiv(length(p_.w.in + p_.w.pad % s), s) * s)
             : PlaneFunctionOf<false>(p_.kernel, s, length(p_.w.out));
    if (!constant) return;
    const std::string form = absl::StrCat("depthwise ", p_.channels, " ", p_.taps());
    constant_ = constant.Arranged<std::vector<float>>(form, [&] {
      std::vector<float> packed(p_.blocks * p_.taps() * kLane);
      for (int64_t b = 0; b < p_.blocks; ++b) {
        PackBlock((*constant).data<float>(), b, packed.data() + b * p_.taps() * kLane);
      }
      return packed;
    });
  }

  // Parts get images, like those of 1x1 convolutions before and behind, so that
  // values stay in a core's cache; blocks of channels where images are few.
  void Run(const ConvArguments& a) const {
    const bool by_images = p_.batch % threads_ == 0 || p_.batch >= 8 * threads_;
    const int64_t pieces = by_images ? p_.batch : p_.blocks;
    const int64_t parts = ItemsFor(pieces, threads_);
    ParallelItems(parts, threads_, [&](int64_t part, int64_t) {
      const int64_t begin = pieces * part / parts, end = pieces * (part + 1) / parts;
      if (by_images) {
        RunPart(a, begin, end, 0, p_.blocks);
      } else {
        RunPart(a, 0, p_.batch, begin, end);
      }
    });
  }

 private:
  void PackBlock(const float* w, int64_t block, float* to) const {
    PackTaps(w + block * kLane * p_.taps(), LanesOf(p_.channels, block), p_.taps(), to);
  }

  void RunPart(const ConvArguments& a, int64_t image, int64_t image_end, int64_t block,
               int64_t block_end) const {
    int64_t x_size = p_.h.in * p_.w.in * kLane, y_size = p_.h.out * p_.w.out * kLane;
    if (grad_) std::swap(x_size, y_size);
    alignas(32) float taps[kMaxTaps * kLane];
    Plane plane{.x = nullptr, .taps = taps, .y = nullptr, .bounds = bounds_};
    for (int64_t b = block; b < block_end; ++b) {
      plane.lanes = LanesOf(p_.channels, b);
      if (constant_ == nullptr) {
        PackBlock(a.w, b, taps);
      } else {
        plane.taps = constant_->data() + b * p_.taps() * kLane;
      }
      if (a.bias != nullptr) plane.bias = Load(a.bias + b * kLane, plane.lanes);
      for (int64_t n = image; n < image_end; ++n) {
        const int64_t index = n * p_.blocks + b;
        plane.x = a.x + index * x_size;
        plane.y = a.y + index * y_size;
        if (a.residual != nullptr) plane.residual = a.residual + index * y_size;
        plane_(p_, plane);
      }
    }
  }

  DepthwiseProblem p_;
  bool grad_;
  Bounds bounds_;
  int64_t threads_;
  PlaneFunction plane_;
  // Taps of all blocks, where they never change.
  std::shared_ptr<const std::vector<float>> constant_;
};

Prepared<ConvArguments> Prepare(const ConvGeometry& g, bool grad, const Bounds& bounds,
                                const ConstantInput& constant) {
  const auto conv = std::make_shared<const Depthwise>(g, grad, bounds, constant);
  return {[conv](const ConvArguments& a) { conv->Run(a); }, 0};
}

}  // namespace

Prepared<ConvArguments> DepthwiseConv(const ConvGeometry& g, const Bounds& bounds,
                                      const ConstantInput& constant) {
  return Prepare(g, false, bounds, constant);
}

Prepared<ConvArguments> DepthwiseInputGrad(const ConvGeometry& g, const ConstantInput& constant) {
  return Prepare(g, true, {}, constant);
}

}  // namespace onward::direct

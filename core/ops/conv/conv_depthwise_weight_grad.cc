// SPDX-License-Identifier: Apache-2.0
// The weight gradient of a depthwise convolution, and that of its bias:
//
//   dW[kh][kw] = sum over n, oh, ow of dY[oh][ow] * X[oh*s + kh - p][ow*s + kw - p]
//
// The taps of 8 channels (of 5x5: two rows of them at a time, of 7x7 one) stay in registers
// while the images pass by. Where blocks of channels are too few for the
// threads, images are dealt to splits, which are added in order.
#include <immintrin.h>

#include <algorithm>
#include <memory>

#include "core/base/parallel.h"
#include "core/ops/conv/conv_depthwise.h"
#include "core/ops/conv/conv_direct.h"
#include "core/ops/conv/conv_direct_work.h"
#include "core/ops/conv/winograd_work.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/vec.h"

namespace onward::direct {
namespace {

// One channel block of some images, `*_image` apart.
struct Images {
  const float* dy;
  const float* x;
  int64_t count, dy_image, x_image;
};

// Taps [r0, r1) of column k, with one pixel of dY.
template <int K, int R, int kFirst, int kLast>
[[gnu::always_inline]] inline void AddColumn(const float* x, int64_t row, Vec<float> gradient,
                                             int k, Vec<float> (&sum)[R][K]) {
#pragma GCC unroll 3
  for (int r = kFirst; r < kLast; ++r) {
    sum[r][k] = _mm256_fmadd_ps(gradient, Load(x + r * row), sum[r][k]);
  }
}

// One row of dY with the rows of X that taps [kFirst, kLast) meet; x is where the
// first of all R would be. With stride 1, each column of X meets a window of K
// columns of dY, in which zeros stand for what lies outside.
template <int K, int R, int kFirst, int kLast>
[[gnu::always_inline]] inline void AddRowByWindow(const DepthwiseProblem& p, const float* dy,
                                                  const float* x, Vec<float> (&sum)[R][K]) {
  const int64_t row = p.w.in * kLane, pad = p.w.pad;
  const int64_t columns = std::min(p.w.in, p.w.out + K - 1 - pad);
  const int64_t loaded = std::clamp<int64_t>(p.w.out - pad, 0, columns);
  Vec<float> window[K] = {};
#pragma GCC unroll 7
  for (int k = 0; k + 1 < K; ++k) {
    const int64_t ow = pad - 1 - k;
    if (ow >= 0 && ow < p.w.out) window[k] = Load(dy + ow * kLane);
  }
  const auto add = [&](int64_t iw, Vec<float> gradient) __attribute__((always_inline)) {
#pragma GCC unroll 7
    for (int k = K - 1; k > 0; --k) window[k] = window[k - 1];
    window[0] = gradient;
#pragma GCC unroll 7
    for (int k = 0; k < K; ++k) {
      AddColumn<K, R, kFirst, kLast>(x + iw * kLane, row, window[k], k, sum);
    }
  };
  for (int64_t iw = 0; iw < loaded; ++iw) add(iw, Load(dy + (iw + pad) * kLane));
  for (int64_t iw = loaded; iw < columns; ++iw) add(iw, Vec<float>{});
}

// The same for other strides: columns at the border check their taps.
template <int K, int S, int R, int kFirst, int kLast>
[[gnu::always_inline]] inline void AddRowByPixel(const DepthwiseProblem& p, const float* dy,
                                                 const float* x, Vec<float> (&sum)[R][K]) {
  const int64_t row = p.w.in * kLane, in = p.w.in, pad = p.w.pad;
  const int64_t low = std::min(CeilDiv(pad, S), p.w.out);
  const int64_t high = std::clamp((in + pad - K + S) / S, low, p.w.out);
  const auto at_border = [&](int64_t ow) __attribute__((always_inline)) {
#pragma GCC unroll 7
    for (int k = 0; k < K; ++k) {
      const int64_t iw = ow * S - pad + k;
      if (iw < 0 || iw >= in) continue;
      AddColumn<K, R, kFirst, kLast>(x + iw * kLane, row, Load(dy + ow * kLane), k, sum);
    }
  };
  for (int64_t ow = 0; ow < low; ++ow) at_border(ow);
  for (int64_t ow = low; ow < high; ++ow) {
    const float* from = x + (ow * S - pad) * kLane;
    const Vec<float> gradient = Load(dy + ow * kLane);
    // The next rows.
    for (int r = 0; r < S; ++r) _mm_prefetch(from + (R + r) * row, _MM_HINT_T0);
#pragma GCC unroll 7
    for (int k = 0; k < K; ++k) {
      AddColumn<K, R, kFirst, kLast>(from + k * kLane, row, gradient, k, sum);
    }
  }
  for (int64_t ow = high; ow < p.w.out; ++ow) at_border(ow);
}

template <int K, int S, int R, int kFirst, int kLast>
[[gnu::always_inline]] inline void AddRow(const DepthwiseProblem& p, const float* dy,
                                          const float* x, Vec<float> (&sum)[R][K]) {
  if constexpr (S == 1) {
    AddRowByWindow<K, R, kFirst, kLast>(p, dy, x, sum);
  } else {
    AddRowByPixel<K, S, R, kFirst, kLast>(p, dy, x, sum);
  }
}

// Rows [kh, kh + R) of the taps, to sums [tap][8].
template <int K, int S, int R>
void SumTaps(const DepthwiseProblem& p, const Images& images, int64_t kh, float* sums) {
  Vec<float> sum[R][K] = {};
  const int64_t row = p.w.in * kLane, in = p.h.in;
  for (int64_t n = 0; n < images.count; ++n) {
    const float* dy = images.dy + n * images.dy_image;
    for (int64_t oh = 0; oh < p.h.out; ++oh, dy += p.w.out * kLane) {
      const int64_t ih = oh * S - p.h.pad + kh;
      const float* x = images.x + n * images.x_image + ih * row;
      // One row of taps in the padding is usual; more take one row at a time.
      if (ih >= 0 && ih + R <= in) {
        AddRow<K, S, R, 0, R>(p, dy, x, sum);
      } else if (R > 1 && ih == -1 && R - 1 <= in) {
        AddRow<K, S, R, 1, R>(p, dy, x, sum);
      } else if (R > 1 && ih >= 0 && ih + R - 1 == in) {
        AddRow<K, S, R, 0, R - 1>(p, dy, x, sum);
      } else {
        ForConstants<R>([&](auto r) __attribute__((always_inline)) {
          if (ih + r >= 0 && ih + r < in) AddRow<K, S, R, r, r + 1>(p, dy, x, sum);
        });
      }
    }
  }
#pragma GCC unroll 3
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 7
    for (int k = 0; k < K; ++k) Store(sums + ((kh + r) * K + k) * kLane, sum[r][k]);
  }
}

template <int S>
void SumAllTaps(const DepthwiseProblem& p, const Images& images, float* sums) {
  if (p.kernel == 3) return SumTaps<3, S, 3>(p, images, 0, sums);
  if (p.kernel == 7) {
    for (int64_t kh = 0; kh < 7; ++kh) SumTaps<7, S, 1>(p, images, kh, sums);
    return;
  }
  SumTaps<5, S, 2>(p, images, 0, sums);
  SumTaps<5, S, 2>(p, images, 2, sums);
  SumTaps<5, S, 1>(p, images, 4, sums);
}

class WeightGrad {
 public:
  explicit WeightGrad(const ConvGeometry& g) : p_(g) {
    parts_ = p_.work() < kSmallWork ? 1 : Threads();
    splits_ = p_.blocks >= 8 * parts_ ? 1 : std::min(parts_, p_.batch);
  }

  size_t workspace_bytes() const { return splits_ * p_.blocks * size() * sizeof(float); }

  void Run(const WeightGradArguments& a) const {
    ParallelItems(splits_ * p_.blocks, parts_, [&](int64_t job, int64_t) { SumBlock(a, job); });
    const float* sums = At<float>(a.workspace, 0);
    for (int64_t c = 0; c < p_.channels; ++c) {
      const float* block = sums + c / kLane * size() + c % kLane;
      const auto total = [&](int64_t t) {
        float sum = block[t * kLane];
        for (int64_t s = 1; s < splits_; ++s) sum += block[s * p_.blocks * size() + t * kLane];
        return sum;
      };
      for (int64_t t = 0; t < p_.taps(); ++t) a.dw[c * p_.taps() + t] = total(t);
      if (a.db != nullptr) a.db[c] = total(p_.taps());
    }
  }

 private:
  // [tap][8], then the sum of dY.
  int64_t size() const { return (p_.taps() + 1) * kLane; }

  void SumBlock(const WeightGradArguments& a, int64_t job) const {
    const int64_t split = job / p_.blocks, block = job % p_.blocks;
    const int64_t first = p_.batch * split / splits_, last = p_.batch * (split + 1) / splits_;
    const int64_t out = p_.h.out * p_.w.out * kLane, in = p_.h.in * p_.w.in * kLane;
    const Images images{a.dy + (first * p_.blocks + block) * out,
                        a.x + (first * p_.blocks + block) * in, last - first, p_.blocks * out,
                        p_.blocks * in};
    float* sums = At<float>(a.workspace, job * size() * sizeof(float));
    if (p_.stride == 1) {
      SumAllTaps<1>(p_, images, sums);
    } else {
      SumAllTaps<2>(p_, images, sums);
    }
    if (a.db == nullptr) return;
    Vec<float> sum = {};
    for (int64_t n = 0; n < images.count; ++n) {
      const float* dy = images.dy + n * images.dy_image;
      for (int64_t i = 0; i < out; i += kLane) sum += Load(dy + i);
    }
    Store(sums + p_.taps() * kLane, sum);
  }

  DepthwiseProblem p_;
  int64_t parts_ = 1, splits_ = 1;
};

}  // namespace

Prepared<WeightGradArguments> DepthwiseWeightGrad(const ConvGeometry& g) {
  const auto grad = std::make_shared<const WeightGrad>(g);
  return {[grad](const WeightGradArguments& a) { grad->Run(a); }, grad->workspace_bytes()};
}

}  // namespace onward::direct

// SPDX-License-Identifier: Apache-2.0
// The weight gradient of a 1x1 convolution, and that of its bias:
//
//   dW[k][c] = sum over pixels p of dY[p][k] * X[p][c],   dB[k] = sum of dY[p][k]
//
// A tile of 4 output channels by 24 input channels (8 by 8, 4 by 16 at the rest)
// stays in registers while the pixels of a chunk pass by; sums go to memory
// between chunks. Where there are many channels, threads share them; where there
// are many pixels, each part sums its own, and parts are added in order.
#include <immintrin.h>

#include <algorithm>
#include <memory>

#include "core/base/parallel.h"
#include "core/ops/conv/conv_direct.h"
#include "core/ops/conv/conv_direct_work.h"
#include "core/ops/conv/winograd_work.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/vec.h"

namespace onward::direct {
namespace {

// Some pixels of some images, from the first one on.
struct Pixels {
  const float* dy;
  const float* x;
  int64_t images, pixels, dy_image, x_image, block_step;
};

// sums[r][i] (+)= sum over pixels of dy[r] * x[i], for R channels of dY and W
// blocks of X; only `rows` of the R are stored.
template <int R, int W>
void SumTile(const Pixels& p, bool add, int rows, float* sums, int64_t sums_row) {
  Vec<float> sum[R][W] = {};
  for (int64_t n = 0; n < p.images; ++n) {
    const float* dy = p.dy + n * p.dy_image;
    const float* x = p.x + n * p.x_image;
    for (int64_t i = 0; i < p.pixels; ++i, dy += kLane, x += kLane) {
      _mm_prefetch(dy + p.block_step, _MM_HINT_T0);  // the next block
      Vec<float> value[W];
#pragma GCC unroll 3
      for (int j = 0; j < W; ++j) value[j] = Load(x + j * p.block_step);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Vec<float> gradient = _mm256_broadcast_ss(dy + r);
#pragma GCC unroll 3
        for (int j = 0; j < W; ++j) sum[r][j] = _mm256_fmadd_ps(gradient, value[j], sum[r][j]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    if (r >= rows) break;
    for (int j = 0; j < W; ++j) {
      float* to = sums + r * sums_row + j * kLane;
      Store(to, add ? Load(to) + sum[r][j] : sum[r][j]);
    }
  }
}

class WeightGrad {
 public:
  explicit WeightGrad(const ConvGeometry& g)
      : pixels_(g.window.in_elements()),
        in_(g.in_channels),
        out_(g.out_channels),
        in_blocks_(CeilDiv(in_, kLane)),
        out_blocks_(CeilDiv(out_, kLane)),
        chunks_(g.batch, pixels_),
        parts_(g.batch * pixels_ * in_ * out_ < kSmallWork ? 1 : Threads()) {
    // Sharing pixels costs sums of its own per part; sharing channels makes every
    // part read all of X or dY.
    by_pixels_ = g.batch * pixels_ * std::min(in_, out_) > parts_ * in_ * out_ ||
                 std::max(in_blocks_, out_blocks_) < 4 * parts_;
    if (by_pixels_) parts_ = std::min(parts_, chunks_.units());
    own_sums_ = in_ % kLane != 0 || (by_pixels_ && parts_ > 1);
    WorkspacePlan plan;
    if (own_sums_) sums_at_ = plan.Add(out_ * row() * sizeof(float));
    bias_at_ = plan.Add(out_blocks_ * kLane * sizeof(float));
    part_bytes_ = plan.bytes();
  }

  size_t workspace_bytes() const { return (by_pixels_ ? parts_ : 1) * part_bytes_; }

  void Run(const WeightGradArguments& a) const {
    ParallelFor(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) RunPart(a, p);
    });
    if (own_sums_) AddParts(a);
    if (a.db != nullptr) AddBiasParts(a);
  }

 private:
  int64_t row() const { return in_blocks_ * kLane; }
  float* PartAt(const WeightGradArguments& a, int64_t part, size_t offset) const {
    return At<float>(a.workspace, (by_pixels_ ? part : 0) * part_bytes_ + offset);
  }

  void RunPart(const WeightGradArguments& a, int64_t part) const {
    int64_t unit = 0, unit_end = chunks_.units(), in = 0, in_end = in_blocks_, out = 0,
            out_end = out_blocks_;
    const auto share = [&](int64_t& begin, int64_t& end) {
      begin = end * part / parts_;
      end = end * (part + 1) / parts_;
    };
    if (by_pixels_) {
      share(unit, unit_end);
    } else if (in_ > out_) {
      share(in, in_end);
    } else {
      share(out, out_end);
    }
    float* sums = own_sums_ ? PartAt(a, part, sums_at_) : a.dw;
    float* bias = a.db == nullptr ? nullptr : PartAt(a, part, bias_at_);
    // Where input channels are shared, the first part sums up dY.
    if (!by_pixels_ && in_ > out_ && part > 0) bias = nullptr;
    bool add = false;
    chunks_.ForEach(unit, unit_end, [&](const PixelChunks::Chunk& chunk) {
      for (int64_t c = in; c < in_end;) {
        const int width = in_end - c == 4 ? 2 : static_cast<int>(std::min<int64_t>(3, in_end - c));
        SumBlocks(a, chunk, add, c, width, out, out_end, sums);
        c += width;
      }
      if (bias != nullptr) SumBias(a, chunk, add, out, out_end, bias);
      add = true;
    });
  }

  void SumBlocks(const WeightGradArguments& a, const PixelChunks::Chunk& chunk, bool add, int64_t c,
                 int width, int64_t out, int64_t out_end, float* sums) const {
    const int64_t plane = pixels_ * kLane, at = chunk.pixel * kLane;
    Pixels p{nullptr,
             a.x + (chunk.image * in_blocks_ + c) * plane + at,
             chunk.images,
             chunk.pixels,
             out_blocks_ * plane,
             in_blocks_ * plane,
             plane};
    const int step = width == 1 ? 8 : 4;
    const int64_t k_end = std::min(out_end * kLane, out_);
    for (int64_t k = out * kLane; k < k_end; k += step) {
      p.dy = a.dy + (chunk.image * out_blocks_ + k / kLane) * plane + at + k % kLane;
      const int rows = static_cast<int>(std::min<int64_t>(step, k_end - k));
      float* to = sums + k * row() + c * kLane;
      switch (width) {
        case 1: SumTile<8, 1>(p, add, rows, to, row()); break;
        case 2: SumTile<4, 2>(p, add, rows, to, row()); break;
        default: SumTile<4, 3>(p, add, rows, to, row());
      }
    }
  }

  void SumBias(const WeightGradArguments& a, const PixelChunks::Chunk& chunk, bool add, int64_t out,
               int64_t out_end, float* bias) const {
    const int64_t plane = pixels_ * kLane;
    for (int64_t k = out; k < out_end; ++k) {
      Vec<float> sum = add ? Load(bias + k * kLane) : Vec<float>{};
      for (int64_t n = chunk.image; n < chunk.image + chunk.images; ++n) {
        const float* dy = a.dy + (n * out_blocks_ + k) * plane + chunk.pixel * kLane;
        for (int64_t i = 0; i < chunk.pixels; ++i) sum += Load(dy + i * kLane);
      }
      Store(bias + k * kLane, sum);
    }
  }

  // What all parts have summed, in order, to n elements of a plain result.
  void AddRow(const WeightGradArguments& a, size_t offset, int64_t first, int64_t n,
              float* to) const {
    const int64_t parts = by_pixels_ ? parts_ : 1;
    ForVecs<float>(n, [&](int64_t i, int count) {
      Vec<float> sum = {};
      for (int64_t p = 0; p < parts; ++p) sum += Load(PartAt(a, p, offset) + first + i, count);
      Store(to + i, sum, count);
    });
  }

  void AddParts(const WeightGradArguments& a) const {
    ParallelFor(out_, 32768 / in_ + 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) AddRow(a, sums_at_, k * row(), in_, a.dw + k * in_);
    });
  }
  void AddBiasParts(const WeightGradArguments& a) const { AddRow(a, bias_at_, 0, out_, a.db); }

  int64_t pixels_, in_, out_, in_blocks_, out_blocks_;
  PixelChunks chunks_;
  int64_t parts_;
  bool by_pixels_ = false;  // parts get pixels, rather than channels
  bool own_sums_ = false;   // in the workspace, rather than in dW
  size_t sums_at_ = 0, bias_at_ = 0, part_bytes_ = 0;
};

}  // namespace

Prepared<WeightGradArguments> PointwiseWeightGrad(const ConvGeometry& g) {
  const auto grad = std::make_shared<const WeightGrad>(g);
  return {[grad](const WeightGradArguments& a) { grad->Run(a); }, grad->workspace_bytes()};
}

}  // namespace onward::direct

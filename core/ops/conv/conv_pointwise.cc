// SPDX-License-Identifier: Apache-2.0
// 1x1 convolutions and their input gradients as products over channels:
//
//   forward         Y[p][k] = sum over c of X[p][c] * W[k][c]
//   input gradient  dX[p][c] = sum over k of dY[p][k] * W[k][c]
//
// A tile of some pixels by 8, 16 or 24 output channels stays in registers while
// the sum runs. Blocks of 8 channels of neighbouring pixels are read where they
// are; weights are packed as [tile of output channels][input channel][8 to 24].
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/conv/conv_direct.h"
#include "core/ops/conv/conv_direct_work.h"
#include "core/ops/conv/winograd_work.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/vec.h"

namespace onward::direct {
namespace {

// Input blocks that are summed at a time: their weights stay in the first-level
// cache while the pixels of a chunk pass by.
constexpr int64_t kDepth = 32;
constexpr int64_t kTilesPerGroup = 8;  // when weights are packed
constexpr int kMaxWidth = 3;
// Pixels by blocks of output channels make 12 sums, where that is possible.
constexpr int kMaxRows[kMaxWidth + 1] = {0, 8, 6, 4};

// Where tiles of the output go: `y` and `residual` point at the first pixel.
struct Target {
  float* y;
  int64_t block_step;  // between blocks of output channels
  bool add;            // to what y holds
  bool follow;         // the sum is complete, and what is below follows it
  const float* bias;   // of 8 * width channels
  const float* residual;
  int lanes;  // in use in the last block
  Bounds bounds;
};

template <int R, int W>
inline void StoreSums(const Vec<float> (&sum)[R][W], const Target& t, float* y,
                      const float* residual) {
  const Vec<float> low = Splat(t.bounds.low), high = Splat(t.bounds.high);
#pragma GCC unroll 3
  for (int j = 0; j < W; ++j) {
    const Vec<float> bias = Load(t.bias + j * kLane);
    const int lanes = j == W - 1 ? t.lanes : kLane;
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const int64_t at = j * t.block_step + r * kLane;
      Vec<float> v = sum[r][j] + bias;
      if (t.add) v += Load(y + at);
      if (residual != nullptr) v += Load(residual + at);
      v = Within(low, v, high);
      Store(y + at, Keep<float>(v, lanes));
    }
  }
}

template <int R, int W>
inline void StoreGroup(const Vec<float> (&sum)[R][W], const Target& t, float* y,
                       const float* residual) {
  if (t.follow) return StoreSums<R, W>(sum, t, y, residual);
#pragma GCC unroll 3
  for (int j = 0; j < W; ++j) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      float* to = y + j * t.block_step + r * kLane;
      Store(to, t.add ? Load(to) + sum[r][j] : sum[r][j]);
    }
  }
}

// `groups` times R pixels by W blocks of output channels; blocks of input
// channels are `step` apart, weights [channel][8*W].
template <int R, int W>
void MultiplyGroups(int64_t groups, const float* x, int64_t step, const float* u, int64_t blocks,
                    const Target& t) {
  float* y = t.y;
  const float* residual = t.residual;
  for (int64_t g = 0; g < groups; ++g, x += R * kLane, y += R * kLane) {
    Vec<float> sum[R][W] = {};
    const float* from = x;
    const float* weight = u;
    for (int64_t b = 0; b < blocks; ++b) {
      // The next pixels of this block.
      for (int i = 0; i < R * kLane; i += 16) _mm_prefetch(from + R * kLane + i, _MM_HINT_T0);
#pragma GCC unroll 8
      for (int c = 0; c < kLane; ++c) {
        Vec<float> weights[W];
#pragma GCC unroll 3
        for (int j = 0; j < W; ++j) weights[j] = Load(weight + (c * W + j) * kLane);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const Vec<float> value = _mm256_broadcast_ss(from + r * kLane + c);
#pragma GCC unroll 3
          for (int j = 0; j < W; ++j) sum[r][j] = _mm256_fmadd_ps(value, weights[j], sum[r][j]);
        }
      }
      from += step;
      weight += kLane * kLane * W;
    }
    StoreGroup<R, W>(sum, t, y, residual);
    if (residual != nullptr) residual += R * kLane;
  }
}

// The same for two blocks of output channels, in AVX-512: sums in the same order.
template <int R>
[[gnu::target("avx512f")]] void MultiplyGroupsWide(int64_t groups, const float* x, int64_t step,
                                                   const float* u, int64_t blocks,
                                                   const Target& t) {
  float* y = t.y;
  const float* residual = t.residual;
  for (int64_t g = 0; g < groups; ++g, x += R * kLane, y += R * kLane) {
    __m512 sum[R] = {};
    const float* from = x;
    const float* weight = u;
    for (int64_t b = 0; b < blocks; ++b) {
      // The next pixels of this block.
      for (int i = 0; i < R * kLane; i += 16) _mm_prefetch(from + R * kLane + i, _MM_HINT_T0);
#pragma GCC unroll 8
      for (int c = 0; c < kLane; ++c) {
        const __m512 weights = _mm512_loadu_ps(weight + c * 2 * kLane);
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) {
          sum[r] = _mm512_fmadd_ps(_mm512_set1_ps(from[r * kLane + c]), weights, sum[r]);
        }
      }
      from += step;
      weight += kLane * kLane * 2;
    }
    Vec<float> halves[R][2];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      halves[r][0] = _mm512_castps512_ps256(sum[r]);
      halves[r][1] = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sum[r]), 1));
    }
    StoreGroup<R, 2>(halves, t, y, residual);
    if (residual != nullptr) residual += R * kLane;
  }
}

using GroupsFunction = void (*)(int64_t, const float*, int64_t, const float*, int64_t,
                                const Target&);
using ByRows = std::array<GroupsFunction, 13>;

template <int W, int... R>
constexpr ByRows MakeByRows(std::integer_sequence<int, R...>) {
  return {nullptr, MultiplyGroups<R + 1, W>...};
}
template <int W>
constexpr ByRows kByRows = MakeByRows<W>(std::make_integer_sequence<int, kMaxRows[W]>());
constexpr ByRows kGroups[kMaxWidth + 1] = {{}, kByRows<1>, kByRows<2>, kByRows<3>};
template <int... R>
constexpr ByRows MakeWideByRows(std::integer_sequence<int, R...>) {
  return {nullptr, MultiplyGroupsWide<R + 1>...};
}
constexpr int kMaxWideRows = 12;
constexpr ByRows kWideGroups = MakeWideByRows(std::make_integer_sequence<int, kMaxWideRows>());

class Pointwise {
 public:
  // W is [out][in]; `turned` where it is [in][out].
  Pointwise(int64_t batch, int64_t pixels, int64_t in, int64_t out, bool turned,
            const Bounds& bounds, bool wide)
      : pixels_(pixels),
        in_(in),
        out_(out),
        in_blocks_(CeilDiv(in, kLane)),
        out_blocks_(CeilDiv(out, kLane)),
        tiles_(std::max<int64_t>(out_blocks_ / 2, 1)),
        turned_(turned),
        wide_(wide),
        bounds_(bounds),
        chunks_(batch, pixels),
        threads_(batch * pixels * in * out < kSmallWork ? 1 : Threads()),
        by_channels_(out > batch * pixels || chunks_.units() < threads_),
        parts_(ItemsFor(by_channels_ ? tiles_ : chunks_.chunks(), threads_)) {}

  size_t weights_size() const { return in_blocks_ * out_blocks_ * kLane * kLane; }

  void Pack(const float* w, float* u) const {
    const int64_t groups = CeilDiv(tiles_, kTilesPerGroup);
    ParallelItems(groups, threads_, [&](int64_t group, int64_t) {
      const int64_t begin = tiles_ * group / groups, end = tiles_ * (group + 1) / groups;
      if (turned_) return PackTurned(w, begin, end, u);
      for (int64_t tile = begin; tile < end; ++tile) PackStraight(w, tile, u + Offset(tile));
    });
  }
  void SetConstant(std::shared_ptr<const std::vector<float>> u) { constant_ = std::move(u); }

  void Run(const ConvArguments& a) const {
    const float* u = constant_ == nullptr ? nullptr : constant_->data();
    if (u == nullptr) {
      float* own = At<float>(a.workspace, 0);
      Pack(a.w, own);
      u = own;
    }
    ParallelItems(parts_, threads_, [&](int64_t part, int64_t) { RunPart(a, u, part); });
  }

 private:
  // Tiles have two blocks; the last one has one more if their number is odd.
  int Width(int64_t tile) const {
    return static_cast<int>(tile + 1 < tiles_ ? 2 : out_blocks_ - 2 * tile);
  }
  int64_t Offset(int64_t tile) const { return 2 * tile * in_blocks_ * kLane * kLane; }

  // From rows of 8 input channels at a time.
  void PackStraight(const float* w, int64_t tile, float* u) const {
    const int width = Width(tile);
    for (int j = 0; j < width; ++j) {
      const int64_t first = (2 * tile + j) * kLane;
      for (int64_t c = 0; c < in_; c += kLane) {
        const int lanes = LanesOf(in_, c / kLane);
        Vec<float> v[kLane] = {};
        for (int r = 0; r < kLane && first + r < out_; ++r) {
          v[r] = Load(w + (first + r) * in_ + c, lanes);
        }
        Transpose8(v);
        for (int i = 0; i < kLane; ++i) Store(u + ((c + i) * width + j) * kLane, v[i]);
      }
    }
  }

  // Several tiles together, so that long pieces of W are read.
  void PackTurned(const float* w, int64_t begin, int64_t end, float* u) const {
    for (int64_t c = 0; c < in_blocks_ * kLane; ++c) {
      for (int64_t tile = begin; tile < end; ++tile) {
        const int width = Width(tile);
        float* to = u + Offset(tile) + c * width * kLane;
        for (int j = 0; j < width; ++j) {
          const int64_t block = 2 * tile + j;
          const float* from = w + c * out_ + block * kLane;
          Store(to + j * kLane, c < in_ ? Load(from, LanesOf(out_, block)) : Vec<float>{});
        }
      }
    }
  }

  void RunPart(const ConvArguments& a, const float* u, int64_t part) const {
    const auto first = [&](int64_t n, int64_t p) { return n * p / parts_; };
    const int64_t tile_begin = by_channels_ ? first(tiles_, part) : 0;
    const int64_t tile_end = by_channels_ ? first(tiles_, part + 1) : tiles_;
    const int64_t unit_begin = by_channels_ ? 0 : first(chunks_.units(), part);
    const int64_t unit_end = by_channels_ ? chunks_.units() : first(chunks_.units(), part + 1);
    const int64_t steps = CeilDiv(in_blocks_, kDepth);
    chunks_.ForEach(unit_begin, unit_end, [&](const PixelChunks::Chunk& chunk) {
      for (int64_t s = 0; s < steps; ++s) {
        const int64_t block = in_blocks_ * s / steps;
        const int64_t blocks = in_blocks_ * (s + 1) / steps - block;
        for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
          MultiplyChunk(a, chunk, block, blocks, tile,
                        u + Offset(tile) + block * kLane * kLane * Width(tile));
        }
      }
    });
  }

  // Blocks [block, block + blocks) of the input to a tile of output channels.
  void MultiplyChunk(const ConvArguments& a, const PixelChunks::Chunk& chunk, int64_t block,
                     int64_t blocks, int64_t tile, const float* u) const {
    const int width = Width(tile);
    const int64_t plane = pixels_ * kLane, last_block = 2 * tile + width - 1;
    // Groups of nearly equal size.
    const bool wide = wide_ && width == 2;
    const ByRows& multiply = wide ? kWideGroups : kGroups[width];
    const int64_t groups = CeilDiv(chunk.pixels, wide ? kMaxWideRows : kMaxRows[width]);
    const int64_t rows = chunk.pixels / groups, longer = chunk.pixels % groups;
    float bias[kMaxWidth * kLane] = {};
    if (a.bias != nullptr) {
      std::copy_n(a.bias + 2 * tile * kLane,
                  last_block * kLane + LanesOf(out_, last_block) - 2 * tile * kLane, bias);
    }
    const int lanes = LanesOf(out_, last_block);
    const bool follow = block + blocks == in_blocks_ &&
                        (a.bias != nullptr || a.residual != nullptr || bounds_.any());
    Target t{nullptr, plane, block > 0, follow, bias, nullptr, lanes, bounds_};
    for (int64_t n = chunk.image; n < chunk.image + chunk.images; ++n) {
      const float* x = a.x + (n * in_blocks_ + block) * plane + chunk.pixel * kLane;
      const int64_t at = (n * out_blocks_ + 2 * tile) * plane + chunk.pixel * kLane;
      t.y = a.y + at;
      t.residual = a.residual == nullptr ? nullptr : a.residual + at;
      if (longer > 0) {
        const int64_t size = longer * (rows + 1) * kLane;
        multiply[rows + 1](longer, x, plane, u, blocks, t);
        x += size;
        t.y += size;
        if (t.residual != nullptr) t.residual += size;
      }
      multiply[rows](groups - longer, x, plane, u, blocks, t);
    }
  }

  int64_t pixels_, in_, out_, in_blocks_, out_blocks_, tiles_;
  bool turned_;
  bool wide_;  // products in AVX-512
  Bounds bounds_;
  PixelChunks chunks_;
  int64_t threads_;
  // Parts get tiles of output channels, rather than pixels.
  bool by_channels_;
  int64_t parts_;
  std::shared_ptr<const std::vector<float>> constant_;
};

Prepared<ConvArguments> Prepare(std::shared_ptr<Pointwise> conv, const float* constant) {
  Prepared<ConvArguments> prepared;
  if (constant != nullptr) {
    auto u = std::make_shared<std::vector<float>>(conv->weights_size());
    conv->Pack(constant, u->data());
    conv->SetConstant(std::move(u));
  } else {
    prepared.workspace_bytes = conv->weights_size() * sizeof(float);
  }
  prepared.run = [conv = std::shared_ptr<const Pointwise>(std::move(conv))](
                     const ConvArguments& a) { conv->Run(a); };
  return prepared;
}

}  // namespace

Prepared<ConvArguments> PointwiseConv(const ConvGeometry& g, const Bounds& bounds,
                                      const float* constant, const CpuFeatures& cpu) {
  return Prepare(std::make_shared<Pointwise>(g.batch, g.window.in_elements(), g.in_channels,
                                             g.out_channels, false, bounds, cpu.avx512f),
                 constant);
}

Prepared<ConvArguments> PointwiseInputGrad(const ConvGeometry& g, const float* constant,
                                           const CpuFeatures& cpu) {
  return Prepare(std::make_shared<Pointwise>(g.batch, g.window.in_elements(), g.out_channels,
                                             g.in_channels, true, Bounds{}, cpu.avx512f),
                 constant);
}

}  // namespace onward::direct

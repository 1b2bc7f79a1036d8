// SPDX-License-Identifier: Apache-2.0
// Tiles of direct convolutions that sum over channels: some pixels by 8, 16 or 24 output
// channels, which stay in registers while the sum runs. Their weights are packed as
// [tile][block of input channels][tap][input channel of the block][8 to 24].
#ifndef ONWARD_CORE_OPS_CONV_CONV_TILE_H_
#define ONWARD_CORE_OPS_CONV_CONV_TILE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/conv/conv_direct.h"
#include "core/ops/conv/conv_direct_work.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/vec.h"

namespace onward::direct {

inline constexpr int kMaxWidth = 3;  // of a tile, in blocks of output channels
// Input blocks by taps that are summed at a time: their weights stay in the first-level
// cache while the pixels of a chunk pass by.
inline constexpr int64_t kDepth = 32;

// Where tiles of the output go: `y` and `base` point at the first pixel.
struct Target {
  float* y;
  const float* base;   // what sums are added to: y, a residual (which may be y), or nothing
  int64_t block_step;  // between blocks of output channels
  bool follow;         // the sum is complete, and what is below follows it
  const float* bias;   // of 8 * width channels
  int lanes;           // in use in the last block
  Bounds bounds;

  void Skip(int64_t pixels) {
    y += pixels * kLane;
    if (base != nullptr) base += pixels * kLane;
  }
};

// The tiles that output channels fall into: each has two blocks, the last one has one more if
// their number is odd.
class ChannelTiles {
 public:
  ChannelTiles(int64_t in, int64_t out, int64_t taps)
      : in_(in),
        out_(out),
        taps_(taps),
        in_blocks_(CeilDiv(in, kLane)),
        out_blocks_(CeilDiv(out, kLane)),
        count_(std::max<int64_t>(out_blocks_ / 2, 1)) {}

  int64_t in_blocks() const { return in_blocks_; }
  int64_t out_blocks() const { return out_blocks_; }
  int64_t count() const { return count_; }
  int Width(int64_t tile) const {
    return static_cast<int>(tile + 1 < count_ ? 2 : out_blocks_ - 2 * tile);
  }
  // Output channels in use in the last block of a tile.
  int Lanes(int64_t tile) const { return LanesOf(out_, 2 * tile + Width(tile) - 1); }

  // How weights are packed.
  std::string form() const { return absl::StrCat("tiles ", in_, " ", out_, " ", taps_); }
  // Of packed weights, in floats.
  size_t weights_size() const { return in_blocks_ * out_blocks_ * taps_ * kLane * kLane; }
  int64_t Offset(int64_t tile, int64_t in_block = 0) const {
    return (2 * tile * in_blocks_ + in_block * Width(tile)) * taps_ * kLane * kLane;
  }

  // Packs the weights of a tile from w, which is [out][in][taps].
  void Pack(const float* w, int64_t tile, float* u) const {
    const int width = Width(tile);
    u += Offset(tile);
    for (int j = 0; j < width; ++j) {
      const int64_t first = (2 * tile + j) * kLane;
      for (int64_t b = 0; b < in_blocks_; ++b) PackBlock(w, first, b, width, u + j * kLane);
    }
  }

  // For sums over some blocks of input channels, of which the first come with the residual and the
  // last with what follows. `pixel`: of image `image`, which has `pixels`; `bias` has room for
  // kMaxWidth blocks.
  Target TargetOf(const ConvArguments& a, const Bounds& bounds, int64_t tile, int64_t image,
                  int64_t pixel, int64_t pixels, bool first, bool last, float* bias) const {
    std::fill_n(bias, kMaxWidth * kLane, 0.0f);
    const int lanes = Lanes(tile);
    if (a.bias != nullptr) {
      std::copy_n(a.bias + 2 * tile * kLane, (Width(tile) - 1) * kLane + lanes, bias);
    }
    // Lanes that are not in use are not zero by themselves: an infinity times zero is NaN.
    const bool follow = last && (a.bias != nullptr || bounds.any() || lanes < kLane);
    const int64_t at = ((image * out_blocks_ + 2 * tile) * pixels + pixel) * kLane;
    const float* base = first ? a.residual : a.y;
    return {a.y + at, base == nullptr ? nullptr : base + at, pixels * kLane, follow, bias, lanes,
            bounds};
  }

 private:
  // From runs of 8 weights of a block of input channels, for each of 8 output channels.
  void PackBlock(const float* w, int64_t first, int64_t block, int width, float* u) const {
    const int64_t row = in_ * taps_, begin = block * kLane * taps_;
    const int64_t end = LanesOf(in_, block) * taps_;
    u += begin * width * kLane;
    if (end < kLane * taps_) {
      for (int64_t i = 0; i < kLane * taps_; ++i) Store(u + i * width * kLane, Vec<float>{});
    }
    for (int64_t at = 0; at < end; at += kLane) {
      const int count = static_cast<int>(std::min<int64_t>(kLane, end - at));
      Vec<float> v[kLane] = {};
      for (int r = 0; r < kLane && first + r < out_; ++r) {
        v[r] = Load(w + (first + r) * row + begin + at, count);
      }
      Transpose8(v);
      for (int i = 0; i < count; ++i) {
        const int64_t channel = (at + i) / taps_, tap = (at + i) % taps_;
        Store(u + (tap * kLane + channel) * width * kLane, v[i]);
      }
    }
  }

  int64_t in_, out_, taps_, in_blocks_, out_blocks_, count_;
};

// The input of a row of pixels: taps of the first one are at `x` plus their offsets, in each of
// `blocks` blocks of channels.
struct TileInput {
  const float* x;
  const int64_t* offsets;
  int64_t taps;
  int64_t block_step;
  int64_t blocks;
  int stride;  // between pixels: 1 or 2
};

// Sums for a row of pixels and a tile of `width` blocks, with its weights `u`. `wide`: in AVX-512,
// which gives the same bits.
void MultiplyRow(int64_t pixels, int width, bool wide, TileInput in, const float* u, Target t);

// A convolution that packs its weights at every call, or once where they are constant. The buffer
// is its own.
template <typename Conv>
Prepared<ConvArguments> PrepareTiles(std::shared_ptr<const Conv> conv,
                                     const ConstantInput& constant) {
  Prepared<ConvArguments> prepared;
  std::shared_ptr<const std::vector<float>> packed;
  WorkspacePlan plan;
  if (constant) {
    packed = constant.Arranged<std::vector<float>>(conv->form(), [&] {
      std::vector<float> u(conv->weights_size());
      conv->Pack((*constant).data<float>(), u.data());
      return u;
    });
  } else {
    plan.Add(conv->weights_size() * sizeof(float));
  }
  const size_t buffer_at = plan.Add(conv->buffer_bytes());
  prepared.workspace_bytes = plan.bytes();
  prepared.run = [conv = std::move(conv), packed, buffer_at](const ConvArguments& a) {
    float* own = At<float>(a.workspace, 0);
    if (packed == nullptr) conv->Pack(a.w, own);
    conv->Run(a, packed != nullptr ? packed->data() : own, At<float>(a.workspace, buffer_at));
  };
  return prepared;
}

}  // namespace onward::direct

#endif  // ONWARD_CORE_OPS_CONV_CONV_TILE_H_

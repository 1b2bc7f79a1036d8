// SPDX-License-Identifier: Apache-2.0
// Convolutions whose windows have several taps, one or two pixels apart:
//
//   Y[oh][ow][k] = sum over c, kh, kw of
//                  X[oh*s + kh*d - p][ow*s + kw*d - p][c] * W[k][c][kh][kw]
//
// Bands of rows of the output are computed together. The rows of the input that they read are
// copied to a buffer with their padding, which makes every tap valid, or read where they are if
// there is no padding.
#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/conv/conv_direct.h"
#include "core/ops/conv/conv_direct_work.h"
#include "core/ops/conv/conv_tile.h"

namespace onward::direct {
namespace {

class Windowed {
 public:
  Windowed(const ConvGeometry& g, const Bounds& bounds, bool wide)
      : h_(g.window.rank() == 2 ? ConvAxis(g.window, 0) : ConvAxis()),
        w_(g.window, g.window.rank() - 1),
        tiles_(g.in_channels, g.out_channels, h_.kernel * w_.kernel),
        wide_(wide),
        bounds_(bounds),
        depth_(std::max<int64_t>(kDepth / (h_.kernel * w_.kernel), 1)),
        band_rows_(std::clamp<int64_t>(PixelChunks::kPixels / w_.out, 1, h_.out)),
        bands_(CeilDiv(h_.out, band_rows_)),
        units_(g.batch * bands_),
        threads_(g.y().elements() * g.w().elements() / g.out_channels < kSmallWork ? 1 : Threads()),
        by_channels_(units_ < threads_),
        parts_(ItemsFor(by_channels_ ? tiles_.count() : units_, threads_)) {
    for (int i = 0; i < g.window.rank(); ++i) {
      padded_ |= g.window.pads_begin[i] > 0 || g.window.reached_pad_end(i) > 0;
    }
    row_step_ = (padded_ ? w_.padded() : w_.in) * kLane;
    block_step_ = row_step_ * (padded_ ? h_.Reached(band_rows_) : h_.in);
    for (int64_t kh = 0; kh < h_.kernel; ++kh) {
      for (int64_t kw = 0; kw < w_.kernel; ++kw) {
        offsets_.push_back(kh * h_.dilation * row_step_ + kw * w_.dilation * kLane);
      }
    }
  }

  std::string form() const { return tiles_.form(); }
  size_t weights_size() const { return tiles_.weights_size(); }
  void Pack(const float* w, float* u) const {
    ParallelItems(tiles_.count(), threads_,
                  [&](int64_t tile, int64_t) { tiles_.Pack(w, tile, u); });
  }

  size_t buffer_bytes() const {
    return padded_ ? parts_ * depth_ * block_step_ * sizeof(float) : 0;
  }
  void Run(const ConvArguments& a, const float* u, float* buffer) const {
    ParallelItems(parts_, threads_, [&](int64_t part, int64_t) {
      RunPart(a, u, part, buffer + part * depth_ * block_step_);
    });
  }

 private:
  // Rows of the output of an image, and blocks of input channels that they sum.
  struct Band {
    int64_t image, row, rows, block, blocks;
  };

  void RunPart(const ConvArguments& a, const float* u, int64_t part, float* buffer) const {
    const auto first = [&](int64_t n, int64_t p) { return n * p / parts_; };
    const int64_t tile_begin = by_channels_ ? first(tiles_.count(), part) : 0;
    const int64_t tile_end = by_channels_ ? first(tiles_.count(), part + 1) : tiles_.count();
    const int64_t unit_begin = by_channels_ ? 0 : first(units_, part);
    const int64_t unit_end = by_channels_ ? units_ : first(units_, part + 1);
    for (int64_t unit = unit_begin; unit < unit_end; ++unit) {
      const int64_t row = unit % bands_ * band_rows_;
      Band band{unit / bands_, row, std::min(band_rows_, h_.out - row), 0, 0};
      for (; band.block < tiles_.in_blocks(); band.block += depth_) {
        band.blocks = std::min(depth_, tiles_.in_blocks() - band.block);
        const float* x = InputOf(a.x, band, buffer);
        for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
          MultiplyBand(a, band, x, tile, u + tiles_.Offset(tile, band.block));
        }
      }
    }
  }

  // The first tap of the first pixel of a band.
  const float* InputOf(const float* x, const Band& band, float* buffer) const {
    const int64_t plane = h_.in * w_.in * kLane, top = band.row * h_.stride - h_.pad;
    x += (band.image * tiles_.in_blocks() + band.block) * plane;
    if (!padded_) return x + top * row_step_;
    for (int64_t b = 0; b < band.blocks; ++b, x += plane) {
      float* to = buffer + b * block_step_;
      for (int64_t r = 0; r < h_.Reached(band.rows); ++r, to += row_step_) {
        const int64_t at = top + r;
        if (at < 0 || at >= h_.in) {
          std::fill_n(to, row_step_, 0.0f);
        } else {
          CopyRow(x + at * w_.in * kLane, to);
        }
      }
    }
    return buffer;
  }

  void CopyRow(const float* x, float* to) const {
    const int64_t before = std::min(w_.pad, w_.padded());
    const int64_t columns = std::min(w_.in, w_.padded() - before);
    to = std::fill_n(to, before * kLane, 0.0f);
    to = std::copy_n(x, columns * kLane, to);
    std::fill_n(to, (w_.padded() - before - columns) * kLane, 0.0f);
  }

  void MultiplyBand(const ConvArguments& a, const Band& band, const float* x, int64_t tile,
                    const float* u) const {
    const bool last = band.block + band.blocks == tiles_.in_blocks();
    TileInput in{x,           offsets_.data(), static_cast<int64_t>(offsets_.size()),
                 block_step_, band.blocks,     static_cast<int>(w_.stride)};
    float bias[kMaxWidth * kLane];
    Target t = tiles_.TargetOf(a, bounds_, tile, band.image, band.row * w_.out, h_.out * w_.out,
                               band.block == 0, last, bias);
    for (int64_t r = 0; r < band.rows; ++r, in.x += h_.stride * row_step_, t.Skip(w_.out)) {
      MultiplyRow(w_.out, tiles_.Width(tile), wide_, in, u, t);
    }
  }

  ConvAxis h_, w_;
  ChannelTiles tiles_;
  bool wide_;  // products in AVX-512
  Bounds bounds_;
  int64_t depth_;  // input blocks that are summed at a time
  int64_t band_rows_, bands_, units_;
  int64_t threads_;
  bool by_channels_;  // parts get tiles of output channels, rather than bands
  int64_t parts_;
  bool padded_ = false;
  int64_t row_step_, block_step_;  // of the input that is read
  std::vector<int64_t> offsets_;   // of taps
};

}  // namespace

Prepared<ConvArguments> WindowedConv(const ConvGeometry& g, const Bounds& bounds,
                                     const ConstantInput& constant, const CpuFeatures& cpu) {
  return PrepareTiles(std::make_shared<const Windowed>(g, bounds, cpu.avx512f), constant);
}

}  // namespace onward::direct

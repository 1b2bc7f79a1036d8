// SPDX-License-Identifier: Apache-2.0
// 1x1 convolutions and their input gradients as products over channels:
//
//   forward         Y[p][k] = sum over c of X[p][c] * W[k][c]
//   input gradient  dX[p][c] = sum over k of dY[p][k] * W[k][c]
//
// Blocks of 8 channels of neighbouring pixels are read where they are.
#include <memory>

#include "core/base/parallel.h"
#include "core/ops/conv/conv_direct.h"
#include "core/ops/conv/conv_direct_work.h"
#include "core/ops/conv/conv_tile.h"
#include "core/ops/conv/winograd_work.h"
#include "core/ops/cpu/vec.h"

namespace onward::direct {
namespace {

constexpr int64_t kTilesPerGroup = 8;  // when weights are packed

class Pointwise {
 public:
  // W is [out][in]; `turned` where it is [in][out].
  Pointwise(int64_t batch, int64_t pixels, int64_t in, int64_t out, bool turned,
            const Bounds& bounds, bool wide)
      : pixels_(pixels),
        in_(in),
        out_(out),
        tiles_(in, out, 1),
        turned_(turned),
        wide_(wide),
        bounds_(bounds),
        chunks_(batch, pixels),
        threads_(batch * pixels * in * out < kSmallWork ? 1 : Threads()),
        by_channels_(out > batch * pixels || chunks_.units() < threads_),
        parts_(ItemsFor(by_channels_ ? tiles_.count() : chunks_.chunks(), threads_)) {}

  std::string form() const { return tiles_.form() + (turned_ ? " turned" : ""); }
  size_t weights_size() const { return tiles_.weights_size(); }

  void Pack(const float* w, float* u) const {
    const int64_t groups = CeilDiv(tiles_.count(), kTilesPerGroup);
    ParallelItems(groups, threads_, [&](int64_t group, int64_t) {
      const int64_t begin = tiles_.count() * group / groups;
      const int64_t end = tiles_.count() * (group + 1) / groups;
      if (turned_) return PackTurned(w, begin, end, u);
      for (int64_t tile = begin; tile < end; ++tile) tiles_.Pack(w, tile, u);
    });
  }

  size_t buffer_bytes() const { return 0; }
  void Run(const ConvArguments& a, const float* u, float*) const {
    ParallelItems(parts_, threads_, [&](int64_t part, int64_t) { RunPart(a, u, part); });
  }

 private:
  // Several tiles together, so that long pieces of W are read.
  void PackTurned(const float* w, int64_t begin, int64_t end, float* u) const {
    for (int64_t c = 0; c < tiles_.in_blocks() * kLane; ++c) {
      for (int64_t tile = begin; tile < end; ++tile) {
        const int width = tiles_.Width(tile);
        float* to = u + tiles_.Offset(tile) + c * width * kLane;
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
    const int64_t tile_begin = by_channels_ ? first(tiles_.count(), part) : 0;
    const int64_t tile_end = by_channels_ ? first(tiles_.count(), part + 1) : tiles_.count();
    const int64_t unit_begin = by_channels_ ? 0 : first(chunks_.units(), part);
    const int64_t unit_end = by_channels_ ? chunks_.units() : first(chunks_.units(), part + 1);
    const int64_t steps = CeilDiv(tiles_.in_blocks(), kDepth);
    chunks_.ForEach(unit_begin, unit_end, [&](const PixelChunks::Chunk& chunk) {
      for (int64_t s = 0; s < steps; ++s) {
        const int64_t block = tiles_.in_blocks() * s / steps;
        const int64_t blocks = tiles_.in_blocks() * (s + 1) / steps - block;
        for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
          MultiplyChunk(a, chunk, block, blocks, tile, u + tiles_.Offset(tile, block));
        }
      }
    });
  }

  // Blocks [block, block + blocks) of the input to a tile of output channels.
  void MultiplyChunk(const ConvArguments& a, const PixelChunks::Chunk& chunk, int64_t block,
                     int64_t blocks, int64_t tile, const float* u) const {
    constexpr int64_t kOneTap = 0;
    const int64_t plane = pixels_ * kLane;
    const bool last = block + blocks == tiles_.in_blocks();
    TileInput in{nullptr, &kOneTap, 1, plane, blocks, 1};
    float bias[kMaxWidth * kLane];
    for (int64_t n = chunk.image; n < chunk.image + chunk.images; ++n) {
      in.x = a.x + (n * tiles_.in_blocks() + block) * plane + chunk.pixel * kLane;
      MultiplyRow(
          chunk.pixels, tiles_.Width(tile), wide_, in, u,
          tiles_.TargetOf(a, bounds_, tile, n, chunk.pixel, pixels_, block == 0, last, bias));
    }
  }

  int64_t pixels_, in_, out_;
  ChannelTiles tiles_;
  bool turned_;
  bool wide_;  // products in AVX-512
  Bounds bounds_;
  PixelChunks chunks_;
  int64_t threads_;
  // Parts get tiles of output channels, rather than pixels.
  bool by_channels_;
  int64_t parts_;
};

}  // namespace

Prepared<ConvArguments> PointwiseConv(const ConvGeometry& g, const Bounds& bounds,
                                      const ConstantInput& constant, const CpuFeatures& cpu) {
  return PrepareTiles(
      std::make_shared<const Pointwise>(g.batch, g.window.in_elements(), g.in_channels,
                                        g.out_channels, false, bounds, cpu.avx512f),
      constant);
}

Prepared<ConvArguments> PointwiseInputGrad(const ConvGeometry& g, const ConstantInput& constant,
                                           const CpuFeatures& cpu) {
  return PrepareTiles(
      std::make_shared<const Pointwise>(g.batch, g.window.in_elements(), g.out_channels,
                                        g.in_channels, true, Bounds{}, cpu.avx512f),
      constant);
}

}  // namespace onward::direct

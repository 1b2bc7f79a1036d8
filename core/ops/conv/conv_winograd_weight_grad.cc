// SPDX-License-Identifier: Apache-2.0
// ConvWeightGrad by the adjoint of Winograd's F(4x4, 3x3) (winograd_transform.h).
//
// With V the transformed input and Z the transformed dY, there are 36 products
// M[c][k] = sum over tiles t of V[t][c] * Z[t][k], and dW comes from M by a last
// transform. There are two ways to share the work:
//
//   many tiles:    every part sums M over its own tiles, chunk by chunk so that
//                  V and Z stay in cache; the parts are added in order
//   many channels: V and Z of all tiles (or of a large chunk of them) are made
//                  first; then a part computes some pieces of M, each small
//                  enough for its cache
#include <algorithm>
#include <memory>

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/conv/conv.h"
#include "core/ops/conv/winograd.h"
#include "core/ops/conv/winograd_gemm.h"
#include "core/ops/conv/winograd_transform.h"
#include "core/ops/conv/winograd_work.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/vec.h"

namespace onward {
namespace winograd {
namespace {

constexpr int64_t kGroup = 64;          // input channels that lie together
constexpr int64_t kBlocksPerPiece = 2;  // blocks of 16 output channels
constexpr int64_t kTilesPerChunk = 64;  // with many tiles
// A part's M with many tiles, and V and Z with many channels, should stay in the
// cache that all cores share.
constexpr int64_t kMaxSharedBytes = 10 << 20;

class WeightGrad {
 public:
  WeightGrad(const ConvGeometry& g, const CpuFeatures& cpu)
      : g_(g),
        wide_(cpu.avx512f),
        rows_(CeilDiv(g.window.out[0], kTile)),
        columns_(CeilDiv(g.window.out[1], kTile)),
        tiles_(g.batch * rows_ * columns_),
        c_(g.in_channels),
        k_(g.out_channels),
        groups_(CeilDiv(c_, kGroup)),
        k_blocks_(CeilDiv(k_, kColumns)) {
    const bool small = tiles_ * kPositions * c_ * k_ < kSmallWork;
    parts_ = small ? 1 : Threads();
    const int64_t m_bytes = kPositions * c_ * k_ * sizeof(float);
    many_tiles_ = tiles_ * (c_ + k_) > parts_ * c_ * k_ && m_bytes <= kMaxSharedBytes;
    if (many_tiles_) {
      parts_ = std::min(parts_, tiles_);
      chunk_ = std::min(kTilesPerChunk, CeilDiv(tiles_, parts_));
    } else {
      const int64_t tile_bytes = kPositions * (c_ + k_) * sizeof(float);
      const int64_t chunks = CeilDiv(tiles_ * tile_bytes, kMaxSharedBytes);
      chunk_ = CeilDiv(tiles_, chunks);
    }
    v_gap_ = kPositions * kGap;
    z_position_ = chunk_ * kColumns + kGap;
    z_block_ = kPositions * z_position_;
    PlanWorkspace();
  }

  size_t workspace_bytes() const { return workspace_bytes_; }

  // `db` may be null.
  void Run(const float* dy, const float* x, float* dw, float* db, void* workspace) const {
    if (many_tiles_) {
      RunManyTiles(dy, x, dw, workspace);
    } else {
      RunManyChannels(dy, x, dw, workspace);
    }
    if (db == nullptr) return;
    std::copy_n(At<float>(workspace, sums_at_), k_, db);
    for (int64_t p = 1; many_tiles_ && p < parts_; ++p) {
      const float* part = At<float>(workspace, p * part_bytes_ + sums_at_);
      for (int64_t k = 0; k < k_; ++k) db[k] += part[k];
    }
  }

 private:
  // Of V: [group][position][tile][channel in group]; of Z: [K/16][position][tile][16].
  struct Operands {
    float* v;
    float* z;
  };

  int64_t Width(int64_t group) const { return std::min(kGroup, c_ - group * kGroup); }
  int64_t VGroup(int64_t group) const {
    return kPositions * chunk_ * group * kGroup + group * v_gap_;
  }
  int64_t VPosition(int64_t group) const { return chunk_ * Width(group) + kGap; }
  // Products: [K/16][c][position][16].
  int64_t product_size() const { return k_blocks_ * c_ * kProductRow; }

  void PlanWorkspace() {
    const int64_t v_size = VGroup(groups_ - 1) + kPositions * VPosition(groups_ - 1);
    WorkspacePlan plan;
    v_at_ = plan.Add(v_size * sizeof(float));
    z_at_ = plan.Add(k_blocks_ * z_block_ * sizeof(float));
    sums_at_ = plan.Add(k_ * sizeof(float));
    const bool whole = many_tiles_ || chunk_ < tiles_;
    const int64_t piece = kBlocksPerPiece * kGroup * kProductRow;
    product_at_ = plan.Add((whole ? product_size() : piece) * sizeof(float));
    part_bytes_ = plan.bytes();
    piece_bytes_ = piece * sizeof(float);
    workspace_bytes_ = many_tiles_ ? parts_ * part_bytes_
                       : whole     ? part_bytes_
                                   : part_bytes_ + (parts_ - 1) * piece_bytes_;
  }

  // V of channel block c (8 channels) of tiles [begin, end).
  void TransformX(const float* x, int64_t begin, int64_t end, int64_t c, float* v) const {
    const Window& w = g_.window;
    const int64_t group = c * kLane / kGroup, width = Width(group), stride = VPosition(group);
    const int64_t plane = w.in[0] * w.in[1] * kLane;
    float* out = v + VGroup(group) + c * kLane % kGroup;
    TileCursor tile(begin, rows_, columns_);
    for (int64_t t = begin; t < end; ++t, tile.Next(), out += width) {
      const float* from = x + (tile.n * (c_ / kLane) + c) * plane;
      TransformInput(from, w.in[0], w.in[1], tile.y * kTile - w.pads_begin[0],
                     tile.x * kTile - w.pads_begin[1], out, stride);
      PrefetchTile(from + plane + (tile.y * w.in[1] + tile.x) * kTile * kLane, w.in[1]);
    }
  }

  // Z of channel block k, and the sum of dY over these tiles. Lanes of a last
  // half block stay undefined: they are multiplied, but not used.
  Vec<float> TransformDy(const float* dy, int64_t begin, int64_t end, int64_t k, float* z) const {
    const Window& w = g_.window;
    const int64_t plane = w.out[0] * w.out[1] * kLane;
    float* out = z + k / 2 * z_block_ + k % 2 * kLane;
    Vec<float> sum = {};
    TileCursor tile(begin, rows_, columns_);
    for (int64_t t = begin; t < end; ++t, tile.Next(), out += kColumns) {
      const float* from = dy + (tile.n * (k_ / kLane) + k) * plane;
      sum += TransformOutputGrad(from, w.out[0], w.out[1], tile.y * kTile, tile.x * kTile, out,
                                 z_position_);
      PrefetchTile(from + plane + (tile.y * w.out[1] + tile.x) * kTile * kLane, w.out[1]);
    }
    return sum;
  }

  // The products of a group of input channels with blocks [k_begin, k_end) of
  // output channels; m is where that of (k_begin, first channel of the group)
  // starts, blocks of k are `m_block` apart.
  template <bool kAdd>
  void Multiply(const Operands& o, int64_t tiles, int64_t group, int64_t k_begin, int64_t k_end,
                float* m, int64_t m_block) const {
    const int64_t width = Width(group);
    const RowBlocks blocks(width, wide_ ? kWideRows : kRows);
    for (int position = 0; position < kPositions; ++position) {
      const float* v = o.v + VGroup(group) + position * VPosition(group);
      for (int64_t k = k_begin; k < k_end; ++k) {
        const float* z = o.z + k * z_block_ + position * z_position_;
        float* out = m + (k - k_begin) * m_block + position * kColumns;
        for (int64_t b = 0; b < blocks.count(); ++b) {
          const int64_t first = blocks.first(b);
          MultiplyTiles<kAdd>(wide_, blocks.rows(b), v + first, width, z, tiles,
                              out + first * kProductRow);
        }
      }
    }
  }

  // dW of 8 input channels from c and 16 output channels from 16*k; load(i, p)
  // gives position p of channel c + i, the first or second half of the 16.
  template <typename LoadProduct>
  void StoreGrad(int64_t c, int64_t k, float* dw, const LoadProduct& load) const {
    const int64_t row = c_ * kTaps;
    for (int half = 0; half < 2 && k * kColumns + half * kLane < k_; ++half) {
      float* out = dw + (k * kColumns + half * kLane) * row + c * kTaps;
      Vec<float> taps[kLane * kTaps];
      for (int i = 0; i < kLane; ++i) {
        TransformFilterGrad([&](int p) { return load(i, p * kColumns + half * kLane); },
                            taps + i * kTaps);
      }
      for (int i = 0; i < kTaps; ++i) {
        Transpose8(taps + i * kLane);
        for (int r = 0; r < kLane; ++r) Store(out + r * row + i * kLane, taps[i * kLane + r]);
      }
    }
  }

  void RunManyTiles(const float* dy, const float* x, float* dw, void* workspace) const {
    ParallelItems(parts_, parts_, [&](int64_t part, int64_t) {
      SumPart(dy, x, part, At<char>(workspace, part * part_bytes_));
    });
    const float* products = At<float>(workspace, product_at_);
    const int64_t part_size = part_bytes_ / sizeof(float), c_blocks = c_ / kLane;
    ParallelItems(c_blocks * k_blocks_, parts_, [&](int64_t i, int64_t) {
      const int64_t c = i % c_blocks * kLane, k = i / c_blocks;
      const float* m = products + (k * c_ + c) * kProductRow;
      StoreGrad(c, k, dw, [&](int channel, int64_t at) {
        const float* from = m + channel * kProductRow + at;
        Vec<float> sum = Load(from);
        for (int64_t p = 1; p < parts_; ++p) sum += Load(from + p * part_size);
        return sum;
      });
    });
  }

  void SumPart(const float* dy, const float* x, int64_t part, void* workspace) const {
    const Operands o{At<float>(workspace, v_at_), At<float>(workspace, z_at_)};
    float* sums = At<float>(workspace, sums_at_);
    float* products = At<float>(workspace, product_at_);
    std::fill_n(sums, k_, 0.0f);
    const int64_t first = tiles_ * part / parts_, last = tiles_ * (part + 1) / parts_;
    for (int64_t begin = first; begin < last; begin += chunk_) {
      const int64_t end = std::min(begin + chunk_, last);
      for (int64_t c = 0; c < c_ / kLane; ++c) TransformX(x, begin, end, c, o.v);
      for (int64_t k = 0; k < k_ / kLane; ++k) {
        float* sum = sums + k * kLane;
        Store(sum, Load(sum) + TransformDy(dy, begin, end, k, o.z));
      }
      for (int64_t group = 0; group < groups_; ++group) {
        float* m = products + group * kGroup * kProductRow;
        if (begin == first) {
          Multiply<false>(o, end - begin, group, 0, k_blocks_, m, c_ * kProductRow);
        } else {
          Multiply<true>(o, end - begin, group, 0, k_blocks_, m, c_ * kProductRow);
        }
      }
    }
  }

  void RunManyChannels(const float* dy, const float* x, float* dw, void* workspace) const {
    const Operands o{At<float>(workspace, v_at_), At<float>(workspace, z_at_)};
    float* sums = At<float>(workspace, sums_at_);
    std::fill_n(sums, k_, 0.0f);
    const int64_t pieces = groups_ * CeilDiv(k_blocks_, kBlocksPerPiece);
    for (int64_t begin = 0; begin < tiles_; begin += chunk_) {
      const int64_t end = std::min(begin + chunk_, tiles_);
      ParallelItems((c_ + k_) / kLane, parts_, [&](int64_t i, int64_t) {
        const int64_t k = i - c_ / kLane;
        if (k < 0) {
          TransformX(x, begin, end, i, o.v);
        } else {
          float* sum = sums + k * kLane;
          Store(sum, Load(sum) + TransformDy(dy, begin, end, k, o.z));
        }
      });
      ParallelItems(pieces, parts_, [&](int64_t i, int64_t part) {
        const int64_t group = i % groups_, k = i / groups_ * kBlocksPerPiece;
        MultiplyPiece(o, begin, end, group, k, part, dw, workspace);
      });
    }
  }

  // One piece for tiles [begin, end); after the last tile, its dW.
  void MultiplyPiece(const Operands& o, int64_t begin, int64_t end, int64_t group, int64_t k,
                     int64_t part, float* dw, void* workspace) const {
    const int64_t k_end = std::min(k + kBlocksPerPiece, k_blocks_), c = group * kGroup;
    const bool whole = chunk_ < tiles_;
    const int64_t m_block = (whole ? c_ : kGroup) * kProductRow;
    float* m = At<float>(workspace, product_at_ + (whole ? 0 : part * piece_bytes_));
    if (whole) m += (k * c_ + c) * kProductRow;
    if (begin == 0) {
      Multiply<false>(o, end - begin, group, k, k_end, m, m_block);
    } else {
      Multiply<true>(o, end - begin, group, k, k_end, m, m_block);
    }
    if (end < tiles_) return;
    for (; k < k_end; ++k, m += m_block) {
      for (int64_t i = 0; i < Width(group); i += kLane) {
        StoreGrad(c + i, k, dw, [&](int channel, int64_t at) {
          return Load(m + (i + channel) * kProductRow + at);
        });
      }
    }
  }

  ConvGeometry g_;
  bool wide_;                       // products in AVX-512
  int64_t rows_, columns_, tiles_;  // tiles of an image, and in all
  int64_t c_, k_, groups_, k_blocks_;
  int64_t parts_ = 1, chunk_ = 1;
  bool many_tiles_ = false;
  int64_t v_gap_ = 0, z_position_ = 0, z_block_ = 0;
  // In the workspace; of a part where there are many tiles.
  size_t v_at_ = 0, z_at_ = 0, sums_at_ = 0, product_at_ = 0;
  size_t part_bytes_ = 0, piece_bytes_ = 0, workspace_bytes_ = 0;
};

}  // namespace
}  // namespace winograd

absl::StatusOr<Kernel> AnyWinogradConvWeightGrad(const KernelRequest& r, const CpuFeatures& cpu) {
  ONWARD_RETURN_IF_ERROR(CheckWinogradRequest(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 1, 2));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.w()));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 1, Shape{g.out_channels}));
  if (!WinogradServes(g) || !r.HasOutput(0)) {
    return NodeUnimplemented(r.node, "not a weight gradient that Winograd's algorithm gives");
  }
  const auto grad = std::make_shared<const winograd::WeightGrad>(g, cpu);
  Kernel kernel;
  kernel.infallible = true;
  kernel.workspace_bytes = grad->workspace_bytes();
  // W serves for its shape alone.
  kernel.input_layouts = {LayoutOf(BlockedDesc(g.y(), winograd::kLane)),
                          LayoutOf(BlockedDesc(g.x(), winograd::kLane)), r.inputs[2].layout};
  kernel.run = [grad](const KernelCall& call) {
    const bool bias = call.outputs.size() > 1 && call.outputs[1] != nullptr;
    grad->Run(call.inputs[0]->data<float>(), call.inputs[1]->data<float>(),
              call.outputs[0]->data<float>(), bias ? call.outputs[1]->data<float>() : nullptr,
              call.workspace);
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace onward

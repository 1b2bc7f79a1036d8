// SPDX-License-Identifier: Apache-2.0
// Conv and ConvInputGrad by Winograd's F(4x4, 3x3) (winograd_transform.h). The
// input gradient is the convolution of dY with turned weights.
//
// With T tiles, C input and K output channels there are 36 products of [T, C]
// by [C, K]. They are computed in pieces that stay in cache: a group of tiles by
// 16 output channels, all 36 positions, then the last transform. Of the two
// operands the smaller one is transformed as a whole beforehand, the larger one
// where it is used:
//
//   many tiles:  all weights; then for every group of tiles: input, products
//   few tiles:   all input; then for every 16 output channels: weights, products
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/device/arrangements.h"
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

constexpr int64_t kTilesPerGroup = 24;
// Transformed weights are four times as large as the weights. Beyond this size
// reading them takes longer than transforming the weights anew.
constexpr size_t kMaxConstantBytes = 4 << 20;

struct Problem {
  int64_t batch = 0, in_channels = 0, out_channels = 0;
  int64_t in_h = 0, in_w = 0, out_h = 0, out_w = 0, pad_h = 0, pad_w = 0;
  // W is [in_channels][out_channels] and turned by 180 degrees.
  bool turned = false;

  static Problem Forward(const ConvGeometry& g) {
    const Window& w = g.window;
    return {g.batch,  g.in_channels, g.out_channels,  w.in[0],         w.in[1],
            w.out[0], w.out[1],      w.pads_begin[0], w.pads_begin[1], false};
  }
  static Problem InputGrad(const ConvGeometry& g) {
    const Window& w = g.window;
    return {g.batch, g.out_channels,      g.in_channels,       w.out[0], w.out[1], w.in[0],
            w.in[1], 2 - w.pads_begin[0], 2 - w.pads_begin[1], true};
  }
};

class WinogradConv {
 public:
  struct Arguments {
    const float* x;
    const float* w;         // not read where constant
    const float* bias;      // may be null
    const float* residual;  // may be null
    float* y;
    void* workspace;
  };

  WinogradConv(const Problem& p, const WinogradEpilogue& epilogue, const CpuFeatures& cpu)
      : p_(p),
        epilogue_(epilogue),
        rows_(CeilDiv(p.out_h, kTile)),
        columns_(CeilDiv(p.out_w, kTile)),
        wide_(cpu.avx512f),
        blocks_(p.batch * rows_ * columns_, BlockRows()),
        k_blocks_(CeilDiv(p.out_channels, kColumns)),
        u_position_(p.in_channels * kColumns + kGap),
        u_block_(kPositions * u_position_) {
    const int64_t tiles = p.batch * rows_ * columns_;
    const int64_t work = tiles * kPositions * p.in_channels * p.out_channels;
    parts_ = work < kSmallWork ? 1 : Threads();
    many_tiles_ = tiles > p.out_channels;
    groups_ = CeilDiv(CeilDiv(tiles, kTilesPerGroup), parts_) * parts_;
    groups_ = std::min(groups_, blocks_.count());
  }

  size_t weights_bytes() const { return k_blocks_ * u_block_ * sizeof(float); }

  // Transformed weights [K/16][position][C][16].
  void TransformWeights(const float* w, float* u) const {
    ParallelItems(k_blocks_, parts_,
                  [&](int64_t k, int64_t) { TransformBlock(w, k, u + k * u_block_); });
  }
  void SetConstantWeights(std::shared_ptr<const Tensor> u) { constant_ = std::move(u); }

  size_t PlanWorkspace() {
    const int64_t group_blocks = CeilDiv(blocks_.count(), groups_);
    const int64_t group_size = kPositions * group_blocks * (BlockRows() * p_.in_channels + kGap);
    const bool own_weights = constant_ == nullptr;
    WorkspacePlan plan, part;
    if (many_tiles_) {
      if (own_weights) shared_at_ = plan.Add(weights_bytes());
      operand_at_ = part.Add(group_size * sizeof(float));
    } else {
      shared_at_ = plan.Add(BlockOffset(blocks_.count()) * sizeof(float));
      if (own_weights) operand_at_ = part.Add(u_block_ * sizeof(float));
    }
    product_at_ = part.Add(group_blocks * BlockRows() * kProductRow * sizeof(float));
    part_bytes_ = part.bytes();
    parts_at_ = plan.Add(part_bytes_ * parts_);
    return plan.bytes();
  }

  void Run(const Arguments& a) const { return many_tiles_ ? RunManyTiles(a) : RunFewTiles(a); }

 private:
  // At most.
  int64_t BlockRows() const { return wide_ ? kWideRows : kRows; }
  int64_t FirstBlock(int64_t group) const { return blocks_.count() * group / groups_; }
  // Of a block of tiles in the transformed input: [block][position][C/8][tile][8].
  int64_t BlockOffset(int64_t block) const {
    return kPositions * (blocks_.first(block) * p_.in_channels + block * kGap);
  }
  int64_t PositionStride(int64_t block) const {
    return blocks_.rows(block) * p_.in_channels + kGap;
  }
  float* PartAt(const Arguments& a, int64_t part, size_t offset) const {
    return At<float>(a.workspace, parts_at_ + part * part_bytes_ + offset);
  }

  void RunManyTiles(const Arguments& a) const {
    float* own = At<float>(a.workspace, shared_at_);
    if (constant_ == nullptr) TransformWeights(a.w, own);
    const float* u = constant_ == nullptr ? own : constant_->data<float>();
    ParallelItems(groups_, parts_, [&](int64_t group, int64_t part) {
      float* v = PartAt(a, part, operand_at_);
      const int64_t begin = FirstBlock(group), end = FirstBlock(group + 1);
      for (int64_t c = 0; c < p_.in_channels / kLane; ++c) TransformTiles(a.x, begin, end, c, v);
      for (int64_t k = 0; k < k_blocks_; ++k) {
        MultiplyPiece(a, begin, end, k, v, u + k * u_block_, PartAt(a, part, product_at_));
      }
    });
  }

  void RunFewTiles(const Arguments& a) const {
    float* v = At<float>(a.workspace, shared_at_);
    ParallelItems(p_.in_channels / kLane, parts_,
                  [&](int64_t c, int64_t) { TransformTiles(a.x, 0, blocks_.count(), c, v); });
    ParallelItems(k_blocks_, parts_, [&](int64_t k, int64_t part) {
      float* own = PartAt(a, part, operand_at_);
      if (constant_ == nullptr) TransformBlock(a.w, k, own);
      const float* u = constant_ == nullptr ? own : constant_->data<float>() + k * u_block_;
      for (int64_t group = 0; group < groups_; ++group) {
        const int64_t begin = FirstBlock(group), end = FirstBlock(group + 1);
        MultiplyPiece(a, begin, end, k, v + BlockOffset(begin), u, PartAt(a, part, product_at_));
      }
    });
  }

  // The weights of 16 output channels: [position][C][16]. Both halves of the 16
  // are written together, while their lines are in cache.
  void TransformBlock(const float* w, int64_t k, float* u) const {
    for (int64_t c = 0; c < p_.in_channels; c += kLane) {
      for (int half = 0; half < 2; ++half) {
        const int64_t first = k * kColumns + half * kLane;
        float* out = u + c * kColumns + half * kLane;
        if (first >= p_.out_channels) {
          for (int64_t i = 0; i < kPositions * kLane; ++i) {
            Store(out + i / kLane * u_position_ + i % kLane * kColumns, Vec<float>{});
          }
        } else if (p_.turned) {
          TransformTurned(w + (c * p_.out_channels + first) * kTaps, out);
        } else {
          TransformStraight(w + (first * p_.in_channels + c) * kTaps, out);
        }
      }
    }
  }

  // From [8 k][8 c][9] within [K][C][9]: the 72 values of a row are contiguous.
  void TransformStraight(const float* w, float* u) const {
    const int64_t row = p_.in_channels * kTaps;
    Vec<float> taps[kLane * kTaps];
    for (int r = 0; r < kLane; ++r) Prefetch(w + r * row + kLane * kTaps, kLane * kTaps);
    for (int i = 0; i < kTaps; ++i) {
      for (int r = 0; r < kLane; ++r) taps[i * kLane + r] = Load(w + r * row + i * kLane);
      Transpose8(taps + i * kLane);
    }
    for (int i = 0; i < kLane; ++i) {
      TransformFilter(taps + i * kTaps, u + i * kColumns, u_position_);
    }
  }

  // From [8 c][8 k][9] within [C][K][9], the taps in reverse.
  void TransformTurned(const float* w, float* u) const {
    const __m256i row_offsets = _mm256_setr_epi32(0, 9, 18, 27, 36, 45, 54, 63);
    for (int i = 0; i < kLane; ++i, w += p_.out_channels * kTaps) {
      Vec<float> rows[kLane], taps[kTaps];
      for (int r = 0; r < kLane; ++r) rows[r] = Load(w + r * kTaps);
      Prefetch(w + kLane * p_.out_channels * kTaps, kLane * kTaps);
      Transpose8(rows);
      taps[0] = _mm256_i32gather_ps(w + kTaps - 1, row_offsets, sizeof(float));
      for (int t = 0; t < kLane; ++t) taps[kTaps - 1 - t] = rows[t];
      TransformFilter(taps, u + i * kColumns, u_position_);
    }
  }

  // Channel block c of the blocks of tiles [begin, end); v is where block
  // `begin` starts.
  void TransformTiles(const float* x, int64_t begin, int64_t end, int64_t c, float* v) const {
    const int64_t plane = p_.in_h * p_.in_w * kLane, channel_blocks = p_.in_channels / kLane;
    TileCursor tile(blocks_.first(begin), rows_, columns_);
    for (int64_t b = begin; b < end; ++b) {
      const int rows = blocks_.rows(b);
      float* out = v + BlockOffset(b) - BlockOffset(begin) + c * rows * kLane;
      for (int r = 0; r < rows; ++r, tile.Next()) {
        const float* from = x + (tile.n * channel_blocks + c) * plane;
        TransformInput(from, p_.in_h, p_.in_w, tile.y * kTile - p_.pad_h, tile.x * kTile - p_.pad_w,
                       out + r * kLane, PositionStride(b));
        PrefetchTile(from + plane + (tile.y * p_.in_w + tile.x) * kTile * kLane, p_.in_w);
      }
    }
  }

  // Blocks of tiles [begin, end) by block k of output channels, to y.
  void MultiplyPiece(const Arguments& a, int64_t begin, int64_t end, int64_t k, const float* v,
                     const float* u, float* product) const {
    const int64_t first = blocks_.first(begin), tiles = blocks_.first(end) - first;
    for (int position = 0; position < kPositions; ++position) {
      for (int64_t b = begin; b < end; ++b) {
        const float* block = v + BlockOffset(b) - BlockOffset(begin);
        MultiplyChannels(wide_, blocks_.rows(b), block + position * PositionStride(b),
                         u + position * u_position_, p_.in_channels / kLane,
                         product + (blocks_.first(b) - first) * kProductRow + position * kColumns);
      }
    }
    const int64_t out_blocks = p_.out_channels / kLane;
    for (int half = 0; half < 2 && 2 * k + half < out_blocks; ++half) {
      StoreTiles(a, first, tiles, 2 * k + half, product + half * kLane);
    }
  }

  // Output channels [8*k, 8*k + 8) of some tiles, from their products.
  void StoreTiles(const Arguments& a, int64_t first, int64_t tiles, int64_t k,
                  const float* m) const {
    const int64_t out_blocks = p_.out_channels / kLane;
    const Vec<float> bias = a.bias == nullptr ? Vec<float>{} : Load(a.bias + k * kLane);
    TileCursor tile(first, rows_, columns_);
    for (int64_t t = 0; t < tiles; ++t, tile.Next(), m += kProductRow) {
      const int64_t y = tile.y * kTile, x = tile.x * kTile;
      const int64_t at = (((tile.n * out_blocks + k) * p_.out_h + y) * p_.out_w + x) * kLane;
      const float* residual = a.residual == nullptr ? nullptr : a.residual + at;
      // The next 8 channels are written next.
      PrefetchTile(a.y + at + p_.out_h * p_.out_w * kLane, p_.out_w);
      const int height = static_cast<int>(std::min<int64_t>(kTile, p_.out_h - y));
      const int width = static_cast<int>(std::min<int64_t>(kTile, p_.out_w - x));
      if (height == kTile && width == kTile) {
        StoreTile<true>(m, bias, residual, a.y + at, height, width);
      } else {
        StoreTile<false>(m, bias, residual, a.y + at, height, width);
      }
    }
  }

  template <bool kWhole>
  void StoreTile(const float* m, Vec<float> bias, const float* residual, float* y, int height,
                 int width) const {
    const Vec<float> low = Splat(epilogue_.low), high = Splat(epilogue_.high);
    const int64_t row = p_.out_w * kLane;
    const auto store = [&](int i, int j, Vec<float> value) {
      Store(y + i * row + j * kLane, Within(low, value, high));
    };
    const auto inside = [&](int i, int j) { return kWhole || (i < height && j < width); };
    if (residual == nullptr) {
      TransformProduct(m, kColumns, [&](int i, int j, Vec<float> value) {
        if (inside(i, j)) store(i, j, value + bias);
      });
    } else {
      TransformProduct(m, kColumns, [&](int i, int j, Vec<float> value) {
        if (inside(i, j)) store(i, j, value + bias + Load(residual + i * row + j * kLane));
      });
    }
  }

  Problem p_;
  WinogradEpilogue epilogue_;
  int64_t rows_, columns_;  // tiles of an image
  bool wide_;               // products in AVX-512
  RowBlocks blocks_;        // of tiles
  int64_t k_blocks_, u_position_, u_block_;
  int64_t parts_ = 1, groups_ = 1;  // groups of blocks of tiles
  bool many_tiles_ = false;
  std::shared_ptr<const Tensor> constant_;
  size_t shared_at_ = 0, operand_at_ = 0, product_at_ = 0, part_bytes_ = 0, parts_at_ = 0;
};

// From activations in input 0 and weights in input 1 to output 0.
Kernel MakeKernel(const KernelRequest& r, const Problem& p, const WinogradEpilogue& epilogue,
                  bool with_bias, const CpuFeatures& cpu) {
  auto conv = std::make_shared<WinogradConv>(p, epilogue, cpu);
  const ConstantInput w = r.ConstantAt(1);
  if (w && conv->weights_bytes() < kMaxConstantBytes) {
    const std::string form =
        absl::StrCat("winograd ", p.in_channels, " ", p.out_channels, p.turned ? " turned" : "");
    conv->SetConstantWeights(w.Arranged<Tensor>(form, [&] {
      Tensor u(DType::kFloat, Shape{static_cast<int64_t>(conv->weights_bytes() / sizeof(float))});
      conv->TransformWeights((*w).data<float>(), u.data<float>());
      return u;
    }));
  }
  Kernel kernel;
  kernel.infallible = true;
  kernel.workspace_bytes = conv->PlanWorkspace();
  kernel.run = [conv = std::shared_ptr<const WinogradConv>(std::move(conv)), with_bias,
                residual = epilogue.residual_input](const KernelCall& call) {
    conv->Run({.x = call.inputs[0]->data<float>(),
               .w = call.inputs[1]->data<float>(),
               .bias = with_bias ? call.inputs[2]->data<float>() : nullptr,
               .residual = residual < 0 ? nullptr : call.inputs[residual]->data<float>(),
               .y = call.outputs[0]->data<float>(),
               .workspace = call.workspace});
    return absl::OkStatus();
  };
  return kernel;
}

// Costs in multiplications of the direct kernel, per pair of an input and an
// output channel: 36 for a tile's products, 200 for a filter's transform, 300
// for a tile's transform of one channel.
double CostOf(const ConvGeometry& g) {
  const Window& w = g.window;
  const double tiles =
      static_cast<double>(g.batch) * CeilDiv(w.out[0], kTile) * CeilDiv(w.out[1], kTile);
  return tiles * (36 + 300 * (1.0 / g.in_channels + 1.0 / g.out_channels)) + 200;
}

}  // namespace
}  // namespace winograd

namespace {

using winograd::kLane;
using winograd::MakeKernel;
using winograd::Problem;

absl::Status NotServed(const KernelRequest& r) {
  return NodeUnimplemented(r.node, "not a convolution that Winograd's algorithm speeds up");
}

}  // namespace

absl::Status CheckWinogradRequest(const KernelRequest& r) {
  return CheckFloatConv(r).ok() ? absl::OkStatus() : NotServed(r);
}

bool WinogradServes(const ConvGeometry& g) {
  const Window& w = g.window;
  if (w.rank() != 2 || g.groups != 1 || g.in_channels % kLane != 0 || g.out_channels % kLane != 0) {
    return false;
  }
  for (int i = 0; i < 2; ++i) {
    if (w.kernel[i] != 3 || w.strides[i] != 1 || w.dilations[i] != 1 || w.pads_begin[i] > 2 ||
        w.pads_end[i] > 2) {
      return false;
    }
  }
  return true;
}

bool WinogradPays(const ConvGeometry& g, ConvPass pass) {
  if (!WinogradServes(g)) return false;
  // oneDNN is at its best with input gradients.
  const double margin = pass == ConvPass::kInputGrad ? 0.8 : 0.9;
  return winograd::CostOf(g) < margin * 9.0 * g.batch * g.window.out_elements();
}

absl::StatusOr<Kernel> AnyWinogradConv(const KernelRequest& r, const WinogradEpilogue& epilogue,
                                       const CpuFeatures& cpu) {
  ONWARD_RETURN_IF_ERROR(CheckWinogradRequest(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConv(r, 0, 1));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.y()));
  if (!WinogradServes(g)) return NotServed(r);
  const int residual = epilogue.residual_input;
  if (residual >= 0 && (!r.HasInput(residual) || r.in(residual) != g.y())) return NotServed(r);
  Kernel kernel = MakeKernel(r, Problem::Forward(g), epilogue, r.HasInput(2), cpu);
  kernel.input_layouts = {LayoutOf(BlockedDesc(g.x(), kLane))};
  const Layout y = LayoutOf(BlockedDesc(g.y(), kLane));
  if (residual >= 0) {
    kernel.input_layouts.resize(residual + 1);
    kernel.input_layouts[residual] = y;
    kernel.in_place = {{0, residual}};
  }
  kernel.output_layouts = {y};
  return kernel;
}

absl::StatusOr<Kernel> AnyWinogradConvInputGrad(const KernelRequest& r, const CpuFeatures& cpu) {
  ONWARD_RETURN_IF_ERROR(CheckWinogradRequest(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 2, 1));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.x()));
  if (!WinogradServes(g)) return NotServed(r);
  Kernel kernel = MakeKernel(r, Problem::InputGrad(g), {}, /*with_bias=*/false, cpu);
  // X serves for its shape alone: whatever layout it has is fine.
  kernel.input_layouts = {LayoutOf(BlockedDesc(g.y(), kLane)), nullptr, r.inputs[2].layout};
  kernel.output_layouts = {LayoutOf(BlockedDesc(g.x(), kLane))};
  return kernel;
}

absl::StatusOr<Kernel> MakeWinogradConv(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckWinogradRequest(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConv(r, 0, 1));
  return WinogradPays(g, ConvPass::kForward) ? AnyWinogradConv(r, {}) : NotServed(r);
}

absl::StatusOr<Kernel> MakeWinogradConvInputGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckWinogradRequest(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 2, 1));
  return WinogradPays(g, ConvPass::kInputGrad) ? AnyWinogradConvInputGrad(r) : NotServed(r);
}

absl::StatusOr<Kernel> MakeWinogradConvWeightGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckWinogradRequest(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 1, 2));
  return WinogradPays(g, ConvPass::kWeightGrad) ? AnyWinogradConvWeightGrad(r) : NotServed(r);
}

}  // namespace onward

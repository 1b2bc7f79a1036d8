// SPDX-License-Identifier: Apache-2.0
// ScaledDotProductAttention, and the standard's Attention where that is all it
// asks for.
#include "core/ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/register.h"
#include "core/ops/cpu/vec.h"

namespace onward {
namespace {

struct Attention {
  Attention(AttentionShape s, AttentionStrides out) : shape(s), y(out), work(shape) {
    WorkspacePlan plan;
    scores_at = plan.Add(work.block_rows * shape.keys * sizeof(float));
    inverse_at = plan.Add(work.block_rows * sizeof(float));
    gemm_at = plan.Add(std::max(
        Sgemm::WorkspaceBound(work.block_rows, shape.keys, shape.depth, work.threads),
        Sgemm::WorkspaceBound(work.block_rows, shape.value_depth, shape.keys, work.threads)));
    part_bytes = plan.bytes();
  }

  AttentionShape shape;
  AttentionStrides y;
  AttentionWork work;
  size_t scores_at, inverse_at, gemm_at, part_bytes;  // in the workspace of a part

  void Run(const KernelCall& call) const {
    ForAttentionPairs(
        shape, work, call.workspace, part_bytes,
        [&](const AttentionPair& pair, void* workspace) { RunPair(pair, call, workspace); });
  }

  void RunPair(const AttentionPair& pair, const KernelCall& call, void* workspace) const {
    const float* q = call.inputs[0]->data<float>() + shape.q.At(pair.b, pair.h);
    const float* k = call.inputs[1]->data<float>() + shape.k.At(pair.b, pair.key_head);
    const float* v = call.inputs[2]->data<float>() + shape.v.At(pair.b, pair.key_head);
    const Tensor* mask = shape.mask.present ? call.inputs[3] : nullptr;
    float* to = call.outputs[0]->data<float>() + y.At(pair.b, pair.h);
    float* scores = At<float>(workspace, scores_at);
    float* inverse = At<float>(workspace, inverse_at);
    void* scratch = At<char>(workspace, gemm_at);
    for (int64_t i = 0; i < shape.queries; i += work.block_rows) {
      const int64_t rows = std::min(work.block_rows, shape.queries - i);
      const int64_t keys = shape.KeysBefore(i + rows);
      Sgemm(rows, keys, shape.depth, work.threads)
          .Run({q + i * shape.q.row, shape.q.row, shape.q.column}, {k, shape.k.column, shape.k.row},
               scores, {}, scratch);
      SoftmaxOfScores(shape, pair, mask, i, rows, keys, scores, keys, inverse);
      float* out = to + i * y.row;
      Sgemm(rows, shape.value_depth, keys, work.threads)
          .Run({scores, keys, 1}, {v, shape.v.row, shape.v.column}, out, {.row = y.row}, scratch);
      for (int64_t row = 0; row < rows; ++row, out += y.row) {
        for (int64_t d = 0; d < shape.value_depth; ++d) out[d] *= inverse[row];
      }
    }
  }
};

Kernel KernelFor(const AttentionShape& shape, const AttentionStrides& y) {
  auto state = std::make_shared<const Attention>(shape, y);
  Kernel kernel;
  kernel.infallible = true;
  kernel.workspace_bytes = state->work.parts * state->part_bytes;
  kernel.run = [state](const KernelCall& call) {
    state->Run(call);
    return absl::OkStatus();
  };
  return kernel;
}

Shape ResultShape(const KernelRequest& r, int) {
  Shape shape = r.in(0);
  shape[shape.rank() - 1] = r.in(2)[shape.rank() - 1];
  return shape;
}

absl::StatusOr<Kernel> MakeAttention(const KernelRequest& r) {
  return TryDnnl(r.node, [&]() -> absl::StatusOr<Kernel> {
    std::vector<Layout> layouts;
    ONWARD_ASSIGN_OR_RETURN(const AttentionShape shape, ReadAttention(r, 0, &layouts));
    Layout result;
    const AttentionStrides y = OutputStrides(r.outputs[0], ResultShape(r, 0), &result);
    Kernel kernel = KernelFor(shape, y);
    kernel.input_layouts = std::move(layouts);
    kernel.output_layouts = {result};
    return kernel;
  });
}

// [B, S, heads * D] as [B, heads, S, D].
AttentionStrides JoinedHeads(const Shape& x, int64_t heads) {
  return {x[1] * x[2], x[2] / heads, x[2], 1};
}

// Attention without a cache, a window, a cap and its inner results.
bool IsPlainAttention(const KernelRequest& r) {
  for (int i : {4, 5, 6}) {
    if (r.HasInput(i)) return false;
  }
  for (int i : {1, 2, 3}) {
    if (r.HasOutput(i)) return false;
  }
  for (const char* side : {"left_window_size", "right_window_size"}) {
    if (r.node.Int(side, -1) != -1) return false;
  }
  return r.HasInput(0) && r.HasInput(1) && r.HasInput(2) && r.node.Float("softcap", 0) == 0;
}

// Sizes and strides of the standard's Q, K and V; false where they do not fit.
bool ReadHeads(const KernelRequest& r, AttentionShape* a, std::vector<Layout>* layouts) {
  const Shape &q = r.in(0), &k = r.in(1), &v = r.in(2);
  const int rank = q.rank();
  if ((rank != 3 && rank != 4) || k.rank() != rank || v.rank() != rank) return false;
  a->heads = rank == 4 ? q[1] : r.node.Int("q_num_heads", 0);
  const int64_t key_heads = rank == 4 ? k[1] : r.node.Int("kv_num_heads", 0);
  const int64_t v_heads = rank == 4 ? v[1] : key_heads;
  if (a->heads < 1 || key_heads < 1 || a->heads % key_heads != 0 || v_heads != key_heads) {
    return false;
  }
  a->heads_per_key = a->heads / key_heads;
  a->batch = q[0];
  a->queries = q[rank - 2];
  a->keys = k[rank - 2];
  const int64_t split = rank == 3 ? a->heads : 1, key_split = rank == 3 ? key_heads : 1;
  if (q[rank - 1] % split != 0 || k[rank - 1] % key_split != 0 || v[rank - 1] % key_split != 0) {
    return false;
  }
  a->depth = q[rank - 1] / split;
  a->value_depth = v[rank - 1] / key_split;
  if (k[rank - 1] / key_split != a->depth || v[rank - 2] != a->keys || k[0] != a->batch ||
      v[0] != a->batch) {
    return false;
  }
  layouts->resize(r.inputs.size());
  if (rank == 3) {
    a->q = JoinedHeads(q, a->heads);
    a->k = JoinedHeads(k, key_heads);
    a->v = JoinedHeads(v, key_heads);
  } else {
    a->q = StridesOf(r.inputs[0], &(*layouts)[0]);
    a->k = StridesOf(r.inputs[1], &(*layouts)[1]);
    a->v = StridesOf(r.inputs[2], &(*layouts)[2]);
  }
  return true;
}

absl::StatusOr<Kernel> MakeStandardAttention(const KernelRequest& r) {
  if (!IsPlainAttention(r)) return NodeUnimplemented(r.node, "serves plain attention");
  for (int i = 0; i < static_cast<int>(r.inputs.size()); ++i) {
    const ValueSpec& value = r.inputs[i];
    if (!value.present()) continue;
    const bool type = value.dtype == DType::kFloat || (i == 3 && value.dtype == DType::kBool);
    if (!type || !value.shape.has_value() || !FitsDnnl(*value.shape)) {
      return NodeUnimplemented(r.node, "serves floats of known shape");
    }
  }
  return TryDnnl(r.node, [&]() -> absl::StatusOr<Kernel> {
    AttentionShape a;
    std::vector<Layout> layouts;
    if (!ReadHeads(r, &a, &layouts)) return NodeUnimplemented(r.node, "other shapes");
    // A mask that is short of keys is padded, not broadcast.
    const bool masked = r.HasInput(3);
    if (masked && (r.in(3).rank() < 2 || r.in(3)[r.in(3).rank() - 1] != a.keys ||
                   !ReadMask(r.inputs[3], &a))) {
      return NodeUnimplemented(r.node, "another mask");
    }
    a.scale = r.node.Float("scale", static_cast<float>(1 / std::sqrt(double(a.depth))));
    a.causal = r.node.Int("is_causal", 0) != 0;
    a.empty_rows = true;
    const int rank = r.in(0).rank();
    const Shape shape = rank == 4 ? Shape{a.batch, a.heads, a.queries, a.value_depth}
                                  : Shape{a.batch, a.queries, a.heads * a.value_depth};
    ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, shape));
    Layout result;
    const AttentionStrides y =
        rank == 4 ? OutputStrides(r.outputs[0], shape, &result) : JoinedHeads(shape, a.heads);
    Kernel kernel = KernelFor(a, y);
    kernel.input_layouts = std::move(layouts);
    kernel.output_layouts = {result};
    return kernel;
  });
}

}  // namespace

void RegisterAttentionKernels(KernelTable& table) {
  table.Add("ScaledDotProductAttention", {"reference", 1, MakeAttention, "float"}, kOnwardDomain);
  table.Add("Attention", {"reference", 25, MakeStandardAttention, "float"});
  RegisterAttentionGradKernels(table);
}

}  // namespace onward

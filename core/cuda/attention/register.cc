// SPDX-License-Identifier: Apache-2.0
// ScaledDotProductAttention with its gradient, and the standard's Attention where that is all it
// asks for.
#include "core/cuda/register.h"

#include <algorithm>
#include <cmath>

#include "core/base/status.h"
#include "core/cuda/attention/attention.h"
#include "core/cuda/request.h"

namespace onward::cuda {
namespace {

// Of a plain value of rank 3 (without heads) or 4.
HeadStrides StridesOf(const Shape& shape) {
  const Shape::Dims s = shape.Strides();
  const int rank = shape.rank();
  return {s[0], rank == 4 ? s[1] : 0, s[rank - 2], 1};
}
// [batch, rows, heads * columns].
HeadStrides JoinedHeads(const Shape& x, int64_t heads) {
  return {x[1] * x[2], x[2] / heads, x[2], 1};
}

// How a mask of up to 4 axes is broadcast to the scores; false where it does not fit.
bool ReadMask(const Shape& dims, DType dtype, AttentionShape& a) {
  const int64_t scores[] = {a.batch, a.heads, a.queries, a.keys};
  const int missing = 4 - dims.rank();
  if (missing < 0) return false;
  const Shape::Dims own = dims.Strides();
  int64_t strides[4] = {};
  for (int i = 0; i < dims.rank(); ++i) {
    if (dims[i] != 1 && dims[i] != scores[i + missing]) return false;
    if (dims[i] != 1) strides[i + missing] = own[i];
  }
  a.mask = {strides[0], strides[1], strides[2], strides[3]};
  a.masked = true;
  a.boolean_mask = dtype == DType::kBool;
  return a.boolean_mask || dtype == a.dtype;
}

bool IsEmpty(const AttentionShape& a) {
  return a.batch * a.heads * a.queries * a.keys * a.depth * a.value_depth == 0;
}

// Q, K, V and the mask, which are inputs first .. first + 3, by the rules of
// ScaledDotProductAttention.
absl::StatusOr<AttentionShape> ReadAttention(const KernelRequest& r, int first) {
  const Shape &q = r.in(first), &k = r.in(first + 1), &v = r.in(first + 2);
  const int rank = q.rank();
  AttentionShape a;
  a.dtype = r.inputs[first].dtype;
  bool fits = (rank == 3 || rank == 4) && k.rank() == rank && v.rank() == rank;
  for (int i = 0; i < 3; ++i) fits = fits && r.inputs[first + i].dtype == a.dtype;
  for (int i = 0; fits && i < rank - 2; ++i) fits = k[i] == q[i] && v[i] == q[i];
  if (!fits || k[rank - 1] != q[rank - 1] || v[rank - 2] != k[rank - 2]) return Unserved(r);
  a.batch = q[0];
  a.heads = rank == 4 ? q[1] : 1;
  a.queries = q[rank - 2];
  a.keys = k[rank - 2];
  a.depth = static_cast<int>(std::min<int64_t>(q[rank - 1], 1 << 20));
  a.value_depth = static_cast<int>(std::min<int64_t>(v[rank - 1], 1 << 20));
  a.q = StridesOf(q);
  a.k = StridesOf(k);
  a.v = StridesOf(v);
  Shape y = q;
  y[rank - 1] = v[rank - 1];
  a.y = StridesOf(y);
  if (r.HasInput(first + 3)) {
    Shape mask = r.in(first + 3);
    if (mask.rank() > rank || r.inputs[first + 3].dtype != a.dtype) return Unserved(r);
    if (rank == 3 && mask.rank() == 3) mask = Shape{mask[0], 1, mask[1], mask[2]};
    if (!ReadMask(mask, a.dtype, a)) return Unserved(r);
  }
  a.scale = r.node.Float("scale", 1);
  if (IsEmpty(a) || !ServesAttention(a)) return Unserved(r);
  return a;
}

Kernel ForwardKernel(const KernelRequest& r, const AttentionShape& shape) {
  Kernel kernel = QueuedKernel(r, [shape](const KernelCall& call) {
    const void* mask = shape.masked ? In(call, 3) : nullptr;
    return Attention(shape, {In(call, 0), In(call, 1), In(call, 2), mask}, Out(call, 0),
                     StreamOf(call));
  });
  kernel.infallible = true;
  return kernel;
}

absl::StatusOr<Kernel> MakeAttention(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  ONWARD_ASSIGN_OR_RETURN(const AttentionShape shape, ReadAttention(r, 0));
  return ForwardKernel(r, shape);
}

absl::StatusOr<Kernel> MakeAttentionGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 4));
  ONWARD_ASSIGN_OR_RETURN(const AttentionShape shape, ReadAttention(r, 1));
  Shape y = r.in(1);
  y[y.rank() - 1] = shape.value_depth;
  if (r.in(0) != y || r.inputs[0].dtype != shape.dtype) return Unserved(r);
  // In 16 bits the probabilities are rounded as the body rounds them; this kernel does not.
  if (shape.dtype != DType::kFloat) return Unserved(r);
  Kernel kernel = QueuedKernel(r, [shape](const KernelCall& call) {
    const void* mask = shape.masked ? In(call, 4) : nullptr;
    const AttentionGrads grads = {In(call, 0), Out(call, 0), Out(call, 1), Out(call, 2),
                                  Out(call, 3)};
    return AttentionGrad(shape, {In(call, 1), In(call, 2), In(call, 3), mask}, grads,
                         call.workspace, StreamOf(call));
  });
  kernel.infallible = true;
  kernel.workspace_bytes = AttentionGradWorkspace(shape);
  return kernel;
}

// Without a cache, a window, a cap and the inner results.
bool IsPlain(const KernelRequest& r) {
  for (int i : {4, 5, 6}) {
    if (r.HasInput(i)) return false;
  }
  for (int i : {1, 2, 3}) {
    if (r.HasOutput(i)) return false;
  }
  for (const char* side : {"left_window_size", "right_window_size"}) {
    if (r.node.Int(side, -1) != -1) return false;
  }
  return r.node.Float("softcap", 0) == 0;
}

// Sizes and strides of the standard's Q, K, V and Y; false where they do not fit.
bool ReadHeads(const KernelRequest& r, AttentionShape& a) {
  const Shape &q = r.in(0), &k = r.in(1), &v = r.in(2);
  const int rank = q.rank();
  if ((rank != 3 && rank != 4) || k.rank() != rank || v.rank() != rank) return false;
  a.heads = rank == 4 ? q[1] : r.node.Int("q_num_heads", 0);
  const int64_t key_heads = rank == 4 ? k[1] : r.node.Int("kv_num_heads", 0);
  const int64_t value_heads = rank == 4 ? v[1] : key_heads;
  if (a.heads < 1 || key_heads < 1 || a.heads % key_heads != 0 || value_heads != key_heads) {
    return false;
  }
  a.heads_per_key = a.heads / key_heads;
  a.batch = q[0];
  a.queries = q[rank - 2];
  a.keys = k[rank - 2];
  const int64_t split = rank == 3 ? a.heads : 1, key_split = rank == 3 ? key_heads : 1;
  const int64_t depth = q[rank - 1] / split, value_depth = v[rank - 1] / key_split;
  if (q[rank - 1] % split != 0 || k[rank - 1] != depth * key_split ||
      v[rank - 1] % key_split != 0 || v[rank - 2] != a.keys || k[0] != a.batch || v[0] != a.batch ||
      std::max(depth, value_depth) > (1 << 20)) {
    return false;
  }
  a.depth = static_cast<int>(depth);
  a.value_depth = static_cast<int>(value_depth);
  const Shape y = rank == 4 ? Shape{a.batch, a.heads, a.queries, value_depth}
                            : Shape{a.batch, a.queries, a.heads * value_depth};
  a.q = rank == 4 ? StridesOf(q) : JoinedHeads(q, a.heads);
  a.k = rank == 4 ? StridesOf(k) : JoinedHeads(k, key_heads);
  a.v = rank == 4 ? StridesOf(v) : JoinedHeads(v, key_heads);
  a.y = rank == 4 ? StridesOf(y) : JoinedHeads(y, a.heads);
  return r.HasOutput(0) && r.out(0) == y;
}

absl::StatusOr<Kernel> MakeStandardAttention(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  AttentionShape a;
  a.dtype = r.inputs[0].dtype;
  bool fits = IsPlain(r) && ReadHeads(r, a);
  for (int i : {1, 2}) fits = fits && r.inputs[i].dtype == a.dtype;
  // A mask that is short of keys is padded, not broadcast.
  if (fits && r.HasInput(3)) {
    const Shape& mask = r.in(3);
    fits =
        mask.rank() >= 2 && mask[mask.rank() - 1] == a.keys && ReadMask(mask, r.inputs[3].dtype, a);
  }
  if (!fits) return Unserved(r);
  a.scale = r.node.Float("scale", static_cast<float>(1 / std::sqrt(static_cast<double>(a.depth))));
  a.causal = r.node.Int("is_causal", 0) != 0;
  a.empty_rows = true;
  if (IsEmpty(a) || !ServesAttention(a)) return Unserved(r);
  return ForwardKernel(r, a);
}

}  // namespace

void RegisterAttention(const Context&, KernelTable& table) {
  const char* types = "float, float16, bfloat16";
  table.Add("ScaledDotProductAttention", {"cuda", 1, MakeAttention, types}, kOnwardDomain);
  table.Add("ScaledDotProductAttentionGrad", {"cuda", 1, MakeAttentionGrad, "float"},
            kOnwardDomain);
  table.Add("Attention", {"cuda", 25, MakeStandardAttention, types});
}

}  // namespace onward::cuda

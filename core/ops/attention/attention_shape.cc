// SPDX-License-Identifier: Apache-2.0
// What the attention kernels share: sizes, strides, the split of the work, and
// the softmax of a block of scores.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/ops/attention/attention.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/vec.h"

namespace onward {
namespace {

constexpr int64_t kMostRows = 128;         // of Q in one block
constexpr int64_t kFewestRows = 48;        // unless Q has fewer
constexpr int64_t kBlockScores = 1 << 16;  // aimed at
constexpr int64_t kSmallWork = 1 << 17;    // multiplications that stay on one thread
constexpr int64_t kRowGrain = 1 << 13;     // scores that are worth a thread

AttentionStrides AsStrides(absl::Span<const int64_t> s) {
  const size_t rank = s.size();
  return {s[0], rank == 4 ? s[1] : 0, s[rank - 2], s[rank - 1]};
}

// scale * score + mask, where that cannot wait for the exponential.
void AddMask(const AttentionShape& a, const void* mask, int64_t n, float* scores) {
  const int64_t step = a.mask.strides.column;
  if (a.mask.boolean) {
    const bool* allowed = static_cast<const bool*>(mask);
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    for (int64_t j = 0; j < n; ++j) scores[j] = allowed[j * step] ? scores[j] * a.scale : kNever;
  } else if (const float* added = static_cast<const float*>(mask); step == 1) {
    for (int64_t j = 0; j < n; ++j) scores[j] = scores[j] * a.scale + added[j];
  } else {
    for (int64_t j = 0; j < n; ++j) scores[j] = scores[j] * a.scale + added[j * step];
  }
}

// exp(scale * (score - max)) in place; returns 1 / sum. The scale is not negative.
float ExponentialsOfRow(float* scores, int64_t n, float scale, bool empty_rows) {
  const float max = RowMax(scores, n);
  // A row of -inf alone; RowMax passes over NaN, which is not to become zeros.
  if (empty_rows && max == -std::numeric_limits<float>::infinity() &&
      std::none_of(scores, scores + n, [](float score) { return std::isnan(score); })) {
    std::fill_n(scores, n, 0.0f);
    return 0;
  }
  const float shift = max * scale;
  const auto [sum] = Sums<float, 1>(n, [&](int64_t i, int count, Vec<float>* term) {
    term[0] = Exp(Load(scores + i, count) * scale - shift);
    Store(scores + i, term[0], count);
  });
  return 1 / sum;
}

}  // namespace

AttentionWork::AttentionWork(const AttentionShape& a) {
  const int64_t multiplications = a.pairs() * a.queries * a.keys * (a.depth + a.value_depth);
  const int team = multiplications < kSmallWork ? 1 : Threads();
  parts = a.pairs() < team ? 1 : team;
  threads = parts == 1 ? team : 1;
  const int64_t most = std::clamp(kBlockScores / a.keys, kFewestRows, kMostRows);
  const int64_t blocks = (a.queries + most - 1) / most;
  block_rows = (a.queries + blocks - 1) / blocks;
}

AttentionPair::AttentionPair(const AttentionShape& shape, int64_t pair)
    : b(pair / shape.heads), h(pair % shape.heads), key_head(h / shape.heads_per_key) {}

AttentionStrides StridesOf(const ValueSpec& value, Layout* layout) {
  *layout = nullptr;
  if (value.layout != nullptr) {
    const DnnlDesc desc = StridedDescOf(*value.shape, value.layout);
    if (!desc.is_zero()) {
      *layout = value.layout;
      return AsStrides(desc.get_strides());
    }
  }
  return AsStrides(value.shape->Strides());
}

AttentionStrides OutputStrides(const ValueSpec& value, const Shape& shape, Layout* layout) {
  const AttentionStrides wished = StridesOf({value.dtype, shape, value.layout, nullptr}, layout);
  if (wished.column == 1) return wished;
  *layout = nullptr;
  return AsStrides(shape.Strides());
}

bool ReadMask(const ValueSpec& mask, AttentionShape* shape) {
  const int64_t scores[] = {shape->batch, shape->heads, shape->queries, shape->keys};
  const int rank = mask.shape->rank(), missing = 4 - rank;
  if (missing < 0) return false;
  const Shape::Dims own = mask.shape->Strides();
  int64_t strides[4] = {};
  for (int i = 0; i < rank; ++i) {
    const int64_t dim = (*mask.shape)[i];
    if (dim != 1 && dim != scores[i + missing]) return false;
    if (dim != 1) strides[i + missing] = own[i];
  }
  shape->mask = {AsStrides(strides), true, mask.dtype == DType::kBool};
  return true;
}

absl::StatusOr<AttentionShape> ReadAttention(const KernelRequest& r, int first,
                                             std::vector<Layout>* layouts) {
  for (const ValueSpec& value : r.inputs) {
    if (!value.present()) continue;
    if (value.dtype != DType::kFloat || !value.shape.has_value() || !FitsDnnl(*value.shape)) {
      return NodeUnimplemented(r.node, "serves floats of known shape");
    }
  }
  const Shape &q = r.in(first), &k = r.in(first + 1), &v = r.in(first + 2);
  const int rank = q.rank();
  if ((rank != 3 && rank != 4) || k.rank() != rank || v.rank() != rank) {
    return NodeUnimplemented(r.node, "serves Q, K and V of rank 3 or 4");
  }
  AttentionShape a;
  a.batch = q[0];
  a.heads = rank == 4 ? q[1] : 1;
  a.queries = q[rank - 2];
  a.depth = q[rank - 1];
  a.keys = k[rank - 2];
  a.value_depth = v[rank - 1];
  bool fits = k[rank - 1] == a.depth && v[rank - 2] == a.keys;
  for (int i = 0; i < rank - 2; ++i) fits &= k[i] == q[i] && v[i] == q[i];
  if (!fits) {
    return NodeUnimplemented(
        r.node, absl::StrCat("Q ", q.ToString(), ", K ", k.ToString(), ", V ", v.ToString()));
  }
  layouts->resize(r.inputs.size());
  a.q = StridesOf(r.inputs[first], &(*layouts)[first]);
  a.k = StridesOf(r.inputs[first + 1], &(*layouts)[first + 1]);
  a.v = StridesOf(r.inputs[first + 2], &(*layouts)[first + 2]);
  if (r.HasInput(first + 3)) {
    ValueSpec mask = r.inputs[first + 3];
    Shape dims = *mask.shape;
    if (dims.rank() > rank) return NodeUnimplemented(r.node, "a mask of more axes than Q");
    if (rank == 3 && dims.rank() == 3) dims = Shape{dims[0], 1, dims[1], dims[2]};
    mask.shape = dims;
    if (!ReadMask(mask, &a)) return NodeUnimplemented(r.node, "the mask widens the scores");
  }
  a.scale = r.node.Float("scale", 1);
  return a;
}

void SoftmaxOfScores(const AttentionShape& a, const AttentionPair& pair, const Tensor* mask,
                     int64_t first, int64_t rows, int64_t keys, float* scores, int64_t stride,
                     float* inverse) {
  const size_t size = a.mask.boolean ? sizeof(bool) : sizeof(float);
  ParallelFor(rows, kRowGrain / keys + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* row = scores + i * stride;
      const int64_t query = first + i, seen = std::min(keys, a.KeysBefore(query + 1));
      float scale = a.scale;
      if (a.mask.present) {
        const int64_t at = a.mask.strides.At(pair.b, pair.h) + query * a.mask.strides.row;
        AddMask(a, static_cast<const char*>(mask->raw()) + at * size, seen, row);
        scale = 1;
      } else if (!(scale >= 0)) {
        for (int64_t j = 0; j < seen; ++j) row[j] *= scale;
        scale = 1;
      }
      inverse[i] = ExponentialsOfRow(row, seen, scale, a.empty_rows);
      std::fill(row + seen, row + keys, 0.0f);
    }
  });
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

// [B, L, H * D] as [B, H, L, D].
Array SplitHeads(const Array& x, int64_t heads) {
  if (x.rank() == 4) return x;
  const int64_t depth = x.shape[2] / heads;
  return Make(x.dtype, {x.shape[0], heads, x.shape[1], depth}, [&](const Index& at) {
    return x[{at[0], at[2], at[1] * depth + at[3]}];
  });
}

// softmax(scale * Q K^T + mask) V over [B, H, L, D], a key head for several query heads.
Arrays Attention(const Call& c) {
  const int64_t q_heads = c.node.Int("q_num_heads", 1), kv_heads = c.node.Int("kv_num_heads", 1);
  const Array q = SplitHeads(c.in[0], q_heads), k = SplitHeads(c.in[1], kv_heads);
  const Array v = SplitHeads(c.in[2], kv_heads);
  const int64_t depth = q.shape[3], keys = k.shape[2], share = q.shape[1] / k.shape[1];
  const Number scale = c.node.Has("scale") ? Number{c.node.Float("scale", 1)}
                                           : 1 / std::sqrt(static_cast<Number>(depth));
  const bool causal = c.node.Int("is_causal", 0) != 0;
  const auto weight = [&](const Index& at, int64_t key) -> Number {
    Number score = 0;
    for (int64_t d = 0; d < depth; ++d) {
      score += q[{at[0], at[1], at[2], d}] * k[{at[0], at[1] / share, key, d}];
    }
    score *= scale;
    if (causal && key > at[2]) return 0;
    if (c.Has(3)) {
      const Number mask = c.in[3].Broadcast({at[0], at[1], at[2], key});
      if (c.in[3].dtype == DType::kBool && mask == 0) return 0;
      if (c.in[3].dtype != DType::kBool) score += mask;
    }
    return std::exp(score);
  };
  Array y = Make(q.dtype, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}, [&](const Index& at) {
    Number sum = 0, weights = 0;
    for (int64_t key = 0; key < keys; ++key) {
      const Number w = weight(at, key);
      sum += w * v[{at[0], at[1] / share, key, at[3]}];
      weights += w;
    }
    return weights == 0 ? 0 : sum / weights;
  });
  if (c.in[0].rank() == 4) return {y};
  const int64_t width = y.shape[3];
  return {Make(y.dtype, {y.shape[0], y.shape[2], y.shape[1] * width}, [&](const Index& at) {
    return y[{at[0], at[2] / width, at[1], at[2] % width}];
  })};
}

}  // namespace

const Table& AttentionTable() {
  static const auto* const table = new Table{{"Attention", Attention}};
  return *table;
}

}  // namespace onward::reference

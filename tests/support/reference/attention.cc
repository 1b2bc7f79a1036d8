// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <numeric>

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

// The keys or values of before and those of now.
Array Joined(const Array* past, const Array& now) {
  if (past == nullptr) return now;
  Shape shape = now.shape;
  const int64_t before = past->shape[2];
  shape[2] += before;
  return Make(now.dtype, shape, [&](const Index& at) {
    return at[2] < before ? (*past)[at] : now[With(at, 2, at[2] - before)];
  });
}

// What is added to the score of a query and a key: minus infinity where the key is hidden.
Number Bias(const Call& c, const Index& at, int64_t before, int64_t queries) {
  constexpr Number kHidden = -std::numeric_limits<Number>::infinity();
  const int64_t batch = at[0], key = at[3];
  const bool counted = c.Has(6);
  const int64_t length = counted ? c.in[6].Ints()[batch] : 0;
  const int64_t place = at[2] + (counted ? length - queries : before);
  const int64_t left = c.node.Int("left_window_size", -1);
  const int64_t right = c.node.Int("right_window_size", -1);
  if (counted && key >= length) return kHidden;
  if (c.node.Int("is_causal", 0) != 0 && key > place) return kHidden;
  if ((left >= 0 && place - key > left) || (right >= 0 && key - place > right)) return kHidden;
  if (!c.Has(3)) return 0;
  const Number mask = c.in[3].Broadcast(at);
  return c.in[3].dtype != DType::kBool ? mask : mask == 0 ? kHidden : 0;
}

// softmax(cap(scale * Q K^T) + mask) V over [B, H, L, D], a key head for several query heads;
// what was before and is now of keys and values, and the scores as far as the mode says.
Arrays Attention(const Call& c) {
  const int64_t q_heads = c.node.Int("q_num_heads", 1), kv_heads = c.node.Int("kv_num_heads", 1);
  const int64_t mode = c.node.Int("qk_matmul_output_mode", 0);
  const Array q = SplitHeads(c.in[0], q_heads);
  const Array k = Joined(c.Has(4) ? &c.in[4] : nullptr, SplitHeads(c.in[1], kv_heads));
  const Array v = Joined(c.Has(5) ? &c.in[5] : nullptr, SplitHeads(c.in[2], kv_heads));
  const int64_t depth = q.shape[3], keys = k.shape[2], share = q.shape[1] / k.shape[1];
  const int64_t queries = q.shape[2], before = c.Has(4) ? c.in[4].shape[2] : 0;
  const Number scale = c.node.Has("scale") ? Number{c.node.Float("scale", 1)}
                                           : 1 / std::sqrt(static_cast<Number>(depth));
  const Number cap = c.node.Float("softcap", 0);
  Array weights(q.dtype, {q.shape[0], q.shape[1], queries, keys});
  Array scores = Make(q.dtype, weights.shape, [&](const Index& at) {
    Number product = 0;
    for (int64_t d = 0; d < depth; ++d) {
      product += q[{at[0], at[1], at[2], d}] * k[{at[0], at[1] / share, at[3], d}];
    }
    product *= scale;
    const Number capped = cap > 0 ? cap * std::tanh(product / cap) : product;
    const Number biased = capped + Bias(c, at, before, queries);
    weights[at] = std::exp(biased);
    return mode == 0 ? product : mode == 1 ? capped : biased;
  });
  for (int64_t row = 0; row < weights.size(); row += keys) {
    const auto first = weights.values.begin() + row;
    const Number sum = std::accumulate(first, first + keys, Number{0});
    for (int64_t key = 0; key < keys && sum != 0; ++key) first[key] /= sum;
  }
  if (mode == 3) {
    scores = Make(q.dtype, weights.shape, [&](const Index& at) { return weights[at]; });
  }
  Array y = Make(q.dtype, {q.shape[0], q.shape[1], queries, v.shape[3]}, [&](const Index& at) {
    Number sum = 0;
    for (int64_t key = 0; key < keys; ++key) {
      sum += weights[With(at, 3, key)] * v[{at[0], at[1] / share, key, at[3]}];
    }
    return sum;
  });
  if (c.in[0].rank() == 4) return {y, k, v, scores};
  const int64_t width = y.shape[3];
  const Array joined =
      Make(y.dtype, {y.shape[0], y.shape[2], y.shape[1] * width}, [&](const Index& at) {
        return y[{at[0], at[2] / width, at[1], at[2] % width}];
      });
  return {joined, k, v, scores};
}

}  // namespace

const Table& AttentionTable() {
  static const auto* const table = new Table{{"Attention", Attention}};
  return *table;
}

}  // namespace onward::reference

// SPDX-License-Identifier: Apache-2.0
// Attention in onnxruntime's forms. Each becomes
//   softmax(scale * q k^T + bias) v
// for q, k and v of [batch, heads, length, size], where the bias holds what is masked.
#include "contrib/microsoft/attention.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace onward::microsoft {
namespace {

// What keeps a key from a query that must not see it: so low that softmax gives zero, and
// still a number when masks are added.
double Never(const Expr& like) { return like.dtype() == DType::kFloat16 ? -30000 : -1e30; }

// 0 where `seen`, `hidden` elsewhere.
Expr BiasOf(const Expr& seen, double hidden, const Expr& like) {
  GraphBuilder& b = like.builder();
  return Where(seen, b.Scalar(0, like), b.Scalar(hidden, like));
}

Expr Joined(const Expr& a, const Expr& b) { return !a.defined() ? b : !b.defined() ? a : a + b; }

}  // namespace

Expr SplitHeads(const Call& call, const Expr& x, int64_t heads) {
  const int64_t width = x.dim(2);
  if (width >= 0 && width % heads != 0) {
    return call.Fail(absl::StrCat(width, " columns are not those of ", heads, " heads"));
  }
  return Transpose(Reshape(x, {0, 0, heads, width < 0 ? -1 : width / heads}), {0, 2, 1, 3});
}

Expr JoinHeads(const Expr& x) {
  const int64_t heads = x.dim(1), size = x.dim(3);
  return Reshape(Transpose(x, {0, 2, 1, 3}), {0, 0, heads < 0 || size < 0 ? -1 : heads * size});
}

Expr CausalBias(const Heads& heads, int64_t window) {
  const Expr keys = RangeTo(DimOf(heads.k, 2));
  Expr queries = Unsqueeze(RangeTo(DimOf(heads.q, 2)), {1});
  if (heads.past.defined()) queries = queries + heads.past;
  Expr seen = LessOrEqual(keys, queries);
  if (window > 0) seen = And(seen, Greater(keys, queries - keys.builder().Int(window)));
  return BiasOf(seen, Never(heads.q), heads.q);
}

Expr PaddingBias(const Expr& last, const Heads& heads) {
  const Expr rows = Reshape(Cast(last, DType::kInt64), {-1, 1, 1, 1});
  return BiasOf(LessOrEqual(RangeTo(DimOf(heads.k, 2)), rows), Never(heads.q), heads.q);
}

Expr MaskBias(const Call& call, const Expr& mask, const Heads& heads) {
  const double hidden = static_cast<double>(call.node().Float("mask_filter_value", -10000.f));
  GraphBuilder& b = call.b();
  const auto bias = [&](const Expr& seen) { return BiasOf(seen, hidden, heads.q); };
  if (mask.rank() == 2) {
    return bias(Greater(Unsqueeze(mask, {1, 2}), b.Scalar(0, mask)));  // [batch, total]
  }
  if (mask.rank() == 3) {
    return bias(Greater(Unsqueeze(mask, {1}), b.Scalar(0, mask)));  // [batch, length, total]
  }
  if (mask.rank() != 1) {
    return call.Fail(absl::StrCat("a mask of ", mask.type().ToString(),
                                  " is not supported, expected rank 1, 2 or 3"));
  }
  // Ends of the rows, and after those of all rows their starts.
  const Expr batch = ShapeOf(heads.q, 0, 1), keys = RangeTo(DimOf(heads.k, 2));
  const auto column = [&](const Expr& v) { return Unsqueeze(Cast(v, DType::kInt64), {1, 2, 3}); };
  const int64_t rows = heads.q.dim(0), entries = mask.dim(0);
  if (rows >= 0 && entries >= 0 && entries != rows && entries != 2 * rows) {
    return call.Fail(absl::StrCat("a mask of ", entries, " numbers for ", rows,
                                  " rows is not supported, expected ends, or ends and starts"));
  }
  if (entries >= 0 && entries == rows) return bias(Less(keys, column(mask)));
  // Without starts, zeros take their place.
  const Expr zeros = Expand(b.Scalar(0, mask), batch);
  const Expr ends = Slice(mask, b.Ints({0}), batch, b.Ints({0}));
  const Expr starts = Slice(Concat({mask, zeros}, 0), batch, batch + batch, b.Ints({0}));
  return bias(And(Less(keys, column(ends)), GreaterOrEqual(keys, column(starts))));
}

Expr Attend(const Call& call, const Heads& heads, const Bias& bias, Expr* probabilities) {
  GraphBuilder& b = call.b();
  const int64_t size = heads.q.dim(3);
  double scale = call.node().Float("scale", 0);
  if (scale == 0 && size > 0) scale = 1 / std::sqrt(static_cast<double>(size));
  if (scale == 0) return call.Fail("the size of the heads is not known; declare shapes");
  Expr scores = MatMul(heads.q, Transpose(heads.k, {0, 1, 3, 2})) * scale;
  if (bias.softcap > 0) scores = Tanh(scores / bias.softcap) * bias.softcap;
  const Expr added = Joined(bias.masked, bias.given);
  if (added.defined()) scores = scores + added;
  const Expr p = b.Op("Softmax", {scores}, {{"axis", -1}});
  if (probabilities != nullptr) *probabilities = p;
  return MatMul(p, heads.v);
}

Heads WithPast(const Call& call, Heads heads, const Expr& past_key, const Expr& past_value) {
  if (past_key.defined() != past_value.defined()) {
    call.Fail("has past keys or past values, but not both");
    return heads;
  }
  if (past_key.defined()) {
    heads.past = DimOf(past_key, 2);
    heads.k = Concat({past_key, heads.k}, 2);
    heads.v = Concat({past_value, heads.v}, 2);
  }
  return heads;
}

Bias BiasesOf(const Call& call, const Heads& heads, const Expr& mask, const Expr& given) {
  Bias bias;
  bias.given = given;
  if (mask.defined()) bias.masked = MaskBias(call, mask, heads);
  if (call.Flag("unidirectional")) bias.masked = Joined(bias.masked, CausalBias(heads, 0));
  return bias;
}

std::vector<Expr> AttendMerged(const Call& call, const MergedAttention& operands) {
  const int64_t count = call.RequiredInt("num_heads", 1, kMostHeads);
  if (!call.Without("do_rotary", 0) || !call.Without("past_present_share_buffer", 0)) return {};
  const Expr input = operands.input;
  if (input.rank() != 3 || operands.weights.rank() != 2) {
    return call.Refuse("expected an input of [batch, length, size] and weights of rank 2");
  }
  Expr merged = MatMul(input, operands.weights);
  if (operands.bias.defined()) merged = merged + operands.bias;
  std::vector<int64_t> sizes = call.node().Ints("qkv_hidden_sizes");
  const int64_t width = operands.weights.dim(1);
  if (sizes.empty() && width > 0 && width % 3 == 0) sizes.assign(3, width / 3);
  if (sizes.size() != 3) {
    return call.Refuse("weights of unknown size, or not of three parts; see qkv_hidden_sizes");
  }
  const std::vector<Expr> parts =
      call.b().Ops("Split", {merged, call.b().Ints(sizes)}, 3, {{"axis", -1}});
  if (!call.ok()) return {};
  Heads heads = {SplitHeads(call, parts[0], count), SplitHeads(call, parts[1], count),
                 SplitHeads(call, parts[2], count)};
  if (operands.past.defined()) {
    const auto part = [&](int64_t i) {
      return Squeeze(SliceAxis(operands.past, 0, i, i + 1), {0});
    };
    heads = WithPast(call, heads, part(0), part(1));
  }
  const Bias bias = BiasesOf(call, heads, operands.mask, operands.attention_bias);
  std::vector<Expr> results = {JoinHeads(Attend(call, heads, bias))};
  if (call.wants(1))
    results.push_back(Concat({Unsqueeze(heads.k, {0}), Unsqueeze(heads.v, {0})}, 0));
  return results;
}

namespace {

std::vector<Expr> Attention(const Call& call) {
  if (!call.Without(6, "past_sequence_length, for a shared buffer")) return {};
  return AttendMerged(call,
                      {call.in(0), call.in(1), call.in(2), call.in(3), call.in(4), call.in(5)});
}

std::vector<Expr> QAttention(const Call& call) {
  const Expr scale = call.in(3);
  const auto real = [&](const Expr& q, const Expr& s, const Expr& zero) {
    return Dequantized(q, s, zero, scale);
  };
  return AttendMerged(call, {real(call.in(0), scale, call.in(6)),
                             real(call.in(1), call.in(4), call.in(7)),
                             call.in(2),
                             call.in(5),
                             call.in(8),
                             {}});
}

// Query, key and value as the call gives them: apart, or packed in one or two.
std::optional<Heads> GivenHeads(const Call& call, int64_t count) {
  const Expr query = call.in(0), key = call.in(1), value = call.in(2);
  const auto part = [&](const Expr& packed, int64_t i) {  // [batch, length, heads, parts, size]
    return Transpose(Squeeze(SliceAxis(packed, 3, i, i + 1), {3}), {0, 2, 1, 3});
  };
  if (query.rank() == 5 && !key.defined() && !value.defined()) {
    return Heads{part(query, 0), part(query, 1), part(query, 2)};
  }
  if (query.rank() != 3 || !key.defined()) {
    call.Fail("expected a query of [batch, length, size] with a key, or all packed in rank 5");
    return std::nullopt;
  }
  if (key.rank() == 5 && !value.defined()) {
    return Heads{SplitHeads(call, query, count), part(key, 0), part(key, 1)};
  }
  if (value.defined() && key.rank() == 4 && value.rank() == 4) {
    return Heads{SplitHeads(call, query, count), key, value};
  }
  if (!value.defined() || key.rank() != 3 || value.rank() != 3) {
    call.Fail("expected key and value of [batch, length, size], or packed ones");
    return std::nullopt;
  }
  return Heads{SplitHeads(call, query, count), SplitHeads(call, key, count),
               SplitHeads(call, value, count)};
}

// The projections' bias, [sizes of q, k and v], added to the heads.
bool AddBias(const Call& call, const Expr& bias, int64_t count, Heads* heads) {
  if (!bias.defined()) return true;
  std::vector<int64_t> sizes;
  for (const Expr* part : {&heads->q, &heads->k, &heads->v}) sizes.push_back(part->dim(3) * count);
  if (sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1) {
    call.Fail("the sizes of the heads are not known; declare shapes");
    return false;
  }
  const std::vector<Expr> parts =
      call.b().Ops("Split", {bias, call.b().Ints(sizes)}, 3, {{"axis", 0}});
  Expr* const all[] = {&heads->q, &heads->k, &heads->v};
  for (int i = 0; i < 3; ++i) *all[i] = *all[i] + Reshape(parts[i], {count, 1, -1});
  return call.ok();
}

std::vector<Expr> MultiHeadAttention(const Call& call) {
  const int64_t count = call.RequiredInt("num_heads", 1, kMostHeads);
  if (!call.Without(8, "past_sequence_length, for a shared buffer") ||
      !call.Without(9, "cache_indirection")) {
    return {};
  }
  std::optional<Heads> heads = GivenHeads(call, count);
  if (!heads.has_value() || !call.ok() || !AddBias(call, call.in(3), count, &*heads)) return {};
  *heads = WithPast(call, *heads, call.in(6), call.in(7));
  const Bias bias = BiasesOf(call, *heads, call.in(4), call.in(5));
  Expr probabilities;
  const Expr y = JoinHeads(Attend(call, *heads, bias, &probabilities));
  return {y, heads->k, heads->v, probabilities};
}

}  // namespace

void RegisterAttentions(FunctionLibrary& library) {
  library.Add("Attention", Define(Attention, 2, "TTTITTI"), kDomain);
  library.Add("QAttention", Define(QAttention, 5, "IITTTIIIT"), kDomain);
  library.Add("MultiHeadAttention", Define(MultiHeadAttention, 1, "TTTTITTTII"), kDomain);
}

}  // namespace onward::microsoft

// SPDX-License-Identifier: Apache-2.0
// Rotary positions, and the attention of language models that uses them.
#include "absl/strings/str_cat.h"
#include "contrib/microsoft/attention.h"

namespace onward::microsoft {
namespace {

// The rows of the caches for each position, shaped for heads whose axes of positions and of
// heads are `length_axis` and the other one of 1 and 2.
struct Turn {
  Expr cos, sin;
  int64_t width = 0;  // so many first elements of a head are turned
};

// Positions [batch, length], or [1] where the first one stands, the others following.
std::optional<Turn> TurnOf(const Call& call, Expr positions, const Expr& length, int length_axis,
                           const Expr& cos_cache, const Expr& sin_cache) {
  const int64_t half = cos_cache.dim(-1);
  if (cos_cache.rank() != 2 || sin_cache.rank() != 2 || half < 1 || half > kMostHeads ||
      positions.rank() < 1 || positions.rank() > 2) {
    call.Fail("expected caches of rank 2 and known width, and positions of rank 1 or 2");
    return std::nullopt;
  }
  const int64_t heads_axis = length_axis == 1 ? -2 : -3;
  if (positions.rank() == 1) positions = Cast(positions, DType::kInt64) + RangeTo(length);
  const auto rows = [&](const Expr& cache) {
    const Expr at = Gather(cache, positions);  // [.., length, half]
    return heads_axis == -2 || at.rank() == 3 ? Unsqueeze(at, {heads_axis}) : at;
  };
  return Turn{rows(cos_cache), rows(sin_cache), 2 * half};
}

// (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), the pairs in halves or next to each other
Expr Turned(const Expr& x, const Turn& turn, bool interleaved) {
  GraphBuilder& b = x.builder();
  const bool whole = x.dim(-1) == turn.width;
  const Expr pairs = whole ? x : SliceAxis(x, -1, 0, turn.width);
  Expr first, second;
  if (interleaved) {
    const Expr apart = Reshape(pairs, {0, 0, 0, turn.width / 2, 2});
    first = Squeeze(SliceAxis(apart, -1, 0, 1), {-1});
    second = Squeeze(SliceAxis(apart, -1, 1, 2), {-1});
  } else {
    first = SliceAxis(pairs, -1, 0, turn.width / 2);
    second = SliceAxis(pairs, -1, turn.width / 2, turn.width);
  }
  const Expr y1 = first * turn.cos - second * turn.sin, y2 = second * turn.cos + first * turn.sin;
  Expr y = interleaved ? Reshape(Concat({Unsqueeze(y1, {-1}), Unsqueeze(y2, {-1})}, -1),
                                 {0, 0, 0, turn.width})
                       : Concat({y1, y2}, -1);
  if (whole) return y;
  constexpr int64_t kEnd = int64_t{1} << 62;
  return b.Op("Concat", {y, SliceAxis(x, -1, turn.width, kEnd)}, {{"axis", -1}});
}

std::vector<Expr> RotaryEmbedding(const Call& call) {
  if (!call.HasRank(0, {3, 4}) || !call.Without("is_packed_batching", 0)) return {};
  const Expr x = call.in(0), cos_cache = call.in(2);
  const bool interleaved = call.Flag("interleaved");
  const int64_t heads = call.IntIn("num_heads", 0, 0, kMostHeads);
  const int64_t width = call.IntIn("rotary_embedding_dim", 0, 0, kMostHeads);
  if (!call.ok()) return {};
  if (width > 0 && cos_cache.dim(-1) > 0 && width != 2 * cos_cache.dim(-1)) {
    return call.Refuse(absl::StrCat("rotary_embedding_dim is ", width, ", but the caches have ",
                                    cos_cache.dim(-1), " columns"));
  }
  if (x.rank() == 4) {  // [batch, heads, length, size]
    auto turn = TurnOf(call, call.in(1), DimOf(x, 2), 2, cos_cache, call.in(3));
    if (!turn.has_value() || !call.ok()) return {};
    return {Turned(x, *turn, interleaved)};
  }
  if (width > 0 && heads == 0) return call.Refuse("rotary_embedding_dim needs num_heads");
  auto turn = TurnOf(call, call.in(1), DimOf(x, 1), 1, cos_cache, call.in(3));
  if (!turn.has_value() || !call.ok()) return {};
  const Expr split =
      width > 0 ? Reshape(x, {0, 0, heads, -1}) : Reshape(x, {0, 0, -1, turn->width});
  return {ReshapeLike(Turned(split, *turn, interleaved), x)};
}

// Each head of k or v for as many heads of q as share it.
Expr Repeated(const Expr& x, int64_t shared, int64_t times) {
  if (times == 1) return x;
  const Expr wide = Expand(Unsqueeze(x, {2}), x.builder().Ints({1, 1, times, 1, 1}));
  return Reshape(wide, {0, shared * times, -1, x.dim(3)});
}

// Heads of q, k and v from [batch, length, size] each, or from one that holds all three.
std::optional<Heads> GroupedHeads(const Call& call, int64_t count, int64_t shared) {
  const Expr query = call.in(0), key = call.in(1), value = call.in(2);
  if (key.defined() != value.defined()) {
    call.Fail("has a key or a value, but not both");
    return std::nullopt;
  }
  if (!call.HasRank(0, {3}) || !call.HasRank(1, {3}) || !call.HasRank(2, {3})) return std::nullopt;
  if (key.defined()) {
    return Heads{SplitHeads(call, query, count), SplitHeads(call, key, shared),
                 SplitHeads(call, value, shared)};
  }
  const int64_t all = count + 2 * shared, width = query.dim(2);
  if (width < 1 || width % all != 0) {
    call.Fail(
        absl::StrCat("a query of ", query.type().ToString(), " does not hold ", all, " heads"));
    return std::nullopt;
  }
  const int64_t size = width / all;
  const std::vector<Expr> parts =
      call.b().Ops("Split", {query, call.b().Ints({count * size, shared * size, shared * size})}, 3,
                   {{"axis", -1}});
  return Heads{SplitHeads(call, parts[0], count), SplitHeads(call, parts[1], shared),
               SplitHeads(call, parts[2], shared)};
}

// What else the operator has: caches of fewer bits or of a window, and changed softmaxes.
bool IsPlain(const Call& call) {
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    if (call.node().String(name, "NONE") == "NONE") continue;
    call.Fail(absl::StrCat("attribute ", name, ": a quantized cache is not supported"));
    return false;
  }
  return call.Without("smooth_softmax", call.node().Int("smooth_softmax", 0) == 0 ? 0 : -1) &&
         call.Without("sliding_window_cache", 0) && call.Without("qk_output", 0) &&
         call.Without(11, "head_sink") && call.Without(12, "k_scale") &&
         call.Without(13, "v_scale") && call.Without(14, "q_norm_weight") &&
         call.Without(15, "k_norm_weight");
}

// The last key of each row has the number that seqlens_k tells, padding follows.
std::vector<Expr> GroupQueryAttention(const Call& call) {
  const int64_t count = call.RequiredInt("num_heads", 1, kMostHeads);
  const int64_t shared = call.RequiredInt("kv_num_heads", 1, kMostHeads);
  const int64_t window = call.IntIn("local_window_size", -1, -1, int64_t{1} << 40);
  const bool causal = call.Flag("causal", true), interleaved = call.Flag("rotary_interleaved");
  const bool rotary = call.Flag("do_rotary");
  if (!call.ok() || !IsPlain(call) || !call.Given({5})) return {};
  if (count % shared != 0) return call.Refuse("num_heads is no multiple of kv_num_heads");
  std::optional<Heads> heads = GroupedHeads(call, count, shared);
  if (!heads.has_value() || !call.ok()) return {};
  if (rotary) {
    if (!call.Given({7, 8})) return {};
    const Expr past = call.in(3).defined() ? DimOf(call.in(3), 2) : call.b().Int(0);
    const Expr positions = call.in(9).defined() ? call.in(9) : Unsqueeze(past, {0});
    auto turn = TurnOf(call, positions, DimOf(heads->q, 2), 2, call.in(7), call.in(8));
    if (!turn.has_value() || !call.ok()) return {};
    heads->q = Turned(heads->q, *turn, interleaved);
    heads->k = Turned(heads->k, *turn, interleaved);
  }
  *heads = WithPast(call, *heads, call.in(3), call.in(4));
  const Expr present_key = heads->k, present_value = heads->v;
  if (present_key.dim(3) < 1 || present_value.dim(3) < 1) {
    return call.Refuse("the size of the heads is not known; declare shapes");
  }
  heads->k = Repeated(heads->k, shared, count / shared);
  heads->v = Repeated(heads->v, shared, count / shared);
  Bias bias;
  bias.given = call.in(10);
  bias.softcap = call.node().Float("softcap", 0);
  bias.masked = PaddingBias(call.in(5), *heads);
  if (causal) bias.masked = bias.masked + CausalBias(*heads, window);
  if (!call.ok()) return {};
  return {JoinHeads(Attend(call, *heads, bias)), present_key, present_value};
}

}  // namespace

void RegisterRotary(FunctionLibrary& library) {
  library.Add("RotaryEmbedding", Define(RotaryEmbedding, 4, "TITT"), kDomain);
  library.Add("GroupQueryAttention", Define(GroupQueryAttention, 1, "TTT..IITTITTTTTT"), kDomain);
}

}  // namespace onward::microsoft

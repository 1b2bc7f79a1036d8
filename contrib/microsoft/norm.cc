// SPDX-License-Identifier: Apache-2.0
// Normalizations: those that onnxruntime has in the standard's domain, those fused with what
// precedes them, and embeddings with theirs.
#include "absl/strings/str_cat.h"
#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

// As the standard has it from opset 17 on, but in any opset, and with a scale that may be of
// another type than X: then that is the type of the result.
std::vector<Expr> LayerNormalization(const Call& call) {
  const int outputs = call.wants(2) ? 3 : call.wants(1) ? 2 : 1;
  const Expr scale = call.in(1), bias = call.in(2);
  const bool mixed = call.in(0).dtype() != scale.dtype();
  const Expr x = mixed ? Widened(call.in(0)) : call.in(0);
  const auto as_x = [&](const Expr& e) { return mixed && e.defined() ? CastLike(e, x) : e; };
  std::vector<Expr> results = call.b().Ops("LayerNormalization", {x, as_x(scale), as_x(bias)},
                                           outputs, call.Pick({"axis", "epsilon", "stash_type"}));
  if (mixed) results[0] = CastLike(results[0], scale);
  return results;
}

// Y = X / sqrt(mean(X^2) + epsilon) * scale
std::vector<Expr> SimplifiedLayerNormalization(const Call& call) {
  const LayerNormal n = RootMeanNormalized(call, call.in(0), call.in(1), 1e-5f, call.wants(1));
  return {n.y, n.inverse};
}

// input + skip + bias, to which outputs 0 to 2 belong; output 3
Expr Skipped(const Call& call, size_t bias) {
  const Expr sum = call.in(0) + call.in(1);
  return call.in(bias).defined() ? sum + call.in(bias) : sum;
}

std::vector<Expr> SkipLayerNormalization(const Call& call) {
  const Expr sum = Skipped(call, 4);
  const LayerNormal n =
      LayerNormalized(call, sum, call.in(2), call.in(3), call.node().Float("epsilon", 1e-12f));
  return {n.y, n.mean, n.inverse, sum};
}

std::vector<Expr> SkipSimplifiedLayerNormalization(const Call& call) {
  const Expr sum = Skipped(call, 3);
  if (call.wants(1)) return call.Refuse("has no mean to give (output 1)");
  const LayerNormal n = RootMeanNormalized(call, sum, call.in(2), 1e-12f, call.wants(2));
  return {n.y, {}, n.inverse, sum};
}

// Y = activation(normal * gamma + beta), normal over groups of channels
std::vector<Expr> GroupNormalized(const Call& call, Expr x) {
  const bool last = call.Flag("channels_last", true), silu = call.Flag("activation");
  const int64_t groups = call.RequiredInt("groups", 1, int64_t{1} << 30);
  if (!call.ok() || !call.HasRank(0, {3, 4, 5})) return {};
  if (last) x = ChannelsFirst(x);
  const Expr grouped = Widened(Reshape(x, {0, groups, -1}));
  const Expr centred = grouped - ReduceMean(grouped, {2});
  const Expr normal = centred / Sqrt(ReduceMean(centred * centred, {2}) +
                                     static_cast<double>(call.node().Float("epsilon", 1e-5f)));
  std::vector<int64_t> channels(x.rank() - 1, 1);
  channels[0] = -1;
  const auto along = [&](const Expr& v) { return CastLike(Reshape(v, channels), normal); };
  Expr y = ReshapeLike(normal, x) * along(call.in(1)) + along(call.in(2));
  if (silu) y = y * Sigmoid(y);
  y = CastLike(y, call.in(0));
  return {last ? ChannelsLast(y) : y};
}

std::vector<Expr> GroupNorm(const Call& call) { return GroupNormalized(call, call.in(0)); }

// The same of X + skip + bias, which is output 1
std::vector<Expr> SkipGroupNorm(const Call& call) {
  if (!call.HasRank(0, {4}) || !call.HasRank(3, {2, 4})) return {};
  const bool last = call.Flag("channels_last", true);
  Expr skip = call.in(3), bias = call.in(4);
  if (skip.rank() == 2)
    skip = Unsqueeze(skip, last ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{2, 3});
  Expr sum = call.in(0) + skip;
  if (bias.defined()) sum = sum + (last ? bias : Reshape(bias, {-1, 1, 1}));
  if (!call.ok()) return {};
  std::vector<Expr> y = GroupNormalized(call, sum);
  if (!y.empty()) y.push_back(sum);
  return y;
}

// Rows of tables: words by input_ids, positions by position_ids or 0, 1, .., segments.
std::vector<Expr> EmbedLayerNormalization(const Call& call) {
  if (!call.HasRank(0, {2}) || !call.Given({2, 3, 5, 6})) return {};
  Embedding parts;
  parts.ids = call.in(0);
  parts.mask = call.in(7);
  parts.word_rows = Gather(call.in(2), parts.ids);
  parts.position_rows = call.in(8).defined() ? Gather(call.in(3), call.in(8))
                                             : Slice(call.in(3), call.b().Ints({0}),
                                                     ShapeOf(parts.ids, 1, 2), call.b().Ints({0}));
  if (call.in(1).defined() && call.in(4).defined()) {
    parts.segment_rows = Gather(call.in(4), call.in(1));
  }
  parts.gamma = call.in(5);
  parts.beta = call.in(6);
  return EmbedAndNormalize(call, parts);
}

}  // namespace

LayerNormal LayerNormalized(const Call& call, const Expr& x, const Expr& gamma, const Expr& beta,
                            float epsilon) {
  const int outputs = call.wants(2) ? 3 : call.wants(1) ? 2 : 1;
  std::vector<Expr> y = call.b().Ops("LayerNormalization", {x, gamma, beta}, outputs,
                                     {{"axis", -1}, {"epsilon", epsilon}});
  y.resize(3);
  return {y[0], y[1], y[2]};
}

LayerNormal RootMeanNormalized(const Call& call, const Expr& x, const Expr& gamma,
                               float default_epsilon, bool wants_inverse) {
  const float epsilon = call.node().Float("epsilon", default_epsilon);
  const int64_t axis = call.node().Int("axis", -1);
  std::vector<int64_t> axes = {-1};
  if (axis != -1) {
    if (x.rank() < 1) return {call.Fail("the rank of X is not known; declare its shape"), {}, {}};
    const int64_t first = call.IntIn("axis", -1, -x.rank(), x.rank() - 1);
    axes.clear();
    for (int64_t i = first < 0 ? first + x.rank() : first; i < x.rank(); ++i) axes.push_back(i);
  }
  const bool standard = call.opset_has(23) && x.dtype() == gamma.dtype();
  LayerNormal n;
  if (standard) {
    n.y = call.b().Op("RMSNormalization", {x, gamma}, {{"axis", axis}, {"epsilon", epsilon}});
  }
  if (standard && !wants_inverse) return n;
  const Expr wide = Widened(x);
  n.inverse = 1 / Sqrt(ReduceMean(wide * wide, axes) + static_cast<double>(epsilon));
  if (!standard) n.y = CastLike(wide * n.inverse, gamma) * gamma;
  return n;
}

std::vector<Expr> EmbedAndNormalize(const Call& call, const Embedding& parts) {
  Expr sum = parts.word_rows + parts.position_rows;
  if (parts.segment_rows.defined()) sum = sum + parts.segment_rows;
  const Expr y = call.b().Op("LayerNormalization", {sum, parts.gamma, parts.beta},
                             {{"axis", -1}, {"epsilon", call.node().Float("epsilon", 1e-12f)}});
  // How many tokens of each row are to be seen.
  Expr counts;
  if (parts.mask.defined()) {
    const Expr seen = Equal(parts.mask, call.b().Scalar(1, parts.mask));
    counts = ReduceSum(Cast(seen, DType::kInt32), {1}, false);
  } else if (call.wants(1)) {
    counts = Expand(call.b().Constant(Tensor::Scalar<int32_t>(0)), ShapeOf(parts.ids, 0, 1));
  }
  return {y, counts, sum};
}

void RegisterNormalizations(FunctionLibrary& library) {
  library.Add("LayerNormalization", Define(LayerNormalization, 2, "F"), kDomain);
  library.Add("SimplifiedLayerNormalization", Define(SimplifiedLayerNormalization, 2, "F"),
              kDomain);
  library.Add("SkipLayerNormalization", Define(SkipLayerNormalization, 3, "T"), kDomain);
  library.Add("SkipSimplifiedLayerNormalization", Define(SkipSimplifiedLayerNormalization, 3, "T"),
              kDomain);
  library.Add("GroupNorm", Define(GroupNorm, 3, "F"), kDomain);
  library.Add("SkipGroupNorm", Define(SkipGroupNorm, 4, "F"), kDomain);
  library.Add("EmbedLayerNormalization", Define(EmbedLayerNormalization, 1, "IITTTTTII"), kDomain);
}

}  // namespace onward::microsoft

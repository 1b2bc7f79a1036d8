// SPDX-License-Identifier: Apache-2.0
// Bodies of the gradients of normalizations and of the softmaxes. Statistics of
// float16 and bfloat16 inputs are taken in float.
#include "autograd/functions.h"
#include "core/base/shape.h"

namespace onward {
namespace {

// y = normal * scale + B, normal over all axes but 1 (the channels);
// dB = sum(dy), dscale = sum(dy * normal), dx = NormalizeGrad(dy * scale)
std::vector<Expr> BatchNormalizationGrad(GraphBuilder& b, const Node& call,
                                         const std::vector<Expr>& in) {
  const Channelled form(in[1], in[2]);
  const int rank = form.rank();
  if (rank < 1) {
    FailAt(b, call, "X has no axis");
    return {};
  }
  const Expr x = form.Of(Widened(in[1]));
  const Expr dy = form.Of(CastLike(in[0], x)), scale = CastLike(in[2], x);
  const std::vector<int64_t> axes = AxesBut(rank, 1);
  const Normalized n = Normalize(x, axes, call.Float("epsilon", 1e-5f));
  Expr channels = rank == 1 ? scale : AlongAxis(scale, 1, rank);  // rank 1: one channel
  Expr dx = NormalizeGrad(n, dy * channels, axes);
  Expr dscale = ReduceSum(dy * n.normal, axes, rank == 1), db = ReduceSum(dy, axes, rank == 1);
  return {CastLike(form.Back(dx), in[1]), CastLike(dscale, in[2]), CastLike(db, in[2])};
}

// y = normal * scale + B, normal over the axes from `axis` on;
// dB = sum(dy), dscale = sum(dy * normal) over the other axes,
// dx = NormalizeGrad(dy * scale)
std::vector<Expr> LayerNormalizationGrad(GraphBuilder& b, const Node& call,
                                         const std::vector<Expr>& in) {
  const int rank = in[1].rank();
  absl::StatusOr<int> axis = NormalizeAxis(call.Int("axis", -1), rank);
  if (!axis.ok()) {
    FailAt(b, call, "axis is out of range, or the rank of X is not known");
    return {};
  }
  const Expr x = Widened(in[1]);
  const Expr dy = CastLike(in[0], x), scale = CastLike(in[2], x);
  const std::vector<int64_t> axes = AxesRange(*axis, rank), others = AxesRange(0, *axis);
  const Normalized n = Normalize(x, axes, call.Float("epsilon", 1e-5f));
  std::vector<Expr> results = {CastLike(NormalizeGrad(n, dy * scale, axes), in[1]),
                               CastLike(ReduceSum(dy * n.normal, others, false), in[2])};
  if (call.HasOutput(2)) results.push_back(CastLike(ReduceSum(dy, others, false), in[2]));
  return results;
}

// y = (x - mean) / (sqrt(variance) + 1e-9), as the standard's body, which is of float alone
std::vector<Expr> MeanVarianceNormalization(GraphBuilder&, const Node& call,
                                            const std::vector<Expr>& in) {
  const std::vector<int64_t> axes = call.Ints("axes", {0, 2, 3});
  const Expr x = Widened(in[0]), centred = x - ReduceMean(x, axes);
  const Expr deviation = Sqrt(ReduceMean(centred * centred, axes));
  return {CastLike(centred / (deviation + 1e-9), in[0])};
}

// y = softmax(x);  dx = y*dy - y * sum(y*dy)
std::vector<Expr> SoftmaxGrad(GraphBuilder&, const Node& call, const std::vector<Expr>& in) {
  const Expr &dy = in[0], &y = in[1];
  Expr ydy = y * dy;
  return {ydy - y * ReduceSum(ydy, {call.Int("axis", -1)})};
}

// y = logsoftmax(x);  dx = dy - exp(y) * sum(dy)
std::vector<Expr> LogSoftmaxGrad(GraphBuilder&, const Node& call, const std::vector<Expr>& in) {
  const Expr &dy = in[0], &y = in[1];
  return {dy - Exp(y) * ReduceSum(dy, {call.Int("axis", -1)})};
}

}  // namespace

Expr MeanOver(const Expr& x, const Expr& axes) {
  return x.builder().Op("ReduceMean", {x, axes}, {{"keepdims", 1}, {"noop_with_empty_axes", 0}});
}

Normalized Normalize(const Expr& x, const std::vector<int64_t>& axes, float epsilon) {
  return Normalize(x, x.builder().Ints(axes), epsilon);
}

Normalized Normalize(const Expr& x, const Expr& axes, float epsilon) {
  Expr centred = x - MeanOver(x, axes);
  Expr variance = MeanOver(centred * centred, axes);
  Expr rstd = 1 / Sqrt(variance + static_cast<double>(epsilon));
  return {centred * rstd, rstd};
}

Expr NormalizeGrad(const Normalized& n, const Expr& g, const std::vector<int64_t>& axes) {
  return NormalizeGrad(n, g, g.builder().Ints(axes));
}

Expr NormalizeGrad(const Normalized& n, const Expr& g, const Expr& axes) {
  return n.rstd * (g - MeanOver(g, axes) - n.normal * MeanOver(g * n.normal, axes));
}

void RegisterNormFunctions(FunctionLibrary& library) {
  library.Add("BatchNormalizationGrad", {.body = BatchNormalizationGrad,
                                         .output_like = {1, 2, 2},
                                         .shape_only = {},
                                         .attributes = {"epsilon"},
                                         .required = 3,
                                         .operands = "F"});
  library.Add("LayerNormalizationGrad", {.body = LayerNormalizationGrad,
                                         .output_like = {1, 2, 2},
                                         .shape_only = {},
                                         .attributes = {"axis", "epsilon"},
                                         .required = 3,
                                         .operands = "F"});
  library.Add("MeanVarianceNormalization",
              {.body = MeanVarianceNormalization,
               .output_like = {0},
               .shape_only = {},
               .attributes = {"axes"},
               .required = 1,
               .operands = "F"},
              /*domain=*/"");
  library.Add("SoftmaxGrad", {.body = SoftmaxGrad,
                              .output_like = {1},
                              .shape_only = {},
                              .attributes = {"axis"},
                              .required = 2,
                              .operands = "T"});
  library.Add("LogSoftmaxGrad", {.body = LogSoftmaxGrad,
                                 .output_like = {1},
                                 .shape_only = {},
                                 .attributes = {"axis"},
                                 .required = 2,
                                 .operands = "T"});
}

}  // namespace onward

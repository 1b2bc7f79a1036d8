// SPDX-License-Identifier: Apache-2.0
// Bodies of the fused operators: what they replaced.
#include "core/runtime/rewrite/fuse.h"

namespace onward {
namespace {

Expr Activated(GraphBuilder& b, const Node& call, const Expr& y) {
  const std::string activation = call.String("activation", "");
  if (activation == "Relu") return b.Op("Relu", {y});
  if (activation != "Clip") return y;
  return b.Op("Clip", {y, b.Scalar(call.Float("activation_low", 0), y),
                       b.Scalar(call.Float("activation_high", 0), y)});
}

Attributes Without(const Node& call, std::initializer_list<const char*> names) {
  Attributes attributes = call.attributes;
  for (const char* name : names) attributes.erase(name);
  return attributes;
}

FunctionDef::Body BodyOf(std::string op) {
  return [op = std::move(op)](GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
    const Attributes attributes =
        Without(call, {"activation", "activation_low", "activation_high"});
    const auto given = [&](size_t i) { return i < in.size() && in[i].defined(); };
    std::vector<Expr> operands = {in[0], in[1]};
    if (given(2) && op != "MatMul") operands.push_back(in[2]);
    Expr y = b.Op(op, operands, attributes);
    if (given(2) && op == "MatMul") y = y + in[2];
    if (given(3)) y = y + in[3];
    return std::vector<Expr>{Activated(b, call, y)};
  };
}

// A number per channel against x.
Expr AlongChannels(const Expr& c, const Expr& x) {
  std::vector<int64_t> shape(x.rank(), 1);
  if (x.rank() > 1) shape[1] = -1;
  return x.rank() > 1 ? Reshape(c, shape) : c;
}

std::vector<Expr> FusedBatchNormalization(GraphBuilder& b, const Node& call,
                                          const std::vector<Expr>& in) {
  const Expr& x = in[0];
  const Attributes attributes = Without(call, {"activation", "activation_low", "activation_high"});
  const int outputs = call.Int("training_mode", 0) != 0 ? 3 : 1;
  std::vector<Expr> results =
      b.Ops("BatchNormalization", {x, in[1], in[2], in[3], in[4]}, outputs, attributes);
  const Expr y = in.size() > 5 && in[5].defined() ? results[0] + in[5] : results[0];
  results[0] = Activated(b, call, y);
  if (!call.HasOutput(3)) return results;
  std::vector<int64_t> axes = {0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  const Expr mean = ReduceMean(x, axes), centred = x - mean;
  const Expr variance = ReduceMean(centred * centred, axes);
  const Expr factor = Reshape(CastLike(in[1], x), {1, -1}) /
                      Sqrt(Reshape(variance, {1, -1}) + call.Float("epsilon", 1e-5f));
  results.push_back(
      Concat({Reshape(mean, {1, -1}), factor, Reshape(CastLike(in[2], x), {1, -1})}, 0));
  return results;
}

std::vector<Expr> FusedBatchNormalizationGrad(GraphBuilder& b, const Node& call,
                                              const std::vector<Expr>& in) {
  const Expr &dy = in[0], &x = in[1], &table = in[3];
  const auto row = [&](int64_t i) { return AlongChannels(Gather(table, b.Ints({i})), x); };
  const Expr n = (x - row(0)) * row(1) + row(2), zero = b.Scalar(0, x);
  const std::string activation = call.String("activation", "");
  Expr dn = dy;
  if (activation == "Relu") dn = Where(Greater(n, zero), dy, zero);
  if (activation == "Clip") dn = Where(Equal(n, Activated(b, call, n)), dy, zero);
  return b.Ops("BatchNormalizationGrad", {dn, x, in[2]}, 3,
               {{"epsilon", call.Float("epsilon", 1e-5f)}}, kOnwardDomain);
}

}  // namespace

void RegisterFusedFunctions(FunctionLibrary& library) {
  for (const char* op : {"Conv", "MatMul", "Gemm"}) {
    library.Add(
        std::string("Fused") + op,
        {.body = BodyOf(op), .output_like = {}, .shape_only = {}, .attributes = {}, .required = 2});
  }
  library.Add("FusedBatchNormalization", {.body = FusedBatchNormalization,
                                          .output_like = {},
                                          .shape_only = {},
                                          .attributes = {},
                                          .required = 5});
  library.Add("FusedBatchNormalizationGrad", {.body = FusedBatchNormalizationGrad,
                                              .output_like = {1, 2, 2},
                                              .shape_only = {},
                                              .attributes = {},
                                              .required = 4,
                                              .operands = "TTFT"});
}

}  // namespace onward

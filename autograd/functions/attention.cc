// SPDX-License-Identifier: Apache-2.0
// Bodies of scaled dot-product attention and of its gradient.
#include <initializer_list>
#include <utility>
#include <vector>

#include "autograd/functions.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

Expr Scaled(const Expr& e, const Node& node) {
  const float scale = node.Float("scale", 1);
  return scale == 1 ? e : e * static_cast<double>(scale);
}

bool AreMatrices(GraphBuilder& b, const Node& node, std::initializer_list<Expr> values) {
  for (const Expr& e : values) {
    if (e.rank() < 0 || e.rank() >= 2) continue;
    FailAt(b, node, "needs stacks of matrices");
    return false;
  }
  return true;
}

// softmax(scale * q k^T + mask)
Expr Probabilities(GraphBuilder& b, const Node& node, const Expr& q, const Expr& k,
                   const Expr& mask) {
  Expr scores = Scaled(MatMul(q, TurnLastTwo(k)), node);
  if (mask.defined()) scores = scores + mask;
  return b.Op("Softmax", {scores}, {{"axis", -1}});
}

// Y = softmax(scale * Q K^T + mask) V
std::vector<Expr> Attention(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  if (!AreMatrices(b, call, {in[0], in[1], in[2]})) return {};
  return {MatMul(Probabilities(b, call, in[0], in[1], Argument(in, 3)), in[2])};
}

// With P the probabilities, dP = dY V^T and dS = P * (dP - sum over keys of P * dP):
// dQ = scale * dS K, dK = scale * dS^T Q, dV = P^T dY, and dS itself
std::vector<Expr> AttentionGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const Expr &dy = in[0], &q = in[1], &k = in[2], &v = in[3];
  if (!AreMatrices(b, call, {dy, q, k, v})) return {};
  const Expr p = Probabilities(b, call, q, k, Argument(in, 4));
  Expr pdp = p * MatMul(dy, TurnLastTwo(v));
  Expr ds = pdp - p * ReduceSum(pdp, {-1});
  if (!AreMatrices(b, call, {p, ds})) return {};
  Expr dq = Scaled(MatMul(ds, k), call), dk = Scaled(MatMul(TurnLastTwo(ds), q), call);
  return {FitTo(dq, q), FitTo(dk, k), FitTo(MatMul(TurnLastTwo(p), dy), v), ds};
}

}  // namespace

void RegisterAttentionFunctions(FunctionLibrary& library) {
  library.Add("ScaledDotProductAttention", {.body = Attention,
                                            .output_like = {},
                                            .shape_only = {},
                                            .attributes = {"scale"},
                                            .required = 3,
                                            .operands = "T"});
  library.Add("ScaledDotProductAttentionGrad", {.body = AttentionGrad,
                                                .output_like = {1, 2, 3},
                                                .shape_only = {},
                                                .attributes = {"scale"},
                                                .required = 4,
                                                .operands = "T"});
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Gradients of the losses that the standard defines.
#include "autograd/functions.h"
#include "autograd/rule.h"

namespace onward {
namespace {

// L = sum over positions of w[label] * (-logp[label]) * scale / dL;
// dw[c] = -sum of (logp[c] + offset) * scale over the positions with label c,
// offset = L for the mean (which divides by the sum of the weights), else 0
std::optional<Expr> WeightGrad(const Vjp& v, const Expr& scores) {
  const auto [dl, logp, labels] = LossOperandsOf(v.node(), v.dy(), scores, v.x(1));
  auto t = LabelTermsOf(v.b(), v.node(), dl, logp, labels, v.x(2));
  if (!t) return std::nullopt;
  const bool mean = v.node().String("reduction", "mean") == "mean";
  Expr distance = mean ? logp + CastLike(v.y(), logp) : logp;
  Expr terms = Where(t->is_label, -(distance * t->scale), v.b().Scalar(0, logp));
  return ReduceSum(terms, AxesBut(logp.rank(), 1), false);
}

// L = nll(logsoftmax(scores), labels, weights), logp = logsoftmax(scores) as output 1;
// dscores = what comes through L, by one function, + dlogp - softmax * sum(dlogp)
Grads SoftmaxCrossEntropyLossVjp(const Vjp& v) {
  const Expr weights = v.has_x(2) ? v.x(2) : Expr();
  const bool by_weights = v.has_x(2) && v.needs(2) && v.has_dy(0);
  Expr dscores;
  if (v.has_dy(0)) {
    dscores = v.b().Op("SoftmaxCrossEntropyLossGrad", {v.dy(), v.x(0), v.x(1), weights},
                       Pick(v.node(), {"ignore_index", "reduction"}), kOnwardDomain);
  }
  Expr logp;
  if (v.has_dy(1) || by_weights) {
    logp = v.node().HasOutput(1) ? v.y(1) : v.b().Op("LogSoftmax", {v.x(0)}, {{"axis", 1}});
  }
  if (v.has_dy(1)) {
    Expr through = v.b().Op("LogSoftmaxGrad", {v.dy(1), logp}, {{"axis", 1}}, kOnwardDomain);
    dscores = dscores.defined() ? dscores + through : through;
  }
  Grads grads(v.inputs());
  if (dscores.defined()) grads[0] = dscores;
  if (by_weights) grads[2] = WeightGrad(v, logp);
  return grads;
}

// L = -w[label] * input[label];  dinput by one function
Grads NegativeLogLikelihoodLossVjp(const Vjp& v) {
  const Expr weights = v.has_x(2) ? v.x(2) : Expr();
  Grads grads(v.inputs());
  grads[0] = v.b().Op("NegativeLogLikelihoodLossGrad", {v.dy(), v.x(0), v.x(1), weights},
                      Pick(v.node(), {"ignore_index", "reduction"}), kOnwardDomain);
  if (v.has_x(2) && v.needs(2)) grads[2] = WeightGrad(v, v.x(0));
  return grads;
}

}  // namespace

void RegisterLossRules(RuleTable& table) {
  table.Add("SoftmaxCrossEntropyLoss", SoftmaxCrossEntropyLossVjp);
  table.Add("NegativeLogLikelihoodLoss", NegativeLogLikelihoodLossVjp);
}

}  // namespace onward

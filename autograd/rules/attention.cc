// SPDX-License-Identifier: Apache-2.0
// The gradient rule of scaled dot-product attention. The standard's Attention is
// differentiated through its body.
#include <utility>
#include <vector>

#include "autograd/functions.h"
#include "autograd/rule.h"

namespace onward {
namespace {

// Y = softmax(scale * Q K^T + mask) V: one call, which gives the gradient of the
// scores as well where that of the mask is wanted
Grads ScaledDotProductAttentionVjp(const Vjp& v) {
  std::vector<Expr> inputs = {v.dy(), v.x(0), v.x(1), v.x(2)};
  if (v.has_x(3)) inputs.push_back(v.x(3));
  const std::vector<Expr> d =
      v.b().Ops("ScaledDotProductAttentionGrad", std::move(inputs), v.needs(3) ? 4 : 3,
                Pick(v.node(), {"scale"}), kOnwardDomain);
  return {d.begin(), d.end()};
}

}  // namespace

void RegisterAttentionRules(RuleTable& table) {
  table.Add("ScaledDotProductAttention", ScaledDotProductAttentionVjp, kOnwardDomain);
}

}  // namespace onward

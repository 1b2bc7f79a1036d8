// SPDX-License-Identifier: Apache-2.0
// The standard's Adam operator:
//
//   Gr = norm_coefficient*X + G;  V' = alpha*V + (1-alpha)*Gr;  H' = beta*H + (1-beta)*Gr^2
//   X' = X - R*sqrt(1 - beta^T)/(1 - alpha^T) * V' / (sqrt(H') + epsilon)
//
// Its T = 0 switches the bias correction off, so T is 1 in the first step. epsilon is
// outside the correction, where PyTorch has it inside: theirs is epsilon/sqrt(1 - beta^T).
#include "optimizers/definition.h"

namespace onward {
namespace {

std::vector<StateTensor> AdamStates(const OptimizerSpec&) {
  return {{"__first_moment", 0}, {"__second_moment", 0}};
}

absl::Status AdamUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                        const Expr& step, absl::Span<const Variable> variables, Updated* updated) {
  return StandardUpdate(b, "Adam",
                        {{"alpha", OptionOf(spec, "beta1")},
                         {"beta", OptionOf(spec, "beta2")},
                         {"epsilon", OptionOf(spec, "eps")},
                         {"norm_coefficient", OptionOf(spec, "weight_decay")},
                         {"norm_coefficient_post", 0.0}},
                        lr, step, variables, updated);
}

}  // namespace

OptimizerDef AdamOptimizer() {
  return {.name = "adam",
          .options = {NumberOption::AtLeast("lr", 1e-3, 0), NumberOption::Fraction("beta1", 0.9),
                      NumberOption::Fraction("beta2", 0.999), NumberOption::Positive("eps", 1e-8),
                      NumberOption::AtLeast("weight_decay", 0, 0)},
          .first_step = 1,
          .states = AdamStates,
          .update = AdamUpdate};
}

}  // namespace onward

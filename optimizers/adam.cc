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

std::vector<StateTensor> AdamStates(const OptimizerSpec& spec, const Shape&) {
  return OptionOf(spec, "amsgrad") != 0 ? AmsgradStates() : MomentStates();
}

absl::Status AdamUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                        const Expr& step, absl::Span<const Variable> variables, Updated* updated) {
  if (OptionOf(spec, "amsgrad") != 0) {
    return AmsgradUpdate(b, spec, /*decoupled=*/false, lr, step, variables, updated);
  }
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
          .summary =
              "rates by running means of gradients and squares (the standard's Adam; with amsgrad "
              "PyTorch's)",
          .options = {NumberOption::AtLeast("lr", 1e-3, 0), NumberOption::Fraction("beta1", 0.9),
                      NumberOption::Fraction("beta2", 0.999), NumberOption::Positive("eps", 1e-8),
                      NumberOption::AtLeast("weight_decay", 0, 0), NumberOption::Switch("amsgrad")},
          .lists = {BetasOption()},
          .first_step = 1,
          .states = AdamStates,
          .update = AdamUpdate};
}

}  // namespace onward

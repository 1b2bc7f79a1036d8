// SPDX-License-Identifier: Apache-2.0
// The standard's Adagrad operator:
//
//   r = R / (1 + T*decay_factor);  Gr = norm_coefficient*X + G;  H' = H + Gr^2
//   X' = X - r*Gr / (sqrt(H') + epsilon)
//
// With T = 0 in the first step this is PyTorch's Adagrad.
#include "optimizers/definition.h"

namespace onward {
namespace {

std::vector<StateTensor> AdagradStates(const OptimizerSpec& spec, const Shape&) {
  return {{"__squares", OptionOf(spec, "initial_accumulator_value")}};
}

absl::Status AdagradUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                           const Expr& step, absl::Span<const Variable> variables,
                           Updated* updated) {
  return StandardUpdate(b, "Adagrad",
                        {{"decay_factor", OptionOf(spec, "lr_decay")},
                         {"epsilon", OptionOf(spec, "eps")},
                         {"norm_coefficient", OptionOf(spec, "weight_decay")}},
                        lr, step, variables, updated);
}

}  // namespace

OptimizerDef AdagradOptimizer() {
  return {.name = "adagrad",
          .summary = "rates by the sum of squares (the standard's Adagrad)",
          .options = {NumberOption::AtLeast("lr", 1e-2, 0), NumberOption::AtLeast("lr_decay", 0, 0),
                      NumberOption::Positive("eps", 1e-10),
                      NumberOption::AtLeast("initial_accumulator_value", 0, 0),
                      NumberOption::AtLeast("weight_decay", 0, 0)},
          .first_step = 0,
          .states = AdagradStates,
          .update = AdagradUpdate};
}

}  // namespace onward

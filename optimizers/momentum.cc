// SPDX-License-Identifier: Apache-2.0
// The standard's Momentum operator, in both modes:
//
//   Gr = norm_coefficient*X + G;  b = T > 0 ? beta : 1;  V' = alpha*V + b*Gr
//   standard: X' = X - R*V'       nesterov: X' = X - R*(Gr + alpha*V')
//
// With T = 0 in the first step this is PyTorch's SGD, beta being 1 - dampening.
#include "optimizers/definition.h"

namespace onward {
namespace {

absl::Status StandardMomentum(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                              const Expr& step, absl::Span<const Variable> variables,
                              Updated* updated) {
  return MomentumUpdate(b, spec, "standard", lr, step, variables, updated);
}

absl::Status NesterovMomentum(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                              const Expr& step, absl::Span<const Variable> variables,
                              Updated* updated) {
  return MomentumUpdate(b, spec, "nesterov", lr, step, variables, updated);
}

std::vector<NumberOption> NesterovOptions() {
  return {NumberOption::AtLeast("lr", 1e-2, 0), NumberOption::Fraction("momentum", 0.9),
          NumberOption::AtLeast("weight_decay", 0, 0)};
}

std::vector<NumberOption> MomentumOptions() {
  std::vector<NumberOption> options = NesterovOptions();
  options.push_back({.name = "dampening", .low = 0, .high = 1});
  return options;
}

}  // namespace

std::vector<StateTensor> MomentumStates(const OptimizerSpec&, const Shape&) {
  return {{"__momentum"}};
}

absl::Status MomentumUpdate(GraphBuilder& b, const OptimizerSpec& spec, const char* mode,
                            const Expr& lr, const Expr& step, absl::Span<const Variable> variables,
                            Updated* updated) {
  return StandardUpdate(b, "Momentum",
                        {{"alpha", OptionOf(spec, "momentum")},
                         {"beta", 1 - OptionOf(spec, "dampening")},
                         {"mode", mode},
                         {"norm_coefficient", OptionOf(spec, "weight_decay")}},
                        lr, step, variables, updated);
}

OptimizerDef MomentumOptimizer() {
  return {.name = "momentum",
          .summary = "gradient descent with momentum (the standard's Momentum)",
          .options = MomentumOptions(),
          .first_step = 0,
          .states = MomentumStates,
          .update = StandardMomentum};
}

OptimizerDef NesterovOptimizer() {
  return {.name = "nesterov",
          .summary = "the same in Nesterov's form",
          .options = NesterovOptions(),
          .first_step = 0,
          .states = MomentumStates,
          .update = NesterovMomentum};
}

}  // namespace onward

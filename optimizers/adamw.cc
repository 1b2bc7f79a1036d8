// SPDX-License-Identifier: Apache-2.0
// Adam with decoupled weight decay, through AdamWStep. The standard's Adam cannot say it:
// its norm_coefficient_post decays after the step and without the learning rate.
#include "optimizers/definition.h"

namespace onward {
namespace {

std::vector<StateTensor> AdamWStates(const OptimizerSpec& spec, const Shape&) {
  return OptionOf(spec, "amsgrad") != 0 ? AmsgradStates() : MomentStates();
}

absl::Status CheckAdamW(const OptimizerSpec& spec) {
  if (OptionOf(spec, "amsgrad") == 0 || OptionOf(spec, "epsilon") == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("optimizer 'adamw': amsgrad takes eps, not epsilon");
}

absl::Status AdamWUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                         const Expr& step, absl::Span<const Variable> variables, Updated* updated) {
  if (OptionOf(spec, "amsgrad") != 0) {
    return AmsgradUpdate(b, spec, /*decoupled=*/true, lr, step, variables, updated);
  }
  const Attributes attributes = {
      {"alpha", OptionOf(spec, "beta1")},
      {"beta", OptionOf(spec, "beta2")},
      {"epsilon", OptionOf(spec, "epsilon")},
      {"eps", spec.options.contains("epsilon") && !spec.options.contains("eps")
                  ? 0.0
                  : OptionOf(spec, "eps")},
      {"weight_decay", OptionOf(spec, "weight_decay")}};
  for (const Variable& v : variables) {
    updated->push_back(b.Ops(
        "AdamWStep", {CastLike(lr, v.value), step, v.value, v.gradient, v.states[0], v.states[1]},
        3, attributes, kOnwardDomain));
  }
  return absl::OkStatus();
}

// X1 = X * (1 - R*weight_decay)
// V' = alpha*V + (1-alpha)*G
// H' = beta*H + (1-beta)*G^2
// c = sqrt(1 - beta^T);  X' = X1 - R*c / (1 - alpha^T) * V' / (sqrt(H') + epsilon + eps*c)
std::vector<Expr> AdamWStepBody(GraphBuilder& b, const Node& call,
                                const std::vector<Expr>& inputs) {
  const auto number = [&](const char* name, float otherwise) {
    return b.AttributeNumber(call, name, otherwise);
  };
  const Expr alpha = number("alpha", 0.9f), beta = number("beta", 0.999f);
  const Expr one = b.Constant(ScalarOf(DType::kDouble, 1));
  const Expr r = Widened(inputs[0]), x = Widened(inputs[2]), g = Widened(inputs[3]);
  const Expr t = Cast(inputs[1], DType::kDouble);
  const Expr v = Widened(inputs[4]) * CastLike(alpha, g) + g * CastLike(one - alpha, g);
  const Expr h = Widened(inputs[5]) * CastLike(beta, g) + g * g * CastLike(one - beta, g);
  const Expr c = Sqrt(BiasCorrection(b, beta, t));
  const Expr rate = CastLike(Cast(r, DType::kDouble) * c / BiasCorrection(b, alpha, t), x);
  const Expr small = CastLike(c * number("eps", 1e-8f) + number("epsilon", 0.0f), x);
  const Expr decayed = x * (1 - r * CastLike(number("weight_decay", 0.01f), r));
  const Expr moved = decayed - rate * v / (Sqrt(h) + small);
  return {CastLike(moved, inputs[2]), CastLike(v, inputs[4]), CastLike(h, inputs[5])};
}

}  // namespace

Expr BiasCorrection(GraphBuilder& b, const Expr& beta, const Expr& t) {
  return b.Constant(ScalarOf(DType::kDouble, 1)) - Pow(beta, t);
}

OptimizerDef AdamWOptimizer() {
  return {
      .name = "adamw",
      .summary = "Adam with decoupled weight decay",
      .options = {NumberOption::AtLeast("lr", 1e-3, 0), NumberOption::Fraction("beta1", 0.9),
                  NumberOption::Fraction("beta2", 0.999), NumberOption::Positive("eps", 1e-8),
                  NumberOption::AtLeast("epsilon", 0, 0),
                  NumberOption::AtLeast("weight_decay", 0.01, 0), NumberOption::Switch("amsgrad")},
      .lists = {BetasOption()},
      .first_step = 1,
      .check = CheckAdamW,
      .states = AdamWStates,
      .update = AdamWUpdate};
}

FunctionDef AdamWStepFunction() {
  FunctionDef def;
  def.body = AdamWStepBody;
  def.required = 6;
  def.operands = "F.FFFF";
  def.output_like = {2, 4, 5};
  def.attributes = {"alpha", "beta", "epsilon", "eps", "weight_decay"};
  def.attributes_by_reference = true;
  return def;
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent: plain through SgdStep, with momentum through the
// standard's Momentum operator.
#include "absl/status/status.h"
#include "optimizers/definition.h"

namespace onward {
namespace {

absl::Status CheckSgd(const OptimizerSpec& spec) {
  const bool momentum = OptionOf(spec, "momentum") != 0;
  if (OptionOf(spec, "nesterov") != 0 && (!momentum || OptionOf(spec, "dampening") != 0)) {
    return absl::InvalidArgumentError(
        "optimizer 'sgd': nesterov needs momentum > 0 and dampening = 0");
  }
  if (!momentum && OptionOf(spec, "dampening") != 0) {
    return absl::InvalidArgumentError("optimizer 'sgd': dampening needs momentum > 0");
  }
  return absl::OkStatus();
}

std::vector<StateTensor> SgdStates(const OptimizerSpec& spec, const Shape& shape) {
  if (OptionOf(spec, "momentum") == 0) return {};
  return MomentumStates(spec, shape);
}

absl::Status SgdUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr, const Expr& step,
                       absl::Span<const Variable> variables, Updated* updated) {
  if (OptionOf(spec, "momentum") != 0) {
    const char* mode = OptionOf(spec, "nesterov") != 0 ? "nesterov" : "standard";
    return MomentumUpdate(b, spec, mode, lr, step, variables, updated);
  }
  for (const Variable& v : variables) {
    updated->push_back({b.Op("SgdStep", {CastLike(lr, v.value), v.value, v.gradient},
                             {{"weight_decay", OptionOf(spec, "weight_decay")}}, kOnwardDomain)});
  }
  return absl::OkStatus();
}

// X' = X - R*(G + weight_decay*X)
std::vector<Expr> SgdStepBody(GraphBuilder& b, const Node& call, const std::vector<Expr>& inputs) {
  const Expr r = Widened(inputs[0]), x = Widened(inputs[1]), g = Widened(inputs[2]);
  const Expr decay = CastLike(b.AttributeNumber(call, "weight_decay", 0), x);
  return {CastLike(x - r * (g + x * decay), inputs[1])};
}

}  // namespace

OptimizerDef SgdOptimizer() {
  return {.name = "sgd",
          .summary = "gradient descent, with momentum if asked",
          .options = {NumberOption::AtLeast("lr", 1e-2, 0),
                      NumberOption::Fraction("momentum", 0),
                      {.name = "dampening", .low = 0, .high = 1},
                      NumberOption::Switch("nesterov"),
                      NumberOption::AtLeast("weight_decay", 0, 0)},
          .first_step = 0,
          .check = CheckSgd,
          .states = SgdStates,
          .update = SgdUpdate};
}

FunctionDef SgdStepFunction() {
  FunctionDef def;
  def.body = SgdStepBody;
  def.required = 3;
  def.operands = "F";
  def.output_like = {1};
  def.attributes = {"weight_decay"};
  def.attributes_by_reference = true;
  def.traits.row_update = SgdRowUpdate();
  return def;
}

}  // namespace onward

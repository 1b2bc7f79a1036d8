// SPDX-License-Identifier: Apache-2.0
// Optimizers that find the length of the step by themselves, or take no more than the sign of
// a direction: adadelta, rprop, lion.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "optimizers/step_function.h"

namespace onward {
namespace {

// Gr = G + weight_decay*X;  S' = rho*S + (1-rho)*Gr^2
// U = sqrt(D + eps)/sqrt(S' + eps)*Gr;  D' = rho*D + (1-rho)*U^2;  X' = X - R*U
std::vector<Expr> Adadelta(const StepBody& in) {
  const Expr g = in.Regularized(), eps = in.Value("eps");
  const Expr squares = in.Average(in.states[0], g * g, "rho");
  const Expr move = Sqrt(in.states[1] + eps) / Sqrt(squares + eps) * g;
  return {in.x - in.r * move, squares, in.Average(in.states[1], move * move, "rho")};
}

// s = G*P (the gradient before);  L' = L * (s > 0 ? eta2 : s < 0 ? eta1 : 1), within
// [step_size1, step_size2];  P' = s < 0 ? 0 : G;  X' = X - sign(P')*L'
// R is where L begins, and nothing else.
std::vector<Expr> Rprop(const StepBody& in) {
  const Expr turn = in.g * in.states[0], zero = in.In(in.Real(0));
  const Expr same = Greater(turn, zero), turned = Less(turn, zero);
  const Expr factor =
      Where(same, in.Value("eta2"), Where(turned, in.Value("eta1"), in.In(in.Real(1))));
  const Expr length =
      Min(Max(in.states[1] * factor, in.Value("step_size1")), in.Value("step_size2"));
  const Expr g = Where(turned, zero, in.g);
  return {in.x - Sign(g) * length, g, length};
}

// X' = X * (1 - R*weight_decay) - R*sign(beta1*M + (1-beta1)*G);  M' = beta2*M + (1-beta2)*G
std::vector<Expr> Lion(const StepBody& in) {
  const Expr direction = in.Average(in.states[0], in.g, "beta1");
  return {in.Decayed("weight_decay") - in.r * Sign(direction),
          in.Average(in.states[0], in.g, "beta2")};
}

std::vector<StateTensor> AdadeltaStates(const OptimizerSpec&, const Shape&) {
  return {{"__squares"}, {"__moves"}};
}

std::vector<StateTensor> RpropStates(const OptimizerSpec& spec, const Shape&) {
  return {{"__last_gradient"}, {"__step_size", OptionOf(spec, "lr")}};
}

std::vector<StateTensor> LionStates(const OptimizerSpec&, const Shape&) { return {{"__momentum"}}; }

absl::Status AdadeltaUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                            const Expr& step, absl::Span<const Variable> variables,
                            Updated* updated) {
  return StepUpdate(b, "AdadeltaStep",
                    {{"rho", OptionOf(spec, "rho")},
                     {"eps", OptionOf(spec, "eps")},
                     {"weight_decay", OptionOf(spec, "weight_decay")}},
                    lr, step, variables, updated);
}

absl::Status RpropUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                         const Expr& step, absl::Span<const Variable> variables, Updated* updated) {
  return StepUpdate(b, "RpropStep",
                    {{"eta1", OptionOf(spec, "eta1")},
                     {"eta2", OptionOf(spec, "eta2")},
                     {"step_size1", OptionOf(spec, "step_size1")},
                     {"step_size2", OptionOf(spec, "step_size2")}},
                    lr, step, variables, updated);
}

absl::Status LionUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                        const Expr& step, absl::Span<const Variable> variables, Updated* updated) {
  return StepUpdate(b, "LionStep",
                    {{"beta1", OptionOf(spec, "beta1")},
                     {"beta2", OptionOf(spec, "beta2")},
                     {"weight_decay", OptionOf(spec, "weight_decay")}},
                    lr, step, variables, updated);
}

absl::Status CheckRprop(const OptimizerSpec& spec) {
  const double low = OptionOf(spec, "step_size1"), high = OptionOf(spec, "step_size2");
  if (low <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer 'rprop': step_size1 is the shortest step and step_size2 the longest; "
                   "got step_size1=",
                   low, ", step_size2=", high));
}

}  // namespace

OptimizerDef AdadeltaOptimizer() {
  return {
      .name = "adadelta",
      .summary = "rates by running means of squares of gradients and of steps",
      .options = {NumberOption::AtLeast("lr", 1, 0), NumberOption::Fraction("rho", 0.9),
                  NumberOption::Positive("eps", 1e-6), NumberOption::AtLeast("weight_decay", 0, 0)},
      .first_step = 0,
      .states = AdadeltaStates,
      .update = AdadeltaUpdate};
}

OptimizerDef RpropOptimizer() {
  return {
      .name = "rprop",
      .summary = "steps of their own length, by the sign of the gradient; lr is where they begin",
      .options = {NumberOption::AtLeast("lr", 1e-2, 0),
                  {.name = "eta1",
                   .otherwise = 0.5,
                   .low = 0,
                   .high = 1,
                   .low_open = true,
                   .high_open = true},
                  {.name = "eta2", .otherwise = 1.2, .low = 1, .low_open = true},
                  NumberOption::AtLeast("step_size1", 1e-6, 0),
                  NumberOption::Positive("step_size2", 50)},
      .lists = {{"etas", {"eta1", "eta2"}}, {"step_sizes", {"step_size1", "step_size2"}}},
      .first_step = 0,
      .check = CheckRprop,
      .states = RpropStates,
      .update = RpropUpdate};
}

OptimizerDef LionOptimizer() {
  return {.name = "lion",
          .summary = "the sign of a momentum",
          .options = {NumberOption::AtLeast("lr", 1e-4, 0), NumberOption::Fraction("beta1", 0.9),
                      NumberOption::Fraction("beta2", 0.99),
                      NumberOption::AtLeast("weight_decay", 0, 0)},
          .lists = {BetasOption()},
          .first_step = 0,
          .states = LionStates,
          .update = LionUpdate};
}

void RegisterRateSteps(FunctionLibrary& library) {
  AddStepFunction("AdadeltaStep", {{"rho", 0.9f}, {"eps", 1e-6f}, {"weight_decay", 0.0f}}, 2,
                  Adadelta, &library);
  AddStepFunction("RpropStep",
                  {{"eta1", 0.5f}, {"eta2", 1.2f}, {"step_size1", 1e-6f}, {"step_size2", 50.0f}}, 2,
                  Rprop, &library);
  AddStepFunction("LionStep", {{"beta1", 0.9f}, {"beta2", 0.99f}, {"weight_decay", 0.0f}}, 1, Lion,
                  &library);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// RMSprop, with PyTorch's options and formulas: divides by a running root mean square of the
// gradient, with centered=1 by its standard deviation.
#include "absl/strings/str_cat.h"
#include "optimizers/step_function.h"

namespace onward {
namespace {

struct Form {
  bool centered, momentum;
};

std::string FunctionName(const Form& form) {
  return absl::StrCat(form.centered ? "Centered" : "", "RmsProp", form.momentum ? "Momentum" : "",
                      "Step");
}

// Gr = G + weight_decay*X;  S' = alpha*S + (1-alpha)*Gr^2;  centered: A' = alpha*A + (1-alpha)*Gr
// U = Gr / (sqrt(S' [- A'^2]) + eps)
// X' = X - R*U;  with momentum: B' = momentum*B + U, X' = X - R*B'
// The states are S, B, A, as far as they are there.
std::vector<Expr> RmsProp(const Form& form, const StepBody& in) {
  const Expr g = in.Regularized();
  const Expr squares = in.Average(in.states[0], g * g, "alpha");
  std::vector<Expr> results = {Expr(), squares};
  Expr variance = squares;
  Expr mean;
  if (form.centered) {
    mean = in.Average(in.states.back(), g, "alpha");
    // Rounding may leave less than nothing of a gradient that does not change.
    variance = Max(squares - mean * mean, ZerosLike(squares));
  }
  Expr move = g / (Sqrt(variance) + in.Value("eps"));
  if (form.momentum) {
    move = in.states[1] * in.Value("momentum") + move;
    results.push_back(move);
  }
  if (form.centered) results.push_back(mean);
  results[0] = in.x - in.r * move;
  return results;
}

Form FormOf(const OptimizerSpec& spec) {
  return {OptionOf(spec, "centered") != 0, OptionOf(spec, "momentum") != 0};
}

std::vector<StateTensor> RmsPropStates(const OptimizerSpec& spec, const Shape&) {
  const Form form = FormOf(spec);
  std::vector<StateTensor> states = {{"__squares"}};
  if (form.momentum) states.push_back({"__momentum"});
  if (form.centered) states.push_back({"__mean"});
  return states;
}

absl::Status RmsPropUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                           const Expr& step, absl::Span<const Variable> variables,
                           Updated* updated) {
  const Form form = FormOf(spec);
  Attributes attributes = {{"alpha", OptionOf(spec, "alpha")},
                           {"eps", OptionOf(spec, "eps")},
                           {"weight_decay", OptionOf(spec, "weight_decay")}};
  if (form.momentum) attributes["momentum"] = OptionOf(spec, "momentum");
  return StepUpdate(b, FunctionName(form), attributes, lr, step, variables, updated);
}

}  // namespace

OptimizerDef RmsPropOptimizer() {
  return {
      .name = "rmsprop",
      .summary = "rates by a running mean of squares",
      .options = {NumberOption::AtLeast("lr", 1e-2, 0), NumberOption::Fraction("alpha", 0.99),
                  NumberOption::Positive("eps", 1e-8), NumberOption::Fraction("momentum", 0),
                  NumberOption::Switch("centered"), NumberOption::AtLeast("weight_decay", 0, 0)},
      .first_step = 0,
      .states = RmsPropStates,
      .update = RmsPropUpdate};
}

void RegisterRmsPropSteps(FunctionLibrary& library) {
  for (const Form form :
       {Form{false, false}, Form{false, true}, Form{true, false}, Form{true, true}}) {
    StepAttributes attributes = {{"alpha", 0.99f}, {"eps", 1e-8f}, {"weight_decay", 0.0f}};
    if (form.momentum) attributes.emplace_back("momentum", 0.9f);
    AddStepFunction(
        FunctionName(form), std::move(attributes), 1 + form.momentum + form.centered,
        [form](const StepBody& in) { return RmsProp(form, in); }, &library);
  }
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Relatives of Adam, with PyTorch's options and formulas. T is 1 in the first step, and
//
//   Gr = G + weight_decay*X,  X1 = X * (1 - R*decoupled_weight_decay)
//   V' = alpha*V + (1-alpha)*Gr,  H' = beta*H + (1-beta)*Gr^2
#include "optimizers/step_function.h"

namespace onward {
namespace {

std::vector<NumberOption> MomentOptions(double lr) {
  return {NumberOption::AtLeast("lr", lr, 0), NumberOption::Fraction("beta1", 0.9),
          NumberOption::Fraction("beta2", 0.999), NumberOption::Positive("eps", 1e-8),
          NumberOption::AtLeast("weight_decay", 0, 0)};
}

Attributes MomentAttributes(const OptimizerSpec& spec, bool decoupled) {
  Attributes attributes = {{"alpha", OptionOf(spec, "beta1")},
                           {"beta", OptionOf(spec, "beta2")},
                           {"eps", OptionOf(spec, "eps")}};
  AddDecay(spec, decoupled, &attributes);
  return attributes;
}

StepAttributes MomentDefaults() {
  return {{"alpha", 0.9f},
          {"beta", 0.999f},
          {"eps", 1e-8f},
          {"weight_decay", 0.0f},
          {"decoupled_weight_decay", 0.0f}};
}

// Adam with the largest H so far in the place of H'.
//   M' = max(M, H');  X' = X1 - R/(1 - alpha^T) * V' / (sqrt(M')/sqrt(1 - beta^T) + eps)
std::vector<Expr> Amsgrad(const StepBody& in) {
  const Expr g = in.Regularized();
  const Expr v = in.Average(in.states[0], g, "alpha");
  const Expr h = in.Average(in.states[1], g * g, "beta");
  const Expr m = Max(in.states[2], h);
  const Expr rate = in.In(in.Rate() / BiasCorrection(in.b, in.Number("alpha"), in.t));
  const Expr correction = in.In(Sqrt(BiasCorrection(in.b, in.Number("beta"), in.t)));
  const Expr moved =
      in.Decayed("decoupled_weight_decay") - rate * v / (Sqrt(m) / correction + in.Value("eps"));
  return {moved, v, h, m};
}

// U' = max(beta*U, |Gr| + eps);  X' = X - R/(1 - alpha^T) * V'/U'
std::vector<Expr> Adamax(const StepBody& in) {
  const Expr g = in.Regularized();
  const Expr v = in.Average(in.states[0], g, "alpha");
  const Expr u = Max(in.states[1] * in.Value("beta"), Abs(g) + in.Value("eps"));
  const Expr rate = in.In(in.Rate() / BiasCorrection(in.b, in.Number("alpha"), in.t));
  return {in.x - rate * v / u, v, u};
}

// m(t) = alpha*(1 - 0.96^(t*momentum_decay)/2);  P' = P*m(T);  D = sqrt(H'/(1 - beta^T)) + eps
// X' = X1 - R*(1 - m(T))/(1 - P')*Gr/D - R*m(T+1)/(1 - P'*m(T+1))*V'/D
std::vector<Expr> Nadam(const StepBody& in) {
  const Expr g = in.Regularized();
  const Expr v = in.Average(in.states[0], g, "alpha");
  const Expr h = in.Average(in.states[1], g * g, "beta");
  const auto momentum = [&](const Expr& t) {
    const Expr fading = Pow(in.Real(0.96), t * in.Number("momentum_decay"));
    return in.Number("alpha") * (in.Real(1) - in.Real(0.5) * fading);
  };
  const Expr now = momentum(in.t), next = momentum(in.t + in.Real(1));
  const Expr product = Cast(in.states[2], DType::kDouble) * now;
  const Expr d = Sqrt(h / in.In(BiasCorrection(in.b, in.Number("beta"), in.t))) + in.Value("eps");
  const Expr by_gradient = in.In(in.Rate() * (in.Real(1) - now) / (in.Real(1) - product));
  const Expr by_moment = in.In(in.Rate() * next / (in.Real(1) - product * next));
  return {in.Decayed("decoupled_weight_decay") - by_gradient * g / d - by_moment * v / d, v, h,
          in.In(product)};
}

// r = 2/(1-beta) - 1,  p = r - 2*T*beta^T/(1 - beta^T)
// X' = X1 - R/(1 - alpha^T) * V' * (p > 5 ? c*sqrt(1 - beta^T)/(sqrt(H') + eps) : 1),
// c = sqrt((p-4)*(p-2)*r / ((r-4)*(r-2)*p))
std::vector<Expr> Radam(const StepBody& in) {
  const Expr g = in.Regularized();
  const Expr v = in.Average(in.states[0], g, "alpha");
  const Expr h = in.Average(in.states[1], g * g, "beta");
  const Expr beta = in.Number("beta"), one = in.Real(1), two = in.Real(2), four = in.Real(4);
  const Expr bias = BiasCorrection(in.b, beta, in.t);
  const Expr longest = two / (one - beta) - one;
  const Expr length = longest - two * in.t * Pow(beta, in.t) / bias;
  // What is not chosen below stays a number, too.
  const Expr p = Max(length, in.Real(5));
  const Expr r = Max(longest, in.Real(5));
  const Expr c = Sqrt((p - four) * (p - two) * r / ((r - four) * (r - two) * p));
  const Expr adapted = in.In(c * Sqrt(bias)) / (Sqrt(h) + in.Value("eps"));
  const Expr scale = Where(Greater(length, in.Real(5)), adapted, in.In(one));
  const Expr rate = in.In(in.Rate() / BiasCorrection(in.b, in.Number("alpha"), in.t));
  return {in.Decayed("decoupled_weight_decay") - rate * v * scale, v, h};
}

absl::Status AmsgradByName(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                           const Expr& step, absl::Span<const Variable> variables,
                           Updated* updated) {
  return AmsgradUpdate(b, spec, /*decoupled=*/false, lr, step, variables, updated);
}

absl::Status AdamaxUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                          const Expr& step, absl::Span<const Variable> variables,
                          Updated* updated) {
  Attributes attributes = MomentAttributes(spec, false);
  attributes.erase("decoupled_weight_decay");
  return StepUpdate(b, "AdamaxStep", attributes, lr, step, variables, updated);
}

absl::Status NadamUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                         const Expr& step, absl::Span<const Variable> variables, Updated* updated) {
  Attributes attributes = MomentAttributes(spec, OptionOf(spec, "decoupled_weight_decay") != 0);
  attributes["momentum_decay"] = OptionOf(spec, "momentum_decay");
  return StepUpdate(b, "NadamStep", attributes, lr, step, variables, updated);
}

absl::Status RadamUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                         const Expr& step, absl::Span<const Variable> variables, Updated* updated) {
  const bool decoupled = OptionOf(spec, "decoupled_weight_decay") != 0;
  return StepUpdate(b, "RadamStep", MomentAttributes(spec, decoupled), lr, step, variables,
                    updated);
}

std::vector<StateTensor> AmsgradStatesOf(const OptimizerSpec&, const Shape&) {
  return AmsgradStates();
}

std::vector<StateTensor> TwoMoments(const OptimizerSpec&, const Shape&) { return MomentStates(); }

std::vector<StateTensor> AdamaxStates(const OptimizerSpec&, const Shape&) {
  return {{"__first_moment"}, {"__largest"}};
}

std::vector<StateTensor> NadamStates(const OptimizerSpec&, const Shape&) {
  return {{"__first_moment"},
          {"__second_moment"},
          {.suffix = "__momentum_product", .initial = 1, .shape = Shape{}}};
}

}  // namespace

std::vector<StateTensor> MomentStates() { return {{"__first_moment"}, {"__second_moment"}}; }

std::vector<StateTensor> AmsgradStates() {
  return {{"__first_moment"}, {"__second_moment"}, {"__largest_second_moment"}};
}

absl::Status AmsgradUpdate(GraphBuilder& b, const OptimizerSpec& spec, bool decoupled,
                           const Expr& lr, const Expr& step, absl::Span<const Variable> variables,
                           Updated* updated) {
  return StepUpdate(b, "AmsgradStep", MomentAttributes(spec, decoupled), lr, step, variables,
                    updated);
}

OptimizerDef AmsgradOptimizer() {
  return {.name = "amsgrad",
          .summary = "Adam with the largest mean of squares so far",
          .options = MomentOptions(1e-3),
          .lists = {BetasOption()},
          .first_step = 1,
          .states = AmsgradStatesOf,
          .update = AmsgradByName};
}

OptimizerDef AdamaxOptimizer() {
  return {.name = "adamax",
          .summary = "Adam with the largest gradient in the place of the squares",
          .options = MomentOptions(2e-3),
          .lists = {BetasOption()},
          .first_step = 1,
          .states = AdamaxStates,
          .update = AdamaxUpdate};
}

OptimizerDef NadamOptimizer() {
  std::vector<NumberOption> options = MomentOptions(2e-3);
  options.push_back(NumberOption::AtLeast("momentum_decay", 4e-3, 0));
  options.push_back(NumberOption::Switch("decoupled_weight_decay"));
  return {.name = "nadam",
          .summary = "Adam with Nesterov's momentum",
          .options = std::move(options),
          .lists = {BetasOption()},
          .first_step = 1,
          .states = NadamStates,
          .update = NadamUpdate};
}

OptimizerDef RadamOptimizer() {
  std::vector<NumberOption> options = MomentOptions(1e-3);
  options.push_back(NumberOption::Switch("decoupled_weight_decay"));
  return {.name = "radam",
          .summary = "Adam that waits until its squares can be trusted",
          .options = std::move(options),
          .lists = {BetasOption()},
          .first_step = 1,
          .states = TwoMoments,
          .update = RadamUpdate};
}

void RegisterAdamFamilySteps(FunctionLibrary& library) {
  AddStepFunction("AmsgradStep", MomentDefaults(), 3, Amsgrad, &library);
  StepAttributes adamax = MomentDefaults();
  adamax.pop_back();
  AddStepFunction("AdamaxStep", std::move(adamax), 2, Adamax, &library);
  StepAttributes nadam = MomentDefaults();
  nadam.emplace_back("momentum_decay", 4e-3f);
  AddStepFunction("NadamStep", std::move(nadam), 3, Nadam, &library);
  AddStepFunction("RadamStep", MomentDefaults(), 2, Radam, &library);
}

}  // namespace onward

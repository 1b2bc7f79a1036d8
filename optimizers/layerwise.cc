// SPDX-License-Identifier: Apache-2.0
// Optimizers that measure a whole tensor: lamb and lars make the step a part of the norm of
// the weights, adafactor keeps the squares of a matrix by row and by column only.
#include <limits>

#include "optimizers/step_function.h"

namespace onward {
namespace {

// a/b where both are positive, else 1.
Expr TrustRatio(const StepBody& in, const Expr& a, const Expr& b) {
  const Expr zero = in.In(in.Real(0)), one = in.In(in.Real(1));
  const Expr both = And(Greater(a, zero), Greater(b, zero));
  return Where(both, a / Where(both, b, one), one);
}

// V' = alpha*V + (1-alpha)*G;  H' = beta*H + (1-beta)*G^2
// U = V'/(1 - alpha^T) / (sqrt(H'/(1 - beta^T)) + eps) + weight_decay*X
// X' = X - R*|X|/|U|*U
std::vector<Expr> Lamb(const StepBody& in) {
  const Expr v = in.Average(in.states[0], in.g, "alpha");
  const Expr h = in.Average(in.states[1], in.g * in.g, "beta");
  const auto correction = [&](const char* rate) {
    return in.In(BiasCorrection(in.b, in.Number(rate), in.t));
  };
  const Expr move = v / correction("alpha") / (Sqrt(h / correction("beta")) + in.Value("eps")) +
                    in.x * in.Value("weight_decay");
  return {in.x - in.r * TrustRatio(in, Norm(in.x), Norm(move)) * move, v, h};
}

// q = trust_coefficient*|X| / (|G| + weight_decay*|X| + eps)
// M' = momentum*M + R*q*(G + weight_decay*X);  X' = X - M'
std::vector<Expr> Lars(const StepBody& in) {
  const Expr weights = Norm(in.x), gradients = Norm(in.g), zero = in.In(in.Real(0));
  const Expr whole = gradients + weights * in.Value("weight_decay") + in.Value("eps");
  const Expr both = And(Greater(weights, zero), Greater(gradients, zero));
  const Expr local =
      Where(both, weights * in.Value("trust_coefficient") / whole, in.In(in.Real(1)));
  const Expr m = in.states[0] * in.Value("momentum") + in.r * local * in.Regularized();
  return {in.x - m, m};
}

Expr RootMeanSquare(const Expr& x) {
  return Sqrt(x.builder().Op("ReduceMean", {x * x}, {{"keepdims", 0}}));
}

// With k = T^beta2_decay, A' = A + k*(G^2 - A) and U = G / max(sqrt(A'), eps1):
// X' = X * (1 - R*weight_decay) - max(eps2, rms(X))*min(R, 1/sqrt(T)) * U/max(1, rms(U)/d)
// Of a matrix there are only the means of A over rows and over columns, and A' = row*column
// / mean(row).
std::vector<Expr> Adafactor(bool factored, const StepBody& in) {
  const Expr k = in.In(Pow(in.t, in.Number("beta2_decay"))), eps1 = in.Value("eps1");
  const Expr squares = in.g * in.g;
  const auto moved = [&](const Expr& old, const Expr& now) { return old + (now - old) * k; };
  std::vector<Expr> results = {Expr()};
  Expr estimate;
  if (factored) {
    const Expr row = moved(in.states[0], ReduceMean(squares, {-1}));
    const Expr column = moved(in.states[1], ReduceMean(squares, {-2}));
    estimate = row * column / Max(ReduceMean(row, {-2}), eps1);
    results.insert(results.end(), {row, column});
  } else {
    estimate = moved(in.states[0], squares);
    results.push_back(estimate);
  }
  const Expr move = in.g / Sqrt(Max(estimate, eps1 * eps1));
  const Expr bound = Max(RootMeanSquare(move) / in.Value("d"), in.In(in.Real(1)));
  const Expr rate = in.In(Min(in.Rate(), in.Real(1) / Sqrt(in.t)));
  const Expr length = Max(RootMeanSquare(in.x), in.Value("eps2")) * rate / bound;
  results[0] = in.Decayed("weight_decay") - length * move;
  return results;
}

std::vector<StateTensor> LambStates(const OptimizerSpec&, const Shape&) { return MomentStates(); }

std::vector<StateTensor> LarsStates(const OptimizerSpec&, const Shape&) { return {{"__momentum"}}; }

std::vector<StateTensor> AdafactorStates(const OptimizerSpec&, const Shape& shape) {
  if (shape.rank() < 2) return {{"__squares"}};
  std::vector<int64_t> row(shape.begin(), shape.end()), column = row;
  row[shape.rank() - 1] = 1;
  column[shape.rank() - 2] = 1;
  return {{.suffix = "__row_squares", .shape = Shape(row)},
          {.suffix = "__column_squares", .shape = Shape(column)}};
}

absl::Status LambUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                        const Expr& step, absl::Span<const Variable> variables, Updated* updated) {
  return StepUpdate(b, "LambStep",
                    {{"alpha", OptionOf(spec, "beta1")},
                     {"beta", OptionOf(spec, "beta2")},
                     {"eps", OptionOf(spec, "eps")},
                     {"weight_decay", OptionOf(spec, "weight_decay")}},
                    lr, step, variables, updated);
}

absl::Status LarsUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                        const Expr& step, absl::Span<const Variable> variables, Updated* updated) {
  return StepUpdate(b, "LarsStep",
                    {{"momentum", OptionOf(spec, "momentum")},
                     {"trust_coefficient", OptionOf(spec, "trust_coefficient")},
                     {"eps", OptionOf(spec, "eps")},
                     {"weight_decay", OptionOf(spec, "weight_decay")}},
                    lr, step, variables, updated);
}

absl::Status AdafactorUpdate(GraphBuilder& b, const OptimizerSpec& spec, const Expr& lr,
                             const Expr& step, absl::Span<const Variable> variables,
                             Updated* updated) {
  for (const Variable& v : variables) {
    const bool wide = v.value.dtype() == DType::kDouble;
    const double smallest =
        wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
    const double eps1 = OptionOf(spec, "eps1");
    const Attributes attributes = {{"beta2_decay", OptionOf(spec, "beta2_decay")},
                                   {"eps1", eps1 == 0 ? smallest : eps1},
                                   {"eps2", OptionOf(spec, "eps2")},
                                   {"d", OptionOf(spec, "d")},
                                   {"weight_decay", OptionOf(spec, "weight_decay")}};
    const char* function = v.states.size() == 2 ? "FactoredAdafactorStep" : "AdafactorStep";
    const absl::Status status =
        StepUpdate(b, function, attributes, lr, step, absl::MakeConstSpan(&v, 1), updated);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

OptimizerDef LambOptimizer() {
  return {.name = "lamb",
          .summary = "Adam's direction, as long as a part of the weights' norm",
          .options = {NumberOption::AtLeast("lr", 1e-3, 0), NumberOption::Fraction("beta1", 0.9),
                      NumberOption::Fraction("beta2", 0.999), NumberOption::Positive("eps", 1e-6),
                      NumberOption::AtLeast("weight_decay", 0.01, 0)},
          .lists = {BetasOption()},
          .first_step = 1,
          .states = LambStates,
          .update = LambUpdate};
}

OptimizerDef LarsOptimizer() {
  return {.name = "lars",
          .summary = "momentum, the rate of each tensor by the norms of weights and gradients",
          .options = {NumberOption::AtLeast("lr", 0.1, 0), NumberOption::Fraction("momentum", 0.9),
                      NumberOption::Positive("trust_coefficient", 1e-3),
                      NumberOption::AtLeast("eps", 1e-8, 0),
                      NumberOption::AtLeast("weight_decay", 0, 0)},
          .first_step = 0,
          .states = LarsStates,
          .update = LarsUpdate};
}

OptimizerDef AdafactorOptimizer() {
  return {
      .name = "adafactor",
      .summary = "squares of a matrix by row and column only; eps1=0 is the smallest of the type",
      .options = {NumberOption::AtLeast("lr", 1e-2, 0),
                  {.name = "beta2_decay", .otherwise = -0.8, .high = 0},
                  NumberOption::AtLeast("eps1", 0, 0),
                  NumberOption::AtLeast("eps2", 1e-3, 0),
                  NumberOption::AtLeast("d", 1, 1),
                  NumberOption::AtLeast("weight_decay", 0, 0)},
      .lists = {{"eps", {"eps1", "eps2"}}},
      .first_step = 1,
      .states = AdafactorStates,
      .update = AdafactorUpdate};
}

void RegisterLayerwiseSteps(FunctionLibrary& library) {
  AddStepFunction("LambStep",
                  {{"alpha", 0.9f}, {"beta", 0.999f}, {"eps", 1e-6f}, {"weight_decay", 0.01f}}, 2,
                  Lamb, &library);
  AddStepFunction(
      "LarsStep",
      {{"momentum", 0.9f}, {"trust_coefficient", 1e-3f}, {"eps", 1e-8f}, {"weight_decay", 0.0f}}, 1,
      Lars, &library);
  const StepAttributes adafactor = {{"beta2_decay", -0.8f},
                                    {"eps1", std::numeric_limits<float>::epsilon()},
                                    {"eps2", 1e-3f},
                                    {"d", 1.0f},
                                    {"weight_decay", 0.0f}};
  AddStepFunction(
      "AdafactorStep", adafactor, 1, [](const StepBody& in) { return Adafactor(false, in); },
      &library);
  AddStepFunction(
      "FactoredAdafactorStep", adafactor, 2, [](const StepBody& in) { return Adafactor(true, in); },
      &library);
}

}  // namespace onward

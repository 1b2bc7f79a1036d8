// SPDX-License-Identifier: Apache-2.0
// The optimizers of ai.onnx.preview.training in plain operators, for runtimes
// that do not know them. Inputs are R, T, then groups of n tensors (X, G and the
// states); outputs are the groups of X and of the states.
#include <functional>

#include "optimizers/definition.h"

namespace onward {
namespace {

// One tensor's share of the inputs, all of one type wide enough to compute in.
struct Share {
  GraphBuilder& b;
  const Node& call;
  Expr r, t;  // scalars, t a double
  Expr x, g;
  std::vector<Expr> states;

  double Attribute(const char* name, float otherwise) const { return call.Float(name, otherwise); }
  // a where T > 0, else the other.
  Expr AfterFirst(const Expr& a, const Expr& other) const {
    return Where(Less(b.Constant(ScalarOf(DType::kDouble, 0)), t), a, other);
  }
};

// New X, then new states.
using Rule = std::function<std::vector<Expr>(const Share&)>;

Expr AsScalar(const Expr& e) { return e.rank() == 1 ? Squeeze(e, {0}) : e; }

FunctionDef Optimizer(int states, Rule rule, std::vector<std::string> attributes) {
  FunctionDef def;
  def.required = 2;
  def.attributes = std::move(attributes);
  def.body = [states, rule = std::move(rule)](GraphBuilder& b, const Node& call,
                                              const std::vector<Expr>& inputs) {
    const size_t groups = 2 + states, n = (inputs.size() - 2) / groups;
    std::vector<Expr> outputs(n * (1 + states));
    for (size_t i = 0; i < n; ++i) {
      const auto input = [&](size_t group) { return inputs[2 + group * n + i]; };
      const Expr x = Widened(input(0));
      Share share = {b,
                     call,
                     CastLike(AsScalar(inputs[0]), x),
                     Cast(AsScalar(inputs[1]), DType::kDouble),
                     x,
                     CastLike(input(1), x),
                     {}};
      // norm_coefficient*X + G
      const double norm = share.Attribute("norm_coefficient", 0);
      if (norm != 0) share.g = x * norm + share.g;
      for (int s = 0; s < states; ++s) share.states.push_back(CastLike(input(2 + s), x));
      const std::vector<Expr> results = rule(share);
      outputs[i] = CastLike(results[0], input(0));
      for (int s = 0; s < states; ++s) {
        outputs[(1 + s) * n + i] = CastLike(results[1 + s], input(2 + s));
      }
    }
    return outputs;
  };
  return def;
}

// H' = H + G^2;  X' = X - R/(1 + T*decay_factor) * G / (sqrt(H') + epsilon)
std::vector<Expr> Adagrad(const Share& in) {
  const Expr h = in.states[0] + in.g * in.g;
  const Expr decay = CastLike(in.t * in.Attribute("decay_factor", 0) + 1.0, in.x);
  return {in.x - in.r / decay * in.g / (Sqrt(h) + in.Attribute("epsilon", 1e-6f)), h};
}

// V' = alpha*V + (T > 0 ? beta : 1)*G;  X' = X - R*V', or with nesterov X - R*(G + alpha*V')
std::vector<Expr> Momentum(const Share& in) {
  const double alpha = in.Attribute("alpha", 0);
  const Expr one = in.b.Constant(ScalarOf(DType::kDouble, 1));
  const Expr beta = in.AfterFirst(one * in.Attribute("beta", 0), one);
  const Expr v = in.states[0] * alpha + CastLike(beta, in.x) * in.g;
  const bool nesterov = in.call.String("mode", "") == "nesterov";
  return {in.x - in.r * (nesterov ? in.g + v * alpha : v), v};
}

// V' = alpha*V + (1-alpha)*G;  H' = beta*H + (1-beta)*G^2
// Ra = T > 0 ? R*sqrt(1 - beta^T)/(1 - alpha^T) : R
// X' = (1 - norm_coefficient_post) * (X - Ra*V' / (sqrt(H') + epsilon))
std::vector<Expr> Adam(const Share& in) {
  const double alpha = in.Attribute("alpha", 0.9f), beta = in.Attribute("beta", 0.999f);
  const Expr v = in.states[0] * alpha + in.g * (1 - alpha);
  const Expr h = in.states[1] * beta + in.g * in.g * (1 - beta);
  const Expr one = in.b.Constant(ScalarOf(DType::kDouble, 1));
  const auto corrections = [&](double rate) {
    return BiasCorrection(in.b, in.b.Constant(ScalarOf(DType::kDouble, rate)), in.t);
  };
  const Expr corrected = Sqrt(corrections(beta)) / corrections(alpha);
  const Expr factor = in.AfterFirst(corrected, one);
  const Expr moved =
      in.x - in.r * CastLike(factor, in.x) * v / (Sqrt(h) + in.Attribute("epsilon", 1e-6f));
  return {moved * (1 - in.Attribute("norm_coefficient_post", 0)), v, h};
}

}  // namespace

void RegisterStandardOptimizerBodies(FunctionLibrary& library) {
  FunctionDef adagrad = Optimizer(1, Adagrad, {"epsilon", "decay_factor", "norm_coefficient"});
  adagrad.traits.row_update = AdagradRowUpdate();
  library.Add("Adagrad", std::move(adagrad), kTrainingDomain);
  library.Add("Momentum", Optimizer(1, Momentum, {"alpha", "beta", "norm_coefficient", "mode"}),
              kTrainingDomain);
  library.Add(
      "Adam",
      Optimizer(2, Adam, {"alpha", "beta", "epsilon", "norm_coefficient", "norm_coefficient_post"}),
      kTrainingDomain);
}

}  // namespace onward

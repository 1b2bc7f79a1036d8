// SPDX-License-Identifier: Apache-2.0
// Gradient rules of activation functions. Kinks take PyTorch's subgradient:
// Relu and its kin that of x <= 0, HardSigmoid and Shrink 0.
#include "autograd/functions.h"
#include "autograd/rule.h"

namespace onward {
namespace {

Expr Positive(const Expr& x) { return Greater(x, x.builder().Scalar(0, x)); }

// y = max(x, 0);  dx = dy where y > 0, else 0
Grads ReluVjp(const Vjp& v) { return {v.b().Op("ReluGrad", {v.dy(), v.y()}, {}, kOnwardDomain)}; }

// y = x > 0 ? x : alpha*x;  dx = x > 0 ? dy : alpha*dy
Grads LeakyReluVjp(const Vjp& v) {
  return {Where(Positive(v.x()), v.dy(), v.dy() * v.attr_float("alpha", 0.01f))};
}

// y = x > 0 ? x : slope*x;  dx = x > 0 ? dy : slope*dy
//   dslope = x > 0 ? 0 : x*dy
Grads PReluVjp(const Vjp& v) {
  Grads grads(2);
  Expr positive = Positive(v.x(0));
  if (v.needs(0)) grads[0] = Where(positive, v.dy(), v.x(1) * v.dy());
  if (v.needs(1)) grads[1] = Where(positive, v.b().Scalar(0, v.dy()), v.x(0) * v.dy());
  return grads;
}

// y = x > 0 ? x : alpha*(exp(x) - 1);  dx = x > 0 ? dy : dy * (y + alpha)
Grads EluVjp(const Vjp& v) {
  return {Where(Positive(v.x()), v.dy(), v.dy() * (v.y() + v.attr_float("alpha", 1.0f)))};
}

// y = gamma * (x > 0 ? x : alpha*(exp(x) - 1))
// dx = x > 0 ? gamma*dy : dy * (y + gamma*alpha)
Grads SeluVjp(const Vjp& v) {
  const double alpha = v.attr_float("alpha", 1.67326319217681884765625f);
  const double gamma = v.attr_float("gamma", 1.05070102214813232421875f);
  return {Where(Positive(v.x()), v.dy() * gamma, v.dy() * (v.y() + gamma * alpha))};
}

// y = x > 0 ? x : alpha*(exp(x/alpha) - 1);  dx = x > 0 ? dy : dy * (y/alpha + 1)
Grads CeluVjp(const Vjp& v) {
  const double alpha = v.attr_float("alpha", 1.0f);
  return {Where(Positive(v.x()), v.dy(), v.dy() * (v.y() / alpha + 1.0))};
}

// y = 1 / (1 + exp(-x));  dx = dy * y * (1 - y)
Grads SigmoidVjp(const Vjp& v) { return {v.dy() * v.y() * (1.0 - v.y())}; }

// y = max(0, min(1, alpha*x + beta));  dx = alpha*dy where 0 < y < 1, else 0
Grads HardSigmoidVjp(const Vjp& v) {
  Expr inside = And(Positive(v.y()), Less(v.y(), v.b().Scalar(1, v.y())));
  return {ZeroUnless(inside, v.dy() * v.attr_float("alpha", 0.2f))};
}

// y = x * max(0, min(1, x/6 + 1/2))
// dx = 0 where x <= -3, dy where x >= 3, else dy * (x/3 + 1/2)
Grads HardSwishVjp(const Vjp& v) {
  Expr middle = v.dy() * (v.x() * (1.0 / 3) + 0.5);
  Expr right = Where(GreaterOrEqual(v.x(), v.b().Scalar(3, v.x())), v.dy(), middle);
  return {ZeroUnless(Greater(v.x(), v.b().Scalar(-3, v.x())), right)};
}

// y = tanh(x);  dx = dy * (1 - y^2)
Grads TanhVjp(const Vjp& v) { return {v.dy() * (1.0 - v.y() * v.y())}; }

// y = log(1 + exp(x));  dx = dy * sigmoid(x)
Grads SoftplusVjp(const Vjp& v) { return {v.dy() * Sigmoid(v.x())}; }

// y = x / (1 + |x|);  dx = dy / (1 + |x|)^2
Grads SoftsignVjp(const Vjp& v) {
  Expr d = 1.0 + Abs(v.x());
  return {v.dy() / (d * d)};
}

// y = x > alpha ? x : 0;  dx = x > alpha ? dy : 0
Grads ThresholdedReluVjp(const Vjp& v) {
  Expr alpha = v.b().Scalar(v.attr_float("alpha", 1.0f), v.x());
  return {ZeroUnless(Greater(v.x(), alpha), v.dy())};
}

// y = x*P(x), P the normal distribution function or its approximation by tanh;
// dx = dy * (P(x) + x*P'(x))
Grads GeluVjp(const Vjp& v) {
  return {v.b().Op("GeluGrad", {v.dy(), v.x()}, Pick(v.node(), {"approximate"}), kOnwardDomain)};
}

// y = x * t with t = tanh(softplus(x));  dx = dy * (t + x * (1 - t^2) * sigmoid(x))
Grads MishVjp(const Vjp& v) {
  Expr t = Tanh(v.b().Op("Softplus", {v.x()}));
  return {v.dy() * (t + v.x() * (1.0 - t * t) * Sigmoid(v.x()))};
}

// y = x * s with s = sigmoid(alpha*x);  dx = dy * (s + alpha*y*(1 - s))
Grads SwishVjp(const Vjp& v) {
  const double alpha = v.attr_float("alpha", 1.0f);
  Expr s = Sigmoid(alpha == 1 ? v.x() : v.x() * alpha);
  Expr tail = v.y() * (1.0 - s);
  return {v.dy() * (s + (alpha == 1 ? tail : tail * alpha))};
}

// y = x + bias where x < -lambd, x - bias where x > lambd, else 0
// dx = dy where |x| > lambd, else 0
Grads ShrinkVjp(const Vjp& v) {
  const double lambd = v.attr_float("lambd", 0.5f);
  Expr outside =
      Or(Less(v.x(), v.b().Scalar(-lambd, v.x())), Greater(v.x(), v.b().Scalar(lambd, v.x())));
  return {ZeroUnless(outside, v.dy())};
}

}  // namespace

void RegisterActivationRules(RuleTable& table) {
  table.Add("Relu", ReluVjp);
  table.Add("LeakyRelu", LeakyReluVjp);
  table.Add("PRelu", PReluVjp);
  table.Add("Elu", EluVjp);
  table.Add("Selu", SeluVjp);
  table.Add("Celu", CeluVjp);
  table.Add("Sigmoid", SigmoidVjp);
  table.Add("HardSigmoid", HardSigmoidVjp);
  table.Add("HardSwish", HardSwishVjp);
  table.Add("Tanh", TanhVjp);
  table.Add("Softplus", SoftplusVjp);
  table.Add("Softsign", SoftsignVjp);
  table.Add("ThresholdedRelu", ThresholdedReluVjp);
  table.Add("Gelu", GeluVjp);
  table.Add("Mish", MishVjp);
  table.Add("Swish", SwishVjp);
  table.Add("Shrink", ShrinkVjp);
}

}  // namespace onward

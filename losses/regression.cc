// SPDX-License-Identifier: Apache-2.0
// Losses whose label has the shape of the output, element by element: mse, l1, huber,
// smooth_l1, bce, hinge.
#include "losses/definition.h"

namespace onward {
namespace {

// L = mean(d^2),  d = output - label
Expr Mse(const LossCall& c) {
  const Expr d = c.output() - c.label;
  return c.Reduced(d * d);
}

// L = mean(|d|)
Expr L1(const LossCall& c) { return c.Reduced(Abs(c.output() - c.label)); }

// d^2/2 for |d| <= delta, else delta*(|d| - delta/2): with m = min(|d|, delta), both
// are m*(|d| - m/2).
Expr HuberOf(const LossCall& c, double delta) {
  const Expr d = Abs(c.output() - c.label);
  const Expr m = Min(d, c.b.Scalar(delta, d));
  return m * (d - m * 0.5);
}

Expr Huber(const LossCall& c) { return c.Reduced(HuberOf(c, c.Number("delta"))); }

// Huber's with delta = beta, divided by beta.
Expr SmoothL1(const LossCall& c) {
  const double beta = c.Number("beta");
  if (beta == 0) return L1(c);
  return c.Reduced(HuberOf(c, beta) * (1 / beta));
}

// Of logits x: -w*(p*z*log(sigmoid(x)) + (1-z)*log(1 - sigmoid(x))), p being pos_weight.
Expr Bce(const LossCall& c) {
  const Expr &x = c.output(), &z = c.label;
  const bool given = c.Is("logits", "probabilities");
  Expr hit = z * (given ? -ClampedLog(x) : MinusLogSigmoid(x));
  if (c.Given("pos_weight")) hit = hit * c.List("pos_weight", {-1});
  const Expr miss = (1 - z) * (given ? -ClampedLog(1 - x) : MinusLogOneMinusSigmoid(x));
  const Expr each = hit + miss;
  return c.Reduced(c.Given("weight") ? each * c.List("weight", {-1}) : each);
}

// L = mean(max(0, margin - z*x)),  z being 1 or -1
Expr Hinge(const LossCall& c) {
  return c.Reduced(c.b.Op("Relu", {c.Number("margin") - c.label * c.output()}));
}

}  // namespace

Expr MinusLogSigmoid(const Expr& x) { return x.builder().Op("Softplus", {-x}); }
Expr MinusLogOneMinusSigmoid(const Expr& x) { return x.builder().Op("Softplus", {x}); }

LossDef MseLoss() { return {.name = "mse", .summary = "squared error", .build = Mse}; }

LossDef L1Loss() { return {.name = "l1", .summary = "absolute error", .build = L1}; }

LossDef HuberLoss() {
  return {.name = "huber",
          .summary = "squared error near zero, absolute beyond delta",
          .numbers = {NumberOption::Positive("delta", 1)},
          .build = Huber};
}

LossDef SmoothL1Loss() {
  return {.name = "smooth_l1",
          .summary = "huber's divided by beta",
          .numbers = {NumberOption::AtLeast("beta", 1, 0)},
          .build = SmoothL1};
}

LossDef BceLoss() {
  return {.name = "bce",
          .summary = "binary cross entropy of logits",
          .words = {{"logits", {"logits", "probabilities"}}},
          .lists = {"weight", "pos_weight"},
          .build = Bce};
}

LossDef HingeLoss() {
  return {.name = "hinge",
          .summary = "max(0, margin - label*output) of labels 1 and -1",
          .numbers = {{.name = "margin", .otherwise = 1}},
          .build = Hinge};
}

}  // namespace onward

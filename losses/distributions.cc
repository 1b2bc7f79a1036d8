// SPDX-License-Identifier: Apache-2.0
// Losses that take the output for the parameters of a distribution: kl, poisson, gaussian_nll.
#include <cmath>
#include <numbers>

#include "losses/definition.h"

namespace onward {
namespace {

// t*(log t - x) of labels t and log-probabilities x, with log_target exp(t)*(t - x).
// ClampedLog makes 0*log 0 zero. batchmean divides by the number of examples.
Expr Kl(const LossCall& c) {
  Expr x = c.output();
  if (c.Is("logits", "probabilities")) x = ClampedLog(x);
  if (c.Is("logits", "logits"))
    x = c.b.Op("LogSoftmax", {x}, {{"axis", c.Is("axis", "-1") ? -1 : 1}});
  const Expr& t = c.label;
  const Expr each = c.On("log_target") ? Exp(t) * (t - x) : t * (ClampedLog(t) - x);
  if (!c.Is("reduction", "batchmean")) return c.Reduced(each);
  const Expr examples = Squeeze(ShapeOf(c.output(), 0, 1), {0});
  return ReduceSumAll(each) / CastLike(examples, each);
}

// exp(x) - z*x of the logarithm x of the rate, or x - z*log(x + eps) of the rate itself; with
// full=1 also Stirling's z*log z - z + log(2*pi*z)/2 where z > 1.
Expr Poisson(const LossCall& c) {
  const Expr &x = c.output(), &z = c.label;
  Expr each = c.On("log_input") ? Exp(x) - z * x : x - z * Log(x + c.Number("eps"));
  if (c.On("full")) {
    const Expr one = c.b.Scalar(1, z);
    const Expr large = Max(z, one);
    const Expr stirling = large * Log(large) - large + Log(large * (2 * std::numbers::pi)) * 0.5;
    each = each + Where(Greater(z, one), stirling, c.b.Scalar(0, z));
  }
  return c.Reduced(each);
}

// (log v + (x - z)^2/v)/2 with v = max(variance, eps), with full=1 + log(2*pi)/2.
Expr GaussianNll(const LossCall& c) {
  const Expr d = c.output() - c.label;
  const Expr v = Max(c.outputs[1], c.b.Scalar(c.Number("eps"), d));
  const Expr each = (Log(v) + d * d / v) * 0.5;
  return c.Reduced(c.On("full") ? each + 0.5 * std::log(2 * std::numbers::pi) : each);
}

}  // namespace

LossDef KlLoss() {
  return {.name = "kl",
          .summary = "Kullback-Leibler divergence of log-probabilities from labels",
          .numbers = {NumberOption::Switch("log_target")},
          .words = {{"axis", {"1", "-1"}},
                    {"logits", {"log_probabilities", "logits", "probabilities"}}},
          .reductions = {"mean", "batchmean", "sum"},
          .build = Kl};
}

LossDef PoissonLoss() {
  return {.name = "poisson",
          .summary = "of counts and the logarithm of their rate",
          .numbers = {NumberOption::Switch("log_input", true), NumberOption::Switch("full"),
                      NumberOption::Positive("eps", 1e-8)},
          .build = Poisson};
}

LossDef GaussianNllLoss() {
  return {.name = "gaussian_nll",
          .summary = "of labels, their mean (first output) and variance (second)",
          .outputs = {2},
          .numbers = {NumberOption::Switch("full"), NumberOption::Positive("eps", 1e-6)},
          .build = GaussianNll};
}

}  // namespace onward

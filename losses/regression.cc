// SPDX-License-Identifier: Apache-2.0
// Losses whose label has the shape of the output: mse, l1, huber, bce.
#include "losses/definition.h"

namespace onward {
namespace {

// L = mean(d^2),  d = output - label
Expr Mse(GraphBuilder&, const LossSpec&, const Expr& output, const Expr& label) {
  const Expr d = output - label;
  return MeanOfAll(d * d);
}

// L = mean(|d|)
Expr L1(GraphBuilder&, const LossSpec&, const Expr& output, const Expr& label) {
  return MeanOfAll(Abs(output - label));
}

// d^2/2 for |d| <= delta, else delta*(|d| - delta/2): with c = min(|d|, delta), both
// are c*(|d| - c/2).
Expr Huber(GraphBuilder& b, const LossSpec& spec, const Expr& output, const Expr& label) {
  const Expr d = Abs(output - label);
  const Expr c = Min(d, b.Scalar(NumberOf(spec, "delta", 1), d));
  return MeanOfAll(c * (d - c * 0.5));
}

// Of logits x: -z*log(sigmoid(x)) - (1-z)*log(1 - sigmoid(x)), where
// -log(sigmoid(x)) = softplus(-x), so that nothing overflows or cancels.
Expr Bce(GraphBuilder& b, const LossSpec& spec, const Expr& output, const Expr& label) {
  if (WordOf(spec, "logits", "logits") == "probabilities") {
    return -MeanOfAll(label * ClampedLog(output) + (1 - label) * ClampedLog(1 - output));
  }
  return MeanOfAll(label * b.Op("Softplus", {-output}) + (1 - label) * b.Op("Softplus", {output}));
}

}  // namespace

LossDef MseLoss() { return {.name = "mse", .build = Mse}; }

LossDef L1Loss() { return {.name = "l1", .build = L1}; }

LossDef HuberLoss() {
  return {.name = "huber", .numbers = {NumberOption::Positive("delta", 1)}, .build = Huber};
}

LossDef BceLoss() {
  return {.name = "bce", .words = {{"logits", {"logits", "probabilities"}}}, .build = Bce};
}

}  // namespace onward

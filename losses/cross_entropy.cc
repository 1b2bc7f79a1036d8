// SPDX-License-Identifier: Apache-2.0
// Losses over classes: cross_entropy, nll and focal.
#include "losses/definition.h"

namespace onward {
namespace {

WordOption AxisOption() { return {"axis", {"1", "-1"}}; }
NumberOption IgnoreIndexOption() { return {.name = "ignore_index", .integer = true}; }

// The attribute has no default in the standard: absent, every label counts.
Attributes ClassAttributes(const LossCall& c) {
  Attributes attributes = {{"reduction", c.Word("reduction")}};
  if (c.Given("ignore_index")) {
    attributes["ignore_index"] = static_cast<int64_t>(c.Number("ignore_index"));
  }
  return attributes;
}

// The class weights, as [C].
std::vector<Expr> WithWeights(const LossCall& c, std::vector<Expr> inputs) {
  if (c.Given("weight")) inputs.push_back(c.List("weight", {-1}));
  return inputs;
}

// The class weights beside scores, whose classes are on axis 1.
Expr WeightsAlong(const LossCall& c) {
  std::vector<int64_t> shape(std::max(1, c.output().rank() - 1), 1);
  shape[0] = -1;
  return c.List("weight", shape);
}

Expr NllOf(const LossCall& c, const Expr& log_p) {
  return c.b.Op("NegativeLogLikelihoodLoss", WithWeights(c, {log_p, c.label}), ClassAttributes(c));
}

// The cross entropy with the uniform distribution, -mean_c(w_c*log p_c), averaged over the
// labels that are not ignored by the weights of their classes.
Expr UniformCrossEntropy(const LossCall& c, const Expr& log_p) {
  const Expr weighted = c.Given("weight") ? log_p * WeightsAlong(c) : log_p;
  Expr each = -ReduceMean(weighted, {1}, /*keepdims=*/false);
  const bool ignores = c.Given("ignore_index");
  if (!ignores && !c.Given("weight")) return c.Reduced(each);
  Expr label = c.label, share = OnesLike(each);
  Expr counts;
  if (ignores) {
    counts = Not(Equal(label, c.b.Scalar(c.Number("ignore_index"), label)));
    label = Where(counts, label, ZerosLike(label));
    each = Where(counts, each, c.b.Scalar(0, each));
  }
  if (c.Is("reduction", "sum")) return ReduceSumAll(each);
  if (c.Given("weight")) share = Gather(c.List("weight", {-1}), label);
  if (ignores) share = Where(counts, share, c.b.Scalar(0, each));
  return ReduceSumAll(each) / ReduceSumAll(share);
}

Expr LogProbabilities(const LossCall& c, int64_t axis) {
  if (c.Is("logits", "log_probabilities")) return c.output();
  if (c.Is("logits", "probabilities")) return ClampedLog(c.output());
  return c.b.Op("LogSoftmax", {c.output()}, {{"axis", axis}});
}

// With labels t that are probabilities, e = label_smoothing:
// L = -(1 - e)*sum_c(t_c*w_c*log p_c) - e*mean_c(w_c*log p_c)
Expr SoftCrossEntropy(const LossCall& c) {
  const int64_t axis = c.Is("axis", "-1") ? -1 : 1;
  Expr log_p = LogProbabilities(c, axis);
  if (c.Given("weight")) {
    log_p = log_p * (axis == 1 ? WeightsAlong(c) : c.List("weight", {-1}));
  }
  const double smoothing = c.Number("label_smoothing");
  Expr each = ReduceSum(c.label * log_p, {axis}, /*keepdims=*/false);
  if (smoothing != 0) {
    each = each * (1 - smoothing) + ReduceMean(log_p, {axis}, /*keepdims=*/false) * smoothing;
  }
  return -c.Reduced(each);
}

// e = label_smoothing;  L = (1 - e) * -log p_label + e * -mean_c(log p_c)
Expr CrossEntropy(const LossCall& c) {
  if (c.On("soft_labels")) return SoftCrossEntropy(c);
  const double smoothing = c.Number("label_smoothing");
  if (smoothing == 0 && c.Is("logits", "logits")) {
    return c.b.Op("SoftmaxCrossEntropyLoss", WithWeights(c, {c.output(), c.label}),
                  ClassAttributes(c));
  }
  const Expr log_p = LogProbabilities(c, 1);
  const Expr nll = NllOf(c, log_p);
  if (smoothing == 0) return nll;
  return nll * (1 - smoothing) + UniformCrossEntropy(c, log_p) * smoothing;
}

LabelKind CrossEntropyLabels(const LossSpec& spec, size_t) {
  return SwitchedOn(spec, "soft_labels") ? LabelKind::kLikeOutput : LabelKind::kClasses;
}

Expr Nll(const LossCall& c) { return NllOf(c, c.output()); }

// Of logits x and labels z:  p = sigmoid(x), q = p*z + (1-p)*(1-z)
// L = (alpha*z + (1-alpha)*(1-z)) * (1-q)^gamma * -log q
// Over classes: (1-p)^gamma * -log p of the label's class, times alpha where it is given.
Expr Focal(const LossCall& c) {
  const Expr& x = c.output();
  const double alpha = c.Number("alpha"), gamma = c.Number("gamma");
  if (c.Is("activation", "softmax")) {
    const Expr log_p = c.b.Op("LogSoftmax", {x}, {{"axis", 1}});
    const Expr nll = c.b.Op("NegativeLogLikelihoodLoss", {log_p, c.label}, {{"reduction", "none"}});
    const Expr each = Pow(1 - Exp(-nll), gamma) * nll;
    return c.Reduced(c.Given("alpha") && alpha >= 0 ? each * alpha : each);
  }
  const Expr& z = c.label;
  const Expr p = Sigmoid(x);
  const Expr cost = z * MinusLogSigmoid(x) + (1 - z) * MinusLogOneMinusSigmoid(x);
  Expr each = cost * Pow(1 - (p * z + (1 - p) * (1 - z)), gamma);
  if (alpha >= 0) each = each * (z * alpha + (1 - z) * (1 - alpha));
  return c.Reduced(each);
}

LabelKind FocalLabels(const LossSpec& spec, size_t) {
  return WordOf(spec, "activation", "sigmoid") == "softmax" ? LabelKind::kClasses
                                                            : LabelKind::kLikeOutput;
}

}  // namespace

LossDef CrossEntropyLoss() {
  return {.name = "cross_entropy",
          .summary = "of logits and class numbers, or with soft_labels=1 of probabilities",
          .labels_of = CrossEntropyLabels,
          .numbers = {IgnoreIndexOption(), NumberOption::Fraction("label_smoothing", 0),
                      NumberOption::Switch("soft_labels")},
          .words = {AxisOption(), {"logits", {"logits", "probabilities", "log_probabilities"}}},
          .lists = {"weight"},
          .build = CrossEntropy};
}

LossDef NllLoss() {
  return {.name = "nll",
          .summary = "of log-probabilities and class numbers",
          .labels = LabelKind::kClasses,
          .numbers = {IgnoreIndexOption()},
          .words = {AxisOption()},
          .lists = {"weight"},
          .build = Nll};
}

LossDef FocalLoss() {
  return {.name = "focal",
          .summary = "cross entropy that leaves easy examples out; of logits",
          .labels_of = FocalLabels,
          .numbers = {{.name = "alpha", .otherwise = 0.25, .low = -1, .high = 1},
                      NumberOption::AtLeast("gamma", 2, 0)},
          .words = {AxisOption(), {"activation", {"sigmoid", "softmax"}}},
          .build = Focal};
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Losses over classes: cross_entropy and nll.
#include "losses/definition.h"

namespace onward {
namespace {

WordOption AxisOption() { return {"axis", {"1", "-1"}}; }
NumberOption IgnoreIndexOption() { return {.name = "ignore_index", .integer = true}; }

// The attribute has no default in the standard: absent, every label counts.
Attributes ClassAttributes(const LossSpec& spec) {
  Attributes attributes = {{"reduction", "mean"}};
  if (spec.options.contains("ignore_index")) {
    attributes["ignore_index"] = static_cast<int64_t>(NumberOf(spec, "ignore_index", 0));
  }
  return attributes;
}

Expr Nll(GraphBuilder& b, const LossSpec& spec, const Expr& log_p, const Expr& label) {
  return b.Op("NegativeLogLikelihoodLoss", {log_p, label}, ClassAttributes(spec));
}

// The cross entropy with the uniform distribution, -mean_c(log p_c), averaged
// over the labels that are not ignored.
Expr UniformCrossEntropy(GraphBuilder& b, const LossSpec& spec, const Expr& log_p,
                         const Expr& label) {
  const Expr each = -ReduceMean(log_p, {1}, /*keepdims=*/false);
  if (!spec.options.contains("ignore_index")) return MeanOfAll(each);
  const double ignored = NumberOf(spec, "ignore_index", 0);
  const Expr counts = Not(Equal(label, b.Scalar(ignored, label)));
  const Expr kept = Where(counts, each, b.Scalar(0, each));
  return ReduceSumAll(kept) / ReduceSumAll(CastLike(counts, each));
}

Expr LogProbabilities(GraphBuilder& b, const LossSpec& spec, const Expr& output) {
  const std::string given = WordOf(spec, "logits", "logits");
  if (given == "log_probabilities") return output;
  if (given == "probabilities") return ClampedLog(output);
  return b.Op("LogSoftmax", {output}, {{"axis", 1}});
}

// e = label_smoothing;  L = (1 - e) * -log p_label + e * -mean_c(log p_c)
Expr CrossEntropy(GraphBuilder& b, const LossSpec& spec, const Expr& output, const Expr& label) {
  const double smoothing = NumberOf(spec, "label_smoothing", 0);
  if (smoothing == 0 && WordOf(spec, "logits", "logits") == "logits") {
    return b.Op("SoftmaxCrossEntropyLoss", {output, label}, ClassAttributes(spec));
  }
  const Expr log_p = LogProbabilities(b, spec, output);
  const Expr nll = Nll(b, spec, log_p, label);
  if (smoothing == 0) return nll;
  return nll * (1 - smoothing) + UniformCrossEntropy(b, spec, log_p, label) * smoothing;
}

}  // namespace

LossDef CrossEntropyLoss() {
  return {.name = "cross_entropy",
          .classes = true,
          .numbers = {IgnoreIndexOption(), NumberOption::Fraction("label_smoothing", 0)},
          .words = {AxisOption(), {"logits", {"logits", "probabilities", "log_probabilities"}}},
          .build = CrossEntropy};
}

LossDef NllLoss() {
  return {.name = "nll",
          .classes = true,
          .numbers = {IgnoreIndexOption()},
          .words = {AxisOption()},
          .build = Nll};
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Bodies of the gradients of the losses. Labels are compared with the classes
// and never used as indices, so an ignored label may have any value.
#include "autograd/functions.h"

namespace onward {
namespace {

// The number of positions that a mean without weights divides by.
Expr CountedPositions(GraphBuilder& b, const Expr& counted, const Expr& labels, const Expr& like) {
  if (counted.defined()) return ReduceSumAll(CastLike(counted, like));
  if (auto shape = labels.type().StaticShape()) {
    return b.Scalar(static_cast<double>(shape->elements()), like);
  }
  return CastLike(SizeOf(labels), like);
}

// logp = logsoftmax(scores), L = -w[label] * logp[label], zero where ignored;
// dscores[c] = w[label] * (softmax(scores)[c] - (c == label)) * scale
std::vector<Expr> SoftmaxCrossEntropyLossGrad(GraphBuilder& b, const Node& call,
                                              const std::vector<Expr>& in) {
  const auto [dl, scores, labels] = LossOperandsOf(call, in[0], Widened(in[1]), in[2]);
  auto t = LabelTermsOf(b, call, dl, scores, labels, Argument(in, 3));
  if (!t) return {};
  Expr p = b.Op("Softmax", {scores}, {{"axis", 1}});
  Expr zero = b.Scalar(0, scores), one = b.Scalar(1, scores);
  Expr difference;
  if (t->weight.defined()) {
    Expr label_weight = Where(t->is_label, t->weight, zero);
    difference = p * ReduceSum(label_weight, {1}) - label_weight;
  } else {
    difference = p - Where(t->is_label, one, zero);
  }
  Expr dscores = difference * t->scale;
  if (t->counted.defined()) dscores = Where(t->counted, dscores, zero);
  return {CastLike(Channelled(in[1]).Back(dscores), in[1])};
}

// L = -w[label] * input[label], zero where ignored;
// dinput[c] = -w[c] * scale where c == label, else 0
std::vector<Expr> NegativeLogLikelihoodLossGrad(GraphBuilder& b, const Node& call,
                                                const std::vector<Expr>& in) {
  const auto [dl, input, labels] = LossOperandsOf(call, in[0], Widened(in[1]), in[2]);
  auto t = LabelTermsOf(b, call, dl, input, labels, Argument(in, 3));
  if (!t) return {};
  Expr at_label = t->weight.defined() ? -(t->weight * t->scale) : -t->scale;
  const Expr dinput = Where(t->is_label, at_label, b.Scalar(0, input));
  return {CastLike(Channelled(in[1]).Back(dinput), in[1])};
}

}  // namespace

LossOperands LossOperandsOf(const Node& node, const Expr& dl, const Expr& scores,
                            const Expr& labels) {
  if (scores.rank() >= 0) return {dl, scores, labels};
  const auto flat = [](const Expr& e) { return Reshape(e, {0, -1}); };
  const bool each = node.String("reduction", "mean") == "none";
  return {each ? flat(dl) : dl, Channelled(scores).Of(scores), flat(labels)};
}

// scale: none: dL; sum: dL; mean: dL / sum of the weights of the counted labels
std::optional<LabelTerms> LabelTermsOf(GraphBuilder& b, const Node& node, const Expr& dl,
                                       const Expr& scores, const Expr& labels,
                                       const Expr& weights) {
  const int rank = scores.rank();
  if (rank < 2) {
    FailAt(b, node, "the scores have no axis of classes");
    return std::nullopt;
  }
  LabelTerms t;
  Expr label = Unsqueeze(CastLike(labels, b.Int(0)), {1});
  Expr count = scores.dim(1) >= 0 ? b.Int(scores.dim(1)) : Squeeze(ShapeOf(scores, 1, 2), {0});
  t.is_label = Equal(label, AlongAxis(b.Op("Range", {b.Int(0), count, b.Int(1)}), 1, rank));
  if (node.Has("ignore_index")) {
    t.counted = Not(Equal(label, b.Int(node.Int("ignore_index", 0))));
    t.is_label = And(t.is_label, t.counted);
  }
  if (weights.defined()) t.weight = AlongAxis(CastLike(weights, scores), 1, rank);
  const std::string reduction = node.String("reduction", "mean");
  t.scale = CastLike(dl, scores);
  if (reduction == "none") {
    t.scale = Unsqueeze(t.scale, {1});
  } else if (reduction == "mean") {
    t.scale = t.scale / (weights.defined()
                             ? ReduceSumAll(Where(t.is_label, t.weight, b.Scalar(0, scores)))
                             : CountedPositions(b, t.counted, labels, scores));
  } else if (reduction != "sum") {
    FailAt(b, node, "reduction must be none, sum or mean");
    return std::nullopt;
  }
  return t;
}

void RegisterLossFunctions(FunctionLibrary& library) {
  library.Add("SoftmaxCrossEntropyLossGrad", {.body = SoftmaxCrossEntropyLossGrad,
                                              .output_like = {1},
                                              .shape_only = {},
                                              .attributes = {"ignore_index", "reduction"},
                                              .required = 3,
                                              .operands = "FFIF"});
  library.Add("NegativeLogLikelihoodLossGrad", {.body = NegativeLogLikelihoodLossGrad,
                                                .output_like = {1},
                                                .shape_only = {1},
                                                .attributes = {"ignore_index", "reduction"},
                                                .required = 3,
                                                .operands = "FFIF"});
}

}  // namespace onward

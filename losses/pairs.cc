// SPDX-License-Identifier: Apache-2.0
// Losses between vectors, along the last axis: cosine, triplet, contrastive. They compare
// outputs of the model with each other, or one output within a batch whose labels are classes.
#include "losses/definition.h"

namespace onward {
namespace {

Expr SumLast(const Expr& x) { return ReduceSum(x, {-1}, /*keepdims=*/false); }
Expr Positive(const Expr& x) { return x.builder().Op("Relu", {x}); }

// a.b / sqrt((a.a + e)*(b.b + e)), e as in PyTorch
Expr Cosine(const Expr& a, const Expr& b) {
  constexpr double kSmall = 1e-12;
  return SumLast(a * b) / Sqrt((SumLast(a * a) + kSmall) * (SumLast(b * b) + kSmall));
}

// |a - b + eps| in the norm p.
Expr Distance(const Expr& a, const Expr& b, double p, double eps) {
  const Expr d = a - b + eps;
  if (p == 1) return SumLast(Abs(d));
  if (p == 2) return Sqrt(SumLast(d * d));
  return Pow(SumLast(Pow(Abs(d), p)), 1 / p);
}

// Of one output: 1 - cos(output, label). Of two and labels 1 or -1: 1 - cos for 1,
// max(0, cos - margin) for -1.
Expr CosineOf(const LossCall& c) {
  if (c.outputs.size() == 1) return c.Reduced(1 - Cosine(c.output(), c.label));
  const Expr cos = Cosine(c.outputs[0], c.outputs[1]);
  const Expr alike = Greater(c.label, c.b.Scalar(0, c.label));
  return c.Reduced(Where(alike, 1 - cos, Positive(cos - c.Number("margin"))));
}

LabelKind CosineLabels(const LossSpec&, size_t outputs) {
  return outputs == 1 ? LabelKind::kLikeOutput : LabelKind::kNumberEach;
}

// Every example of a batch beside every other: distances [N, N], and whether their classes
// are the same.
struct Pairs {
  Expr distance, same, self;

  explicit Pairs(const LossCall& c) {
    const Expr &x = c.output(), &y = c.label;
    const Expr d = Unsqueeze(x, {1}) - Unsqueeze(x, {0});
    // The slope of a square root at 0 is infinite, and every example is at 0 of itself.
    constexpr double kSmall = 1e-12;
    distance = Sqrt(SumLast(d * d) + kSmall);
    same = Equal(Unsqueeze(y, {1}), Unsqueeze(y, {0}));
    const Expr count = Squeeze(ShapeOf(y, 0, 1), {0});
    const Expr index = c.b.Op("Range", {c.b.Int(0), count, c.b.Int(1)});
    self = Equal(Unsqueeze(index, {1}), Unsqueeze(index, {0}));
  }
};

// The mean of those that count (their sum, with reduction=sum); 0 where none does.
Expr ReducedWhere(const LossCall& c, const Expr& counts, const Expr& each) {
  const Expr sum = ReduceSumAll(Where(counts, each, c.b.Scalar(0, each)));
  if (c.Is("reduction", "sum")) return sum;
  const Expr count = ReduceSumAll(CastLike(counts, each));
  return sum / Max(count, c.b.Scalar(1, count));
}

// max(0, |anchor - positive| - |anchor - negative| + margin); with swap, the negative counts
// from the positive where that is nearer. Of one output: the mean over all triplets of the
// batch.
Expr Triplet(const LossCall& c) {
  const double margin = c.Number("margin");
  if (c.outputs.size() == 1) {
    const Pairs pairs(c);
    const Expr positive = And(pairs.same, Not(pairs.self));
    const Expr counts = And(Unsqueeze(positive, {2}), Unsqueeze(Not(pairs.same), {1}));
    const Expr each = Unsqueeze(pairs.distance, {2}) - Unsqueeze(pairs.distance, {1}) + margin;
    return ReducedWhere(c, counts, Positive(each));
  }
  const auto distance = [&](int a, int b) {
    return Distance(c.outputs[a], c.outputs[b], c.Number("p"), c.Number("eps"));
  };
  Expr negative = distance(0, 2);
  if (c.On("swap")) negative = Min(negative, distance(1, 2));
  return c.Reduced(Positive(distance(0, 1) - negative + margin));
}

LabelKind TripletLabels(const LossSpec&, size_t outputs) {
  return outputs == 1 ? LabelKind::kClassEach : LabelKind::kNone;
}

// (y*d^2 + (1-y)*max(0, margin - d)^2)/2 of the distance d of two outputs, y being 1 for a
// pair that belongs together and 0 for others. Of one output: the mean over all pairs of the
// batch.
Expr Contrastive(const LossCall& c) {
  const auto cost = [&](const Expr& d, const Expr& together) {
    const Expr gap = Positive(c.Number("margin") - d);
    return Where(together, d * d, gap * gap) * 0.5;
  };
  if (c.outputs.size() == 1) {
    const Pairs pairs(c);
    return ReducedWhere(c, Not(pairs.self), cost(pairs.distance, pairs.same));
  }
  const Expr d = Distance(c.outputs[0], c.outputs[1], 2, 1e-6);
  return c.Reduced(cost(d, Greater(c.label, c.b.Scalar(0.5, c.label))));
}

LabelKind ContrastiveLabels(const LossSpec&, size_t outputs) {
  return outputs == 1 ? LabelKind::kClassEach : LabelKind::kNumberEach;
}

}  // namespace

LossDef CosineLoss() {
  return {.name = "cosine",
          .summary = "1 - cosine of output and label, or of two outputs with labels 1 and -1",
          .labels_of = CosineLabels,
          .outputs = {1, 2},
          .numbers = {{.name = "margin", .otherwise = 0, .low = -1, .high = 1}},
          .build = CosineOf};
}

LossDef TripletLoss() {
  return {.name = "triplet",
          .summary =
              "of three outputs (anchor, positive, negative; no label), or of one and "
              "class numbers",
          .labels_of = TripletLabels,
          .outputs = {1, 3},
          .numbers = {NumberOption::Positive("margin", 1), NumberOption::Positive("p", 2),
                      NumberOption::AtLeast("eps", 1e-6, 0), NumberOption::Switch("swap")},
          .build = Triplet};
}

LossDef ContrastiveLoss() {
  return {.name = "contrastive",
          .summary = "of two outputs with labels 1 (alike) and 0, or of one and class numbers",
          .labels_of = ContrastiveLabels,
          .outputs = {1, 2},
          .numbers = {NumberOption::Positive("margin", 1)},
          .build = Contrastive};
}

}  // namespace onward

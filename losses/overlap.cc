// SPDX-License-Identifier: Apache-2.0
// How far output and label do not overlap: dice and iou of masks, iou of boxes.
#include "losses/definition.h"

namespace onward {
namespace {

// Probabilities and labels of each example in one row.
struct Masks {
  Expr both, sum;

  explicit Masks(const LossCall& c) {
    const Expr p = c.Is("logits", "logits") ? Sigmoid(c.output()) : c.output();
    const Expr rows = Reshape(p, {0, -1}), labels = Reshape(c.label, {0, -1});
    both = ReduceSum(rows * labels, {1}, /*keepdims=*/false);
    sum = ReduceSum(rows + labels, {1}, /*keepdims=*/false);
  }
};

// 1 - (2*sum(p*z) + smooth) / (sum(p) + sum(z) + smooth) of each example
Expr Dice(const LossCall& c) {
  const Masks m(c);
  const double smooth = c.Number("smooth");
  return c.Reduced(1 - (m.both * 2.0 + smooth) / (m.sum + smooth));
}

struct Box {
  Expr left, top, right, bottom;

  explicit Box(const Expr& x) {
    const auto at = [&](int64_t i) { return Gather(x, x.builder().Int(i), -1); };
    left = at(0), top = at(1), right = at(2), bottom = at(3);
  }
  Expr Area() const { return (right - left) * (bottom - top); }
};

// Boxes are (x1, y1, x2, y2) on the last axis; eps as in torchvision.
// iou = both/(either + eps);  generalized: iou - (hull - either)/(hull + eps)
Expr BoxIou(const LossCall& c) {
  constexpr double kSmall = 1e-7;
  const Box a(c.output()), b(c.label);
  const auto side = [&](const Expr& low, const Expr& high) { return c.b.Op("Relu", {high - low}); };
  const Expr both = side(Max(a.left, b.left), Min(a.right, b.right)) *
                    side(Max(a.top, b.top), Min(a.bottom, b.bottom));
  const Expr either = a.Area() + b.Area() - both;
  Expr iou = both / (either + kSmall);
  if (c.Is("of", "generalized_boxes")) {
    const Expr hull = (Max(a.right, b.right) - Min(a.left, b.left)) *
                      (Max(a.bottom, b.bottom) - Min(a.top, b.top));
    iou = iou - (hull - either) / (hull + kSmall);
  }
  return c.Reduced(1 - iou);
}

// 1 - (sum(p*z) + smooth) / (sum(p) + sum(z) - sum(p*z) + smooth) of each example
Expr Iou(const LossCall& c) {
  if (!c.Is("of", "masks")) return BoxIou(c);
  const Masks m(c);
  const double smooth = c.Number("smooth");
  return c.Reduced(1 - (m.both + smooth) / (m.sum - m.both + smooth));
}

}  // namespace

LossDef DiceLoss() {
  return {.name = "dice",
          .summary = "1 - Dice's coefficient of each example's mask",
          .numbers = {NumberOption::AtLeast("smooth", 1, 0)},
          .words = {{"logits", {"logits", "probabilities"}}},
          .build = Dice};
}

LossDef IouLoss() {
  return {.name = "iou",
          .summary = "1 - intersection over union of masks, or of boxes (x1, y1, x2, y2)",
          .numbers = {NumberOption::AtLeast("smooth", 1, 0)},
          .words = {{"logits", {"logits", "probabilities"}},
                    {"of", {"masks", "boxes", "generalized_boxes"}}},
          .build = Iou};
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "optimizers/clip.h"

#include <algorithm>

#include "core/base/spec.h"
#include "optimizers/definition.h"

namespace onward {

std::vector<Expr> ClipByGlobalNorm(GraphBuilder& b, std::vector<Expr> grads, double max_norm) {
  const absl::Status status = CheckNumber(NumberOption::Positive("max_norm", 1), max_norm);
  if (!status.ok()) b.Fail(status);
  if (!b.status().ok() || grads.empty()) return grads;

  const bool any_double = std::any_of(grads.begin(), grads.end(),
                                      [](const Expr& g) { return g.dtype() == DType::kDouble; });
  const DType measure = any_double ? DType::kDouble : DType::kFloat;
  std::vector<Expr> squares;
  for (const Expr& g : grads) {
    const Expr wide = Widened(g);
    const Expr square = b.Op("ReduceSumSquare", {wide}, {{"keepdims", 0}});
    squares.push_back(wide.dtype() == measure ? square : Cast(square, measure));
  }
  const auto number = [&](double value) { return b.Constant(ScalarOf(measure, value)); };
  const Expr norm = Sqrt(squares.size() == 1 ? squares[0] : b.Op("Sum", squares));
  const Expr scale = Min(number(max_norm) / (norm + number(1e-6)), number(1));
  for (Expr& g : grads) g = g * CastLike(scale, g);
  return grads;
}

std::vector<Expr> ClipByValue(GraphBuilder& b, std::vector<Expr> grads, double limit) {
  const absl::Status status = CheckNumber(NumberOption::Positive("clip_value", 1), limit);
  if (!status.ok()) b.Fail(status);
  if (!b.status().ok()) return grads;
  for (Expr& g : grads) g = b.Op("Clip", {g, b.Scalar(-limit, g), b.Scalar(limit, g)});
  return grads;
}

Expr ClipByUnitNorm(GraphBuilder& b, const Expr& weight, const Expr& grad, bool units_last,
                    double factor) {
  const absl::Status status = CheckNumber(NumberOption::Positive("clip_adaptive", 1), factor);
  if (!status.ok()) return b.Fail(status);
  constexpr double kSmallestWeights = 1e-3, kSmallestGradient = 1e-6;
  const Expr w = Widened(weight), g = Widened(grad);
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < weight.rank(); ++axis) {
    const int64_t units = units_last ? weight.rank() - 1 : 0;
    if (weight.rank() < 2 || axis != units) axes.push_back(axis);
  }
  const auto norm = [&](const Expr& x, double smallest) {
    const Expr length = axes.empty() ? Abs(x) : Sqrt(ReduceSum(x * x, axes));
    return Max(length, b.Scalar(smallest, x));
  };
  const Expr scale = norm(w, kSmallestWeights) * factor / norm(g, kSmallestGradient);
  return CastLike(g * Min(scale, b.Scalar(1, g)), grad);
}

}  // namespace onward

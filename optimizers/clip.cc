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

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Orthogonal matrices by products alone. The polar factor of a matrix X of normal draws, which
// has its singular vectors and 1 for every singular value, is orthogonal, and no direction is
// preferred (nn.init.orthogonal_ takes the Q of a QR decomposition, with the same distribution).
// A step X <- a X + X (b G + c G^2), G = X^T X, changes each singular value s to
// a s + b s^3 + c s^5 and nothing else:
//
//   a, b, c = 3.4445, -4.775, 2.0315    lifts what is below 0.3 by a factor above 3, and keeps
//                                       the rest between 0.68 and 1.21 (Muon's numbers)
//   a, b, c = 15/8, -10/8, 3/8          brings these to 1; the error is cubed in each step
//
// Singular values of draws with deviation 1 are below sqrt(m) + sqrt(n) + t but for a chance of
// 2 exp(-t^2/2). The smallest of a square matrix is about 1/sqrt(n), and smaller by a factor e with
// a chance of e; 16 steps of the first kind lift 1e-9 to 0.4, so what is left are matrices that
// float cannot tell from singular ones, whose rounding errors are lifted instead.
#include <algorithm>
#include <cmath>
#include <memory>

#include "training_info/initializers/initializer.h"

namespace onward {
namespace {

constexpr int kLifts = 16, kPolishes = 8;
constexpr double kLift[] = {3.4445, -4.775, 2.0315};
constexpr double kPolish[] = {1.875, -1.25, 0.375};
constexpr double kTail = 6;

// [steps, 3]
Tensor Coefficients(DType dtype) {
  Tensor all(dtype, {kLifts + kPolishes, 3});
  for (int i = 0; i < kLifts + kPolishes; ++i) {
    for (int k = 0; k < 3; ++k) {
      const double value = i < kLifts ? kLift[k] : kPolish[k];
      if (dtype == DType::kDouble) {
        all.data<double>()[3 * i + k] = value;
      } else {
        all.data<float>()[3 * i + k] = static_cast<float>(value);
      }
    }
  }
  return all;
}

// One step, as the body of a Loop: (i, condition, x) -> (condition, x').
std::shared_ptr<const Graph> StepBody(GraphBuilder& outer, const Expr& x, const Expr& table) {
  auto body = std::make_shared<Graph>();
  body->name = "orthogonalize";
  GraphBuilder b(body.get(), nullptr, "step", &outer.names());
  const Expr i = b.Input(outer.UniqueName("iteration"), ValueType::Of(DType::kInt64, {}));
  const Expr on = b.Input(outer.UniqueName("condition"), ValueType::Of(DType::kBool, {}));
  const Expr m = b.Input(outer.UniqueName("matrix"), x.type());
  const Expr row = b.Op("Gather", {b.Value(table.name()), i});
  const auto coefficient = [&](int64_t k) { return b.Op("Gather", {row, b.Int(k)}); };
  std::vector<int64_t> perm(x.rank());
  for (int axis = 0; axis < x.rank(); ++axis) perm[axis] = axis;
  std::swap(perm[x.rank() - 1], perm[x.rank() - 2]);
  const Expr g = MatMul(Transpose(m, perm), m);
  const Expr p = g * coefficient(1) + MatMul(g, g) * coefficient(2);
  const Expr next = m * coefficient(0) + MatMul(m, p);
  const Expr go_on = b.Named(on, outer.UniqueName("go_on"));
  body->outputs = {{go_on.name(), ValueType::Of(DType::kBool, {})}, {next.name(), x.type()}};
  return body;
}

}  // namespace

Expr DrawOrthogonal(GraphBuilder& b, const WeightMatrix& weight, const std::string& name) {
  const Shape& matrix = weight.matrix;
  const int first = weight.stacked;
  const int64_t rows = matrix[first], columns = matrix.elements(first + 1, matrix.rank());
  const int64_t tall = std::max(rows, columns), wide = std::min(rows, columns);
  Shape drawn;
  if (first > 0) drawn.push_back(matrix.elements(0, first));
  drawn.push_back(tall);
  drawn.push_back(wide);
  const DType dtype = DrawnType(weight.dtype);
  const double bound =
      std::sqrt(static_cast<double>(tall)) + std::sqrt(static_cast<double>(wide)) + kTail;
  const Expr start = DrawNormal(b, dtype, drawn, 0, 1 / bound, name);
  const Expr table = b.Constant(Coefficients(dtype));
  if (!b.status().ok()) return start;
  Expr q = b.Op("Loop", {b.Int(kLifts + kPolishes), Expr(), start},
                {{"body", StepBody(b, start, table)}});
  if (rows < columns)
    q = Transpose(q, first > 0 ? std::vector<int64_t>{0, 2, 1} : std::vector<int64_t>{1, 0});
  q = Reshape(q, std::vector<int64_t>(weight.shape.begin(), weight.shape.end()));
  return weight.dtype == dtype ? q : Cast(q, weight.dtype);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Gradient rules of reductions. Below, a reduced value is written as if
// keepdims were 1; WithAxes makes it so.
#include <cstdint>
#include <optional>

#include "autograd/rule.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

// A reduced value (y or dy) in a shape that broadcasts against x. Without axes
// and keepdims it is a scalar, which does.
Expr WithAxes(const Vjp& v, const Expr& e) {
  if (v.attr("keepdims", 1) != 0 || !v.has_x(1)) return e;
  return v.b().Op("Unsqueeze", {e, v.x(1)});
}

// Reduces e, shaped like x, over the node's axes with keepdims.
Expr ReduceLike(const Vjp& v, std::string_view op, const Expr& e) {
  Expr axes = v.has_x(1) ? v.x(1) : Expr();
  return v.b().Op(op, {e, axes},
                  {{"keepdims", 1}, {"noop_with_empty_axes", v.attr("noop_with_empty_axes", 0)}});
}

// The number of elements, or nullopt where a dimension is not known.
std::optional<double> KnownElements(const Expr& e) {
  const std::optional<Shape> shape = e.type().StaticShape();
  if (!shape) return std::nullopt;
  double elements = 1;
  for (int64_t dim : *shape) elements *= static_cast<double>(dim);
  return elements;
}

// elements(y) / elements(x), as a scalar of x's type.
Expr OneOverCount(const Vjp& v) {
  const std::optional<double> x = KnownElements(v.x(0)), y = KnownElements(v.y());
  if (x && y && *x > 0) return v.b().Scalar(*y / *x, v.x(0));
  // Sizes do not fit 16-bit floats.
  const DType wide = v.x(0).dtype() == DType::kDouble ? DType::kDouble : DType::kFloat;
  return CastLike(Cast(SizeOf(v.y()), wide) / Cast(SizeOf(v.x(0)), wide), v.x(0));
}

// y = sum(x);  dx = dy
Grads ReduceSumVjp(const Vjp& v) { return {ExpandLike(WithAxes(v, v.dy()), v.x(0))}; }

// y = sum(x) / n;  dx = dy / n
Grads ReduceMeanVjp(const Vjp& v) {
  return {ExpandLike(WithAxes(v, v.dy()) * OneOverCount(v), v.x(0))};
}

// y = max(x) or min(x);  dx = dy / (number of elements equal to y) where x = y,
// else 0: elements that tie share the gradient evenly
Grads ReduceExtremumVjp(const Vjp& v) {
  Expr hit = Equal(v.x(0), WithAxes(v, v.y()));
  Expr count = ReduceLike(v, "ReduceSum", CastLike(hit, v.x(0)));
  return {WithShapeOf(ZeroUnless(hit, WithAxes(v, v.dy()) / count), v.x(0))};
}

// y = prod(x);  dx = dy * (product of the other elements). With s = x where
// x != 0, else 1, that product is prod(s) / s if no other element is 0, else 0.
Grads ReduceProdVjp(const Vjp& v) {
  Expr is_zero = Equal(v.x(0), v.b().Scalar(0, v.x(0)));
  Expr safe = Where(is_zero, v.b().Scalar(1, v.x(0)), v.x(0));
  Expr zero = CastLike(is_zero, v.x(0));
  Expr other_zeros = ReduceLike(v, "ReduceSum", zero) - zero;
  Expr others = ReduceLike(v, "ReduceProd", safe) / safe;
  Expr none = Equal(other_zeros, v.b().Scalar(0, other_zeros));
  return {WithShapeOf(ZeroUnless(none, WithAxes(v, v.dy()) * others), v.x(0))};
}

// y = sum(|x|);  dx = dy * sign(x)
Grads ReduceL1Vjp(const Vjp& v) {
  return {WithShapeOf(WithAxes(v, v.dy()) * Sign(v.x(0)), v.x(0))};
}

// y = sqrt(sum(x^2));  dx = dy * x / y, and 0 where y = 0
Grads ReduceL2Vjp(const Vjp& v) {
  Expr y = WithAxes(v, v.y());
  Expr safe = Where(Equal(y, v.b().Scalar(0, y)), v.b().Scalar(1, y), y);
  return {WithShapeOf(v.x(0) * (WithAxes(v, v.dy()) / safe), v.x(0))};
}

// y = log(sum(x));  dx = dy / sum(x) = dy * exp(-y)
Grads ReduceLogSumVjp(const Vjp& v) {
  return {ExpandLike(WithAxes(v, v.dy() * Exp(-v.y())), v.x(0))};
}

// y = log(sum(exp(x)));  dx = dy * exp(x - y)
Grads ReduceLogSumExpVjp(const Vjp& v) {
  return {WithShapeOf(WithAxes(v, v.dy()) * Exp(v.x(0) - WithAxes(v, v.y())), v.x(0))};
}

// y = sum(x^2);  dx = 2 * x * dy
Grads ReduceSumSquareVjp(const Vjp& v) {
  return {WithShapeOf(v.x(0) * (WithAxes(v, v.dy()) * 2.0), v.x(0))};
}

// y_i = sum of x_j for j <= i;  dx_j = sum of dy_i for i >= j: the same sum from
// the other end (exclusive likewise)
Grads CumSumVjp(const Vjp& v) {
  return {v.b().Op(
      "CumSum", {v.dy(), v.x(1)},
      {{"exclusive", v.attr("exclusive", 0)}, {"reverse", v.attr("reverse", 0) != 0 ? 0 : 1}})};
}

// y_i = product of x_j for j <= i (exclusive: j < i);  dx_j = sum over i of dy_i times the
// product of the others. Up to the first zero that is the sum of dy_i * y_i over x_j; at the
// first zero, the same up to the second one with 1 in its place; behind it, 0.
Grads CumProdVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const int64_t exclusive = v.attr("exclusive", 0), reverse = v.attr("reverse", 0);
  const auto cumulate = [&](const char* op, const Expr& e, int64_t without, int64_t from_end) {
    return b.Op(op, {e, v.x(1)}, {{"exclusive", without}, {"reverse", from_end}});
  };
  Expr is_zero = Equal(v.x(0), b.Scalar(0, v.x(0)));
  Expr safe = Where(is_zero, b.Scalar(1, v.x(0)), v.x(0));
  Expr zero = Cast(is_zero, DType::kInt64);
  Expr zeros = cumulate("CumSum", zero, exclusive, reverse);
  Expr term = v.dy() * cumulate("CumProd", safe, exclusive, reverse);
  const auto sum_where = [&](int64_t count) {
    Expr wanted = ZeroUnless(Equal(zeros, b.Int(count)), term);
    return cumulate("CumSum", wanted, exclusive, reverse != 0 ? 0 : 1);
  };
  Expr first = Equal(cumulate("CumSum", zero, 1, reverse), b.Int(0));
  return {Where(is_zero, ZeroUnless(first, sum_where(1)), sum_where(0) / safe)};
}

}  // namespace

void RegisterReduceRules(RuleTable& table) {
  table.Add("ReduceSum", ReduceSumVjp);
  table.Add("ReduceMean", ReduceMeanVjp);
  table.Add("ReduceMax", ReduceExtremumVjp);
  table.Add("ReduceMin", ReduceExtremumVjp);
  table.Add("ReduceProd", ReduceProdVjp);
  table.Add("ReduceL1", ReduceL1Vjp);
  table.Add("ReduceL2", ReduceL2Vjp);
  table.Add("ReduceLogSum", ReduceLogSumVjp);
  table.Add("ReduceLogSumExp", ReduceLogSumExpVjp);
  table.Add("ReduceSumSquare", ReduceSumSquareVjp);
  table.Add("CumSum", CumSumVjp);
  table.Add("CumProd", CumProdVjp);
  table.AddZero("ArgMax");
  table.AddZero("ArgMin");
}

}  // namespace onward

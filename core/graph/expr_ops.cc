// SPDX-License-Identifier: Apache-2.0
// The operators of builder.h: each emits one node, or a few.
#include "core/graph/builder.h"
#include "core/graph/filled.h"

namespace onward {
namespace {

Expr Binary(std::string_view op, const Expr& a, const Expr& b) {
  return a.builder().Op(op, {a, b});
}
Expr Unary(std::string_view op, const Expr& x) { return x.builder().Op(op, {x}); }

Expr Reduce(std::string_view op, const Expr& x, std::vector<int64_t> axes, bool keepdims) {
  const bool noop = axes.empty();
  return x.builder().Op(op, {x, x.builder().Ints(std::move(axes))},
                        {{"keepdims", keepdims ? 1 : 0}, {"noop_with_empty_axes", noop ? 1 : 0}});
}

}  // namespace

Expr operator+(const Expr& a, const Expr& b) { return Binary("Add", a, b); }
Expr operator-(const Expr& a, const Expr& b) { return Binary("Sub", a, b); }
Expr operator*(const Expr& a, const Expr& b) { return Binary("Mul", a, b); }
Expr operator/(const Expr& a, const Expr& b) { return Binary("Div", a, b); }
Expr operator+(const Expr& a, double b) { return a + a.builder().Scalar(b, a); }
Expr operator-(const Expr& a, double b) { return a - a.builder().Scalar(b, a); }
Expr operator*(const Expr& a, double b) { return a * a.builder().Scalar(b, a); }
Expr operator/(const Expr& a, double b) { return a / a.builder().Scalar(b, a); }
Expr operator+(double a, const Expr& b) { return b.builder().Scalar(a, b) + b; }
Expr operator-(double a, const Expr& b) { return b.builder().Scalar(a, b) - b; }
Expr operator*(double a, const Expr& b) { return b.builder().Scalar(a, b) * b; }
Expr operator/(double a, const Expr& b) { return b.builder().Scalar(a, b) / b; }
Expr operator-(const Expr& a) { return Unary("Neg", a); }

Expr Abs(const Expr& x) { return Unary("Abs", x); }
Expr Cast(const Expr& x, DType to) {
  return x.builder().Op("Cast", {x}, {{"to", static_cast<int64_t>(to)}});
}
Expr CastLike(const Expr& x, const Expr& like) {
  if (like.dtype() != DType::kUndefined)
    return x.dtype() == like.dtype() ? x : Cast(x, like.dtype());
  return Binary("CastLike", x, like);
}
Expr Concat(std::vector<Expr> xs, int64_t axis) {
  GraphBuilder& b = xs.front().builder();
  return b.Op("Concat", std::move(xs), {{"axis", axis}});
}
Expr Cos(const Expr& x) { return Unary("Cos", x); }
Expr Equal(const Expr& a, const Expr& b) { return Binary("Equal", a, b); }
Expr Erf(const Expr& x) { return Unary("Erf", x); }
Expr Exp(const Expr& x) { return Unary("Exp", x); }
Expr Expand(const Expr& x, const Expr& shape) { return Binary("Expand", x, shape); }
Expr Gather(const Expr& x, const Expr& indices, int64_t axis) {
  return x.builder().Op("Gather", {x, indices}, {{"axis", axis}});
}
Expr Greater(const Expr& a, const Expr& b) { return Binary("Greater", a, b); }
Expr GreaterOrEqual(const Expr& a, const Expr& b) { return Binary("GreaterOrEqual", a, b); }
Expr Less(const Expr& a, const Expr& b) { return Binary("Less", a, b); }
Expr LessOrEqual(const Expr& a, const Expr& b) { return Binary("LessOrEqual", a, b); }
Expr Log(const Expr& x) { return Unary("Log", x); }
Expr MatMul(const Expr& a, const Expr& b) { return Binary("MatMul", a, b); }
Expr Max(const Expr& a, const Expr& b) { return Binary("Max", a, b); }
Expr Min(const Expr& a, const Expr& b) { return Binary("Min", a, b); }
Expr Not(const Expr& x) { return Unary("Not", x); }
Expr And(const Expr& a, const Expr& b) { return Binary("And", a, b); }
Expr Or(const Expr& a, const Expr& b) { return Binary("Or", a, b); }
Expr Pow(const Expr& a, const Expr& b) { return Binary("Pow", a, b); }
Expr Pow(const Expr& a, double b) { return Pow(a, a.builder().Scalar(b, a)); }
Expr ReduceSum(const Expr& x, std::vector<int64_t> axes, bool keepdims) {
  return Reduce("ReduceSum", x, std::move(axes), keepdims);
}
Expr ReduceSum(const Expr& x, const Expr& axes, bool keepdims) {
  return x.builder().Op("ReduceSum", {x, axes},
                        {{"keepdims", keepdims ? 1 : 0}, {"noop_with_empty_axes", 1}});
}
Expr ReduceSumAll(const Expr& x, bool keepdims) {
  return x.builder().Op("ReduceSum", {x}, {{"keepdims", keepdims ? 1 : 0}});
}
Expr ReduceMean(const Expr& x, std::vector<int64_t> axes, bool keepdims) {
  return Reduce("ReduceMean", x, std::move(axes), keepdims);
}
Expr Reshape(const Expr& x, std::vector<int64_t> shape) {
  return Reshape(x, x.builder().Ints(std::move(shape)));
}
Expr Reshape(const Expr& x, const Expr& shape) { return Binary("Reshape", x, shape); }
Expr ReshapeLike(const Expr& x, const Expr& like) {
  if (auto shape = like.type().StaticShape()) {
    if (x.type().StaticShape() == shape) return x;
    // allowzero: a zero in a static shape is a real zero, not "copy".
    return x.builder().Op("Reshape", {x, x.builder().Ints({shape->begin(), shape->end()})},
                          {{"allowzero", 1}});
  }
  return x.builder().Op("Reshape", {x, ShapeOf(like)}, {{"allowzero", 1}});
}
Expr ShapeOf(const Expr& x) { return Unary("Shape", x); }
Expr ShapeOf(const Expr& x, int64_t start, int64_t end) {
  return x.builder().Op("Shape", {x}, {{"start", start}, {"end", end}});
}
Expr SizeOf(const Expr& x) { return Unary("Size", x); }
Expr Sigmoid(const Expr& x) { return Unary("Sigmoid", x); }
Expr Sign(const Expr& x) { return Unary("Sign", x); }
Expr Sin(const Expr& x) { return Unary("Sin", x); }
Expr Slice(const Expr& x, const Expr& starts, const Expr& ends, const Expr& axes,
           const Expr& steps) {
  return x.builder().Op("Slice", {x, starts, ends, axes, steps});
}
Expr Sqrt(const Expr& x) { return Unary("Sqrt", x); }
Expr Squeeze(const Expr& x, std::vector<int64_t> axes) {
  return x.builder().Op("Squeeze", {x, x.builder().Ints(std::move(axes))});
}
Expr Tanh(const Expr& x) { return Unary("Tanh", x); }
Expr Transpose(const Expr& x, std::vector<int64_t> perm) {
  return x.builder().Op("Transpose", {x}, {{"perm", std::move(perm)}});
}
Expr Unsqueeze(const Expr& x, std::vector<int64_t> axes) {
  return x.builder().Op("Unsqueeze", {x, x.builder().Ints(std::move(axes))});
}
Expr Where(const Expr& condition, const Expr& a, const Expr& b) {
  return condition.builder().Op("Where", {condition, a, b});
}
Expr Widened(const Expr& x) {
  const bool narrow = IsHalf(x.dtype());
  return narrow ? Cast(x, DType::kFloat) : x;
}
Expr Filled(const Expr& shape, DType dtype, double value) {
  GraphBuilder& b = shape.builder();
  // ConstantOfShape has it from opset 20 on only.
  if (dtype == DType::kBFloat16) return Expand(b.Constant(ScalarOf(dtype, value)), shape);
  return b.Op("ConstantOfShape", {shape}, {{"value", ScalarOf(dtype, value, Shape{1})}});
}
namespace {
Expr FullLike(const Expr& x, double value) {
  Expr shape = ShapeOf(x);
  if (x.dtype() == DType::kUndefined) return Expand(x.builder().Scalar(value, x), shape);
  return Filled(shape, x.dtype(), value);
}
}  // namespace
Expr ZerosLike(const Expr& x) { return FullLike(x, 0); }
Expr OnesLike(const Expr& x) { return FullLike(x, 1); }

}  // namespace onward

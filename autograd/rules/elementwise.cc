// SPDX-License-Identifier: Apache-2.0
// Gradient rules of element-wise arithmetic. Broadcasting is the engine's
// business. Kinks take PyTorch's subgradient.
#include <cmath>
#include <numbers>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "autograd/rule.h"
#include "core/tensor/tensor.h"

namespace onward {
namespace {

// y = a + b;  da = dy, db = dy
Grads AddVjp(const Vjp& v) { return {v.dy(), v.dy()}; }

// y = a - b;  da = dy, db = -dy
Grads SubVjp(const Vjp& v) { return {v.dy(), -v.dy()}; }

// y = a * b;  da = dy * b, db = dy * a
Grads MulVjp(const Vjp& v) { return {v.dy() * v.x(1), v.dy() * v.x(0)}; }

// y = a / b;  da = dy / b, db = -dy / b * y
Grads DivVjp(const Vjp& v) {
  Expr da = v.dy() / v.x(1);
  if (!v.needs(1)) return {da};
  return {da, -(da * v.y())};
}

// y = x^p for a p written in the graph: the powers that have a cheaper form.
std::optional<Expr> PowByConstant(const Vjp& v, double p) {
  if (p == 1) return v.dy();
  if (p == 2) return v.dy() * 2.0 * v.x(0);
  if (p == 3) return v.dy() * 3.0 * v.x(0) * v.x(0);
  if (p == 0.5) return v.dy() * 0.5 / v.y();
  if (p == -1) return -(v.dy() * v.y() * v.y());
  if (p == 0) return std::nullopt;
  return v.dy() * p * Pow(v.x(0), p - 1);
}

// The number that input i is, where a Constant node or an initializer tells.
std::optional<double> ConstantNumber(const Vjp& v, int i) {
  const Tensor* t = v.b().ConstantOf(v.node().inputs[i]);
  if (t == nullptr || t->elements() != 1) return std::nullopt;
  absl::StatusOr<std::vector<double>> values = ToDoubles(*t);
  if (!values.ok()) return std::nullopt;
  return values->front();
}

// The same of a Constant node alone; an initializer may change between runs.
std::optional<double> LiteralNumber(const Vjp& v, int i) {
  if (v.b().graph().initializers.contains(v.node().inputs[i])) return std::nullopt;
  return ConstantNumber(v, i);
}

// y = x^p;  dx = dy * p * x^(p-1), and 0 where p = 0
//           dp = dy * y * log(x), and 0 where x = 0 and p >= 0; NaN where x < 0
Grads PowVjp(const Vjp& v) {
  Grads grads(2);
  if (std::optional<double> p = LiteralNumber(v, 1); p && v.needs(0)) {
    grads[0] = PowByConstant(v, *p);
  } else if (v.needs(0)) {
    Expr power = CastLike(v.x(1), v.x(0));
    Expr flat = Equal(power, v.b().Scalar(0, power));
    // x^0 stands for x^-1, so that no NaN arises there in higher derivatives.
    Expr less = Where(flat, power, power - 1.0);
    grads[0] = Where(flat, v.b().Scalar(0, v.dy()), v.dy() * power * Pow(v.x(0), less));
  }
  if (v.needs(1)) {
    // log(1) = 0 stands for log(0), likewise.
    Expr flat = And(Equal(v.x(0), v.b().Scalar(0, v.x(0))),
                    GreaterOrEqual(v.x(1), v.b().Scalar(0, v.x(1))));
    grads[1] = v.dy() * v.y() * Log(Where(flat, v.b().Scalar(1, v.x(0)), v.x(0)));
  }
  return grads;
}

// y = a - b*n with n = floor(a/b) or trunc(a/b);  da = dy, db = -dy * n
Grads ModVjp(const Vjp& v) {
  if (!v.needs(1)) return {v.dy()};
  // (a - y) / b is n up to rounding errors.
  Expr n = v.b().Op("Round", {(v.x(0) - v.y()) / v.x(1)});
  return {v.dy(), -(v.dy() * n)};
}

// y = max(a, b);  da = dy where a > b, dy / 2 where a = b, 0 where a < b; db likewise. Where one
// of them is NaN no comparison holds, and both get dy, as in PyTorch.
std::pair<Expr, Expr> MaximumGrads(const Expr& a, const Expr& b, const Expr& dy) {
  Expr zero = dy.builder().Scalar(0, dy);
  Expr share = Where(Equal(a, b), dy * 0.5, dy);
  return {Where(Less(a, b), zero, share), Where(Greater(a, b), zero, share)};
}

// y = max(x_0, ..., x_k) or min, folded from the left as a framework of binary maxima has it,
// y = max(max(x_0, x_1), x_2) ...: of three that tie the last one gets a half, the others a quarter
Grads ExtremumVjp(const Vjp& v) {
  const int last = v.inputs() - 1;
  std::vector<Expr> before = {v.x(0)};  // the extremum of the operands before the i-th one
  for (int i = 1; i < last; ++i) {
    before.push_back(v.b().Op(v.node().op_type, {before.back(), v.x(i)}));
  }
  Grads grads(v.inputs());
  Expr dy = v.dy();
  for (int i = last; i > 0; --i) {
    const Expr a = before[i - 1], b = v.x(i);
    // b is the larger one where min is a.
    std::tie(dy, grads[i]) = v.node().Is("Max") ? MaximumGrads(a, b, dy) : MaximumGrads(b, a, dy);
  }
  grads[0] = dy;
  return grads;
}

// y = sum of all x_i;  dx_i = dy
Grads SumVjp(const Vjp& v) { return Grads(v.inputs(), v.dy()); }

// y = mean of the k inputs;  dx_i = dy / k
Grads MeanVjp(const Vjp& v) {
  if (v.inputs() == 1) return {v.dy()};
  return Grads(v.inputs(), v.dy() * (1.0 / v.inputs()));
}

// y = -x;  dx = -dy
Grads NegVjp(const Vjp& v) { return {-v.dy()}; }

// y = |x|;  dx = dy * sign(x), 0 at 0
Grads AbsVjp(const Vjp& v) { return {v.dy() * Sign(v.x())}; }

// y = 1/x;  dx = -dy * y^2
Grads ReciprocalVjp(const Vjp& v) { return {-(v.dy() * v.y() * v.y())}; }

// y = sqrt(x);  dx = dy / (2y)
Grads SqrtVjp(const Vjp& v) { return {v.dy() * 0.5 / v.y()}; }

// y = exp(x);  dx = dy * y
Grads ExpVjp(const Vjp& v) { return {v.dy() * v.y()}; }

// y = log(x);  dx = dy / x
Grads LogVjp(const Vjp& v) { return {v.dy() / v.x()}; }

// y = erf(x);  dx = dy * 2/sqrt(pi) * exp(-x^2)
Grads ErfVjp(const Vjp& v) {
  return {v.dy() * (2 * std::numbers::inv_sqrtpi) * Exp(-(v.x() * v.x()))};
}

// y = sin(x);  dx = dy * cos(x)
Grads SinVjp(const Vjp& v) { return {v.dy() * Cos(v.x())}; }

// y = cos(x);  dx = -dy * sin(x)
Grads CosVjp(const Vjp& v) { return {-(v.dy() * Sin(v.x()))}; }

// y = tan(x);  dx = dy * (1 + y^2)
Grads TanVjp(const Vjp& v) { return {v.dy() * (1.0 + v.y() * v.y())}; }

// y = asin(x);  dx = dy / sqrt(1 - x^2)
Grads AsinVjp(const Vjp& v) { return {v.dy() / Sqrt(1.0 - v.x() * v.x())}; }

// y = acos(x);  dx = -dy / sqrt(1 - x^2)
Grads AcosVjp(const Vjp& v) { return {-(v.dy() / Sqrt(1.0 - v.x() * v.x()))}; }

// y = atan(x);  dx = dy / (1 + x^2)
Grads AtanVjp(const Vjp& v) { return {v.dy() / (1.0 + v.x() * v.x())}; }

// y = sinh(x);  dx = dy * cosh(x)
Grads SinhVjp(const Vjp& v) { return {v.dy() * v.b().Op("Cosh", {v.x()})}; }

// y = cosh(x);  dx = dy * sinh(x)
Grads CoshVjp(const Vjp& v) { return {v.dy() * v.b().Op("Sinh", {v.x()})}; }

// y = asinh(x);  dx = dy / sqrt(x^2 + 1)
Grads AsinhVjp(const Vjp& v) { return {v.dy() / Sqrt(v.x() * v.x() + 1.0)}; }

// y = acosh(x);  dx = dy / sqrt((x - 1)(x + 1))
Grads AcoshVjp(const Vjp& v) { return {v.dy() / Sqrt((v.x() - 1.0) * (v.x() + 1.0))}; }

// y = atanh(x);  dx = dy / (1 - x^2)
Grads AtanhVjp(const Vjp& v) { return {v.dy() / (1.0 - v.x() * v.x())}; }

// y = c ? a : b;  da = c ? dy : 0, db = c ? 0 : dy
Grads WhereVjp(const Vjp& v) {
  Expr zero = v.b().Scalar(0, v.dy());
  return {std::nullopt, Where(v.x(0), v.dy(), zero), Where(v.x(0), zero, v.dy())};
}

// Whether lo <= hi for certain. An initializer that is not trained keeps what it is.
bool BoundsAreInOrder(const Vjp& v) {
  if (!v.has_x(1) || !v.has_x(2)) return true;
  if (v.needs(1) || v.needs(2)) return false;
  const std::optional<double> low = ConstantNumber(v, 1), high = ConstantNumber(v, 2);
  return low && high && *low <= *high;
}

// y = min(max(x, lo), hi);  dx = dy where lo <= x <= hi: where y = x, if lo <= hi
//   dlo = dy where x < lo < hi, dhi = dy where x > hi or lo > hi
Grads ClipVjp(const Vjp& v) {
  Grads grads(v.inputs());
  const bool both = v.has_x(1) && v.has_x(2);
  if (!v.has_x(1) && !v.has_x(2)) {
    grads[0] = v.dy();
  } else if (v.needs(0) && !BoundsAreInOrder(v)) {
    Expr inside = And(GreaterOrEqual(v.x(0), v.x(1)), LessOrEqual(v.x(0), v.x(2)));
    grads[0] = ZeroUnless(inside, v.dy());
  } else if (v.needs(0)) {
    grads[0] = IsFloating(v.x(0).dtype())
                   ? v.b().Op("ClipGrad", {v.dy(), v.x(0), v.y()}, {}, kOnwardDomain)
                   : ZeroUnless(Equal(v.x(0), v.y()), v.dy());
  }
  if (v.has_x(1) && v.needs(1)) {
    Expr below = Less(v.x(0), v.x(1));
    grads[1] = ZeroUnless(both ? And(below, Less(v.x(1), v.x(2))) : below, v.dy());
  }
  if (v.has_x(2) && v.needs(2)) {
    Expr above = Greater(v.x(0), v.x(2));
    grads[2] = ZeroUnless(both ? Or(above, Greater(v.x(1), v.x(2))) : above, v.dy());
  }
  return grads;
}

// y = x, perhaps in another floating-point type;  dx = dy in x's type (Cast,
// CastLike, Identity)
Grads SameVjp(const Vjp& v) { return {v.dy()}; }

}  // namespace

void RegisterElementwiseRules(RuleTable& table) {
  table.Add("Add", AddVjp);
  table.Add("Sub", SubVjp);
  table.Add("Mul", MulVjp);
  table.Add("Div", DivVjp);
  table.Add("Pow", PowVjp);
  table.Add("Mod", ModVjp);
  table.Add("Max", ExtremumVjp);
  table.Add("Min", ExtremumVjp);
  table.Add("Sum", SumVjp);
  table.Add("Mean", MeanVjp);
  table.Add("Neg", NegVjp);
  table.Add("Abs", AbsVjp);
  table.Add("Reciprocal", ReciprocalVjp);
  table.Add("Sqrt", SqrtVjp);
  table.Add("Exp", ExpVjp);
  table.Add("Log", LogVjp);
  table.Add("Erf", ErfVjp);
  table.Add("Sin", SinVjp);
  table.Add("Cos", CosVjp);
  table.Add("Tan", TanVjp);
  table.Add("Asin", AsinVjp);
  table.Add("Acos", AcosVjp);
  table.Add("Atan", AtanVjp);
  table.Add("Sinh", SinhVjp);
  table.Add("Cosh", CoshVjp);
  table.Add("Asinh", AsinhVjp);
  table.Add("Acosh", AcoshVjp);
  table.Add("Atanh", AtanhVjp);
  table.Add("Where", WhereVjp);
  table.Add("Clip", ClipVjp);
  table.Add("Cast", SameVjp);
  table.Add("CastLike", SameVjp);
  table.Add("Identity", SameVjp);
  for (const char* op : {"Floor",      "Ceil",        "Round",
                         "Sign",       "IsNaN",       "IsInf",
                         "Equal",      "Greater",     "GreaterOrEqual",
                         "Less",       "LessOrEqual", "And",
                         "Or",         "Xor",         "Not",
                         "BitShift",   "BitwiseAnd",  "BitwiseOr",
                         "BitwiseXor", "BitwiseNot",  "BitCast"}) {
    table.AddZero(op);
  }
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Gradient rules of element-wise arithmetic. Broadcasting is the engine's
// business. Kinks take PyTorch's subgradient.
#include <cmath>
#include <numbers>
#include <optional>

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

// A number that a Constant node gives; an initializer may change between runs.
std::optional<double> LiteralNumber(const Vjp& v, int i) {
  const Tensor* t = v.b().ConstantOf(v.node().inputs[i]);
  if (t == nullptr || t->elements() != 1) return std::nullopt;
  if (v.b().graph().initializers.contains(v.node().inputs[i])) return std::nullopt;
  absl::StatusOr<std::vector<double>> values = ToDoubles(*t);
  if (!values.ok()) return std::nullopt;
  return values->front();
}

// y = x^p;  dx = dy * p * x^(p-1), and 0 where p = 0
//           dp = dy * y * log(x) where x > 0, else 0
Grads PowVjp(const Vjp& v) {
  Grads grads(2);
  if (std::optional<double> p = LiteralNumber(v, 1); p && v.needs(0)) {
    grads[0] = PowByConstant(v, *p);
  } else if (v.needs(0)) {
    // 0 * x^1 stands for 0 * x^-1, which is NaN at x = 0.
    Expr p_like_x = CastLike(v.x(1), v.x(0));
    Expr one = v.b().Scalar(1, p_like_x);
    Expr less = Where(Equal(p_like_x, v.b().Scalar(0, p_like_x)), one, p_like_x - one);
    grads[0] = v.dy() * p_like_x * Pow(v.x(0), less);
  }
  if (v.needs(1)) {
    // log(1) = 0 stands for the points where the logarithm does not exist, so
    // that no NaN arises, in higher derivatives either.
    Expr positive = Greater(v.x(0), v.b().Scalar(0, v.x(0)));
    Expr safe = Where(positive, v.x(0), v.b().Scalar(1, v.x(0)));
    grads[1] = v.dy() * v.y() * Log(safe);
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

// y = max(x_0, ..., x_k) or min;  dx_i = dy / (number of x_j equal to y) where
// x_i = y, else 0: operands that tie share the gradient evenly
Grads ExtremumVjp(const Vjp& v) {
  if (v.inputs() == 1) return {v.dy()};
  std::vector<Expr> hits;
  Expr count;
  for (int i = 0; i < v.inputs(); ++i) {
    hits.push_back(Equal(v.x(i), v.y()));
    Expr one = CastLike(hits[i], v.dy());
    count = i == 0 ? one : count + one;
  }
  Expr share = v.dy() / count;
  Grads grads;
  for (const Expr& hit : hits) grads.push_back(ZeroUnless(hit, share));
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

// y = min(max(x, lo), hi);  dx = dy where lo <= x <= hi, that is where y = x
//   dlo = dy where x < lo < hi, dhi = dy where x > hi or lo > hi
Grads ClipVjp(const Vjp& v) {
  Grads grads(v.inputs());
  if (v.needs(0)) {
    grads[0] = IsFloating(v.x(0).dtype())
                   ? v.b().Op("ClipGrad", {v.dy(), v.x(0), v.y()}, {}, kOnwardDomain)
                   : ZeroUnless(Equal(v.x(0), v.y()), v.dy());
  }
  const bool both = v.has_x(1) && v.has_x(2);
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

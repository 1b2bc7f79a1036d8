// SPDX-License-Identifier: Apache-2.0
// Truncated normal draws as nn.init.trunc_normal_ makes them: the inverse of the distribution's
// function at a uniform draw,
//
//   x = mean + std sqrt(2) erfinv(u),  u uniform between 2 P(low) - 1 and 2 P(high) - 1.
//
// ONNX has no inverse of Erf. The two polynomials are Giles' ("Approximating the erfinv
// function", 2010), with a relative error below 4e-7.
#include <cmath>

#include "absl/types/span.h"
#include "training_info/initializers/initializer.h"

namespace onward {
namespace {

constexpr double kMiddle[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                              -4.39150654e-06, 0.00021858087,  -0.00125372503,
                              -0.00417768164,  0.246640727,    1.50140941};
constexpr double kTails[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                             -0.00367342844,  0.00573950773,  -0.0076224613,
                             0.00943887047,   1.00167406,     2.83297682};
constexpr double kWhereTailsBegin = 5;
// Of u next to 1, where the logarithm has no end.
constexpr double kMostW = 32;

Expr Polynomial(const Expr& x, absl::Span<const double> coefficients) {
  Expr sum = x * coefficients[0] + coefficients[1];
  for (size_t i = 2; i < coefficients.size(); ++i) sum = sum * x + coefficients[i];
  return sum;
}

// With w = -log(1 - x^2).
Expr ErfInv(const Expr& x) {
  GraphBuilder& b = x.builder();
  const Expr w = Min(-Log((1 - x) * (1 + x)), b.Scalar(kMostW, x));
  const Expr middle = Polynomial(w - 2.5, kMiddle);
  const Expr tails = Polynomial(Sqrt(w) - 3, kTails);
  return Where(Less(w, b.Scalar(kWhereTailsBegin, x)), middle, tails) * x;
}

// 2 P(z) - 1.
double Erf2(double z) { return std::erf(z / std::sqrt(2.0)); }

}  // namespace

Expr DrawTruncatedNormal(GraphBuilder& b, DType dtype, const Shape& shape, double mean,
                         double deviation, double low, double high, const std::string& name) {
  const DType wide = DrawnType(dtype);
  const Expr u = DrawUniform(b, wide, shape, Erf2((low - mean) / deviation),
                             Erf2((high - mean) / deviation), name);
  const Expr x = ErfInv(u) * (deviation * std::sqrt(2.0)) + mean;
  const Expr clipped = Max(Min(x, b.Scalar(high, x)), b.Scalar(low, x));
  return dtype == wide ? clipped : Cast(clipped, dtype);
}

}  // namespace onward

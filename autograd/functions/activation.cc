// SPDX-License-Identifier: Apache-2.0
// Body of GeluGrad.
#include <numbers>

#include "autograd/functions.h"

namespace onward {
namespace {

// y = x*P(x) with P(x) = (1 + erf(x/sqrt 2)) / 2
// dx = dy * (P(x) + x * exp(-x^2/2) / sqrt(2 pi))
Expr ExactGeluGrad(const Expr& dy, const Expr& x) {
  constexpr double kInvSqrt2Pi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  Expr p = (Erf(x * (1 / std::numbers::sqrt2)) + 1.0) * 0.5;
  Expr density = Exp(x * x * -0.5) * kInvSqrt2Pi;
  return dy * (p + x * density);
}

// y = x/2 * (1 + t) with t = tanh(u), u = c*(x + k*x^3), c = sqrt(2/pi)
// dx = dy * ((1 + t)/2 + x/2 * (1 - t^2) * c*(1 + 3k*x^2))
Expr TanhGeluGrad(const Expr& dy, const Expr& x) {
  constexpr double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  constexpr double k = 0.044715;
  Expr x2 = x * x;
  Expr t = Tanh(x * (x2 * (c * k) + c));
  Expr slope = x * (1.0 - t * t) * (x2 * (3 * c * k) + c);
  return dy * ((t + 1.0 + slope) * 0.5);
}

std::vector<Expr> GeluGrad(GraphBuilder&, const Node& call, const std::vector<Expr>& in) {
  const Expr x = Widened(in[1]), dy = CastLike(in[0], x);
  const bool tanh = call.String("approximate", "none") == "tanh";
  return {CastLike(tanh ? TanhGeluGrad(dy, x) : ExactGeluGrad(dy, x), in[1])};
}

}  // namespace

void RegisterActivationFunctions(FunctionLibrary& library) {
  library.Add("GeluGrad", {.body = GeluGrad,
                           .output_like = {1},
                           .shape_only = {},
                           .attributes = {"approximate"},
                           .required = 2,
                           .operands = "T"});
}

}  // namespace onward

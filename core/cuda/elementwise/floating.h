// SPDX-License-Identifier: Apache-2.0
// The operators on float and double, for device code. Comparisons are written so that NaN passes
// through; formulas are those of the CPU's kernels.
#ifndef ONWARD_CORE_CUDA_ELEMENTWISE_FLOATING_H_
#define ONWARD_CORE_CUDA_ELEMENTWISE_FLOATING_H_

#include <cmath>

#include "core/cuda/elementwise/opcode.h"
#include "core/cuda/launch.h"

namespace onward::cuda {

template <typename T>
__device__ T ClipToUnit(T x) {
  x = x < T(0) ? T(0) : x;
  return x > T(1) ? T(1) : x;
}

template <typename T>
__device__ T Clamp(T x, T limit) {
  x = x > limit ? limit : x;
  return x < -limit ? -limit : x;
}

template <typename T>
__device__ T SigmoidOf(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

// NaN has no sign: it stays.
template <typename T>
__device__ T SignOf(T x) {
  return x == T(0) ? T(0) : x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
}

// pow(-0, 0.5) is +0 and pow(-infinity, 0.5) is infinity, unlike sqrt.
template <typename T>
__device__ T RootOf(T x) {
  const T infinity = T(INFINITY);
  return x == -infinity ? infinity : std::sqrt(x + T(0));
}

template <typename T>
__device__ T PowerOf(T x, T exponent) {
  if (exponent == T(2)) return x * x;
  if (exponent == T(0.5)) return RootOf(x);
  if (exponent == T(-0.5)) return T(1) / RootOf(x);
  if (exponent == T(-1)) return T(1) / x;
  if (exponent == T(3)) return x * x * x;
  if (exponent == T(1)) return x;
  return std::pow(x, exponent);
}

// The remainder of the quotient rounded down: it has the sign of b.
template <typename T>
__device__ T FlooredModOf(T a, T b) {
  const T r = std::fmod(a, b);
  if (r == T(0)) return std::copysign(T(0), b);
  return (r < T(0)) != (b < T(0)) ? r + b : r;
}

// The normal distribution below x.
template <typename T>
__device__ T NormalBelow(T x) {
  return T(0.5) * std::erfc(x * T(-0.70710678118654752440));
}

// dy * (Phi(x) + x * exp(-x^2/2) / sqrt(2 pi)). Where the bell is 0, so is the product, for
// infinite x too.
template <typename T>
__device__ T GeluGradOf(T dy, T x) {
  const T density = T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);
  return dy * (NormalBelow(x) + Clamp(x, T(40)) * density);
}

// The tanh form is x * sigmoid(2u), 2u = slope * (x + cube * x^3).
template <typename T>
struct TanhForm {
  static constexpr T kSlope = T(1.59576912160573071176);
  static constexpr T kSlopeCube = T(1.59576912160573071176 * 0.044715);
};

template <typename T>
__device__ T GeluTanhOf(T x) {
  using Form = TanhForm<T>;
  return x / (T(1) + std::exp(x * (x * x * -Form::kSlopeCube - Form::kSlope)));
}

// dx = dy * (s + x * s * (1 - s) * (2u)'), s = sigmoid(2u); it is 0 or 1 beyond 25.
template <typename T>
__device__ T GeluTanhGradOf(T dy, T x) {
  using Form = TanhForm<T>;
  x = Clamp(x, sizeof(T) == 4 ? T(10) : T(25));
  const T square = x * x;
  const T e = std::exp(-std::fabs(x * (square * Form::kSlopeCube + Form::kSlope)));
  const T r = T(1) / (T(1) + e);
  const T s = (x < T(0) ? e : T(1)) * r;
  return dy * (s + x * (e * r * r) * (square * (T(3) * Form::kSlopeCube) + Form::kSlope));
}

// tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2) for e = exp(x); it is 1 from x = 20 on.
template <typename T>
__device__ T MishOf(T x) {
  const T e = std::exp(x > T(20) ? T(20) : x);
  const T n = e * (e + T(2));
  return x * (n / (n + T(2)));
}

template <typename T>
__device__ T ShrinkOf(T x, T bias, T lambd) {
  if (x < -lambd) return x + bias;
  if (x > lambd) return x - bias;
  return x != x ? x : T(0);
}

template <typename T>
__device__ T EvaluateUnary(Op op, T x, T p, T q) {
  switch (op) {
    case Op::kNeg: return -x;
    case Op::kAbs: return std::fabs(x);
    case Op::kSign: return SignOf(x);
    case Op::kReciprocal: return T(1) / x;
    case Op::kSqrt: return std::sqrt(x);
    case Op::kFloor: return std::floor(x);
    case Op::kCeil: return std::ceil(x);
    case Op::kRound: return std::nearbyint(x);
    case Op::kExp: return std::exp(x);
    case Op::kLog: return std::log(x);
    case Op::kErf: return std::erf(x);
    case Op::kSin: return std::sin(x);
    case Op::kCos: return std::cos(x);
    case Op::kTan: return std::tan(x);
    case Op::kAsin: return std::asin(x);
    case Op::kAcos: return std::acos(x);
    case Op::kAtan: return std::atan(x);
    case Op::kSinh: return std::sinh(x);
    case Op::kCosh: return std::cosh(x);
    case Op::kTanh: return std::tanh(x);
    case Op::kAsinh: return std::asinh(x);
    case Op::kAcosh: return std::acosh(x);
    case Op::kAtanh: return std::atanh(x);
    case Op::kNot: return T(x == T(0));
    case Op::kIsNaN: return T(x != x);
    case Op::kIsInf: return T((p != T(0) && x == -T(INFINITY)) || (q != T(0) && x == T(INFINITY)));
    case Op::kRelu: return T(0) > x ? T(0) : x;
    case Op::kLeakyRelu: return x < T(0) ? p * x : x;
    case Op::kThresholdedRelu: return x <= p ? T(0) : x;
    case Op::kElu: return x < T(0) ? p * std::expm1(x) : x;
    case Op::kSelu: return q * (x < T(0) ? p * std::expm1(x) : x);
    case Op::kCelu: return x < T(0) ? p * std::expm1(x / p) : x;
    case Op::kSigmoid: return SigmoidOf(x);
    case Op::kHardSigmoid: return ClipToUnit(p * x + q);
    case Op::kHardSwish: return x * ClipToUnit(x / T(6) + T(0.5));
    case Op::kSoftplus: return (T(0) > x ? T(0) : x) + std::log1p(std::exp(-std::fabs(x)));
    case Op::kSoftsign: return x / (T(1) + std::fabs(x));
    case Op::kSwish: return x * SigmoidOf(p * x);
    case Op::kMish: return MishOf(x);
    case Op::kGelu: return x * NormalBelow(x);
    case Op::kGeluTanh: return GeluTanhOf(x);
    case Op::kShrink: return ShrinkOf(x, p, q);
    case Op::kDivideBy: return x / p;
    default: return x;
  }
}

// Comparisons and logic give 0 or 1.
template <typename T>
__device__ T Evaluate(Op op, T a, T b, T c, T p, T q) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return a / b;
    case Op::kTruncatedMod: return std::fmod(a, b);
    case Op::kFlooredMod: return FlooredModOf(a, b);
    case Op::kPow: return PowerOf(a, b);
    case Op::kMin: return a != a ? a : a < b ? a : b;
    case Op::kMax: return a != a ? a : a > b ? a : b;
    case Op::kPRelu: return a < T(0) ? b * a : a;
    case Op::kEqual: return T(a == b);
    case Op::kGreater: return T(a > b);
    case Op::kGreaterOrEqual: return T(a >= b);
    case Op::kLess: return T(a < b);
    case Op::kLessOrEqual: return T(a <= b);
    case Op::kAnd: return T(a != T(0) && b != T(0));
    case Op::kOr: return T(a != T(0) || b != T(0));
    case Op::kXor: return T((a != T(0)) != (b != T(0)));
    case Op::kReluGrad: return b > T(0) ? a : T(0);
    case Op::kGeluGrad: return GeluGradOf(a, b);
    case Op::kGeluTanhGrad: return GeluTanhGradOf(a, b);
    case Op::kWhere: return a != T(0) ? b : c;
    case Op::kClipGrad: return b == c ? a : T(0);
    default: return EvaluateUnary(op, a, p, q);
  }
}

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_ELEMENTWISE_FLOATING_H_

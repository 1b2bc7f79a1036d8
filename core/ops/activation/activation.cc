// SPDX-License-Identifier: Apache-2.0
// Activations, and the gradients of Relu and Gelu. Comparisons are written so that NaN
// passes through rather than being clipped away: a diverged loss must show.
#include <cmath>
#include <numbers>
#include <string>
#include <type_traits>

#include "core/base/status.h"
#include "core/ops/cpu/float_math.h"
#include "core/ops/cpu/register.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/cpu/vector_math.h"
#include "core/ops/elementwise/elementwise.h"

namespace onward {
namespace {

using vector_math::Exp;
using vector_math::Expm1;
using vector_math::LogOnePlus;
using vector_math::PowerOfTwo;
using vector_math::Sigmoid;
using vector_math::Split;
using vector_math::Tanh;

template <typename T>
T ClipToUnit(T x) {
  x = x < T(0) ? T(0) : x;
  return x > T(1) ? T(1) : x;
}

struct ReluOp {
  template <typename T>
  T operator()(T x) const {
    return T(0) > x ? T(0) : x;
  }
};

// dx = dy where y > 0, else 0
struct ReluGradOp {
  template <typename T>
  T operator()(T dy, T y) const {
    return y > T(0) ? dy : T(0);
  }
};

struct LeakyReluOp {
  float alpha;
  explicit LeakyReluOp(const Node& node) : alpha(node.Float("alpha", 0.01f)) {}
  template <typename T>
  T operator()(T x) const {
    const T negative = T(alpha) * x;
    return x < T(0) ? negative : x;
  }
};

struct ThresholdedReluOp {
  float alpha;
  explicit ThresholdedReluOp(const Node& node) : alpha(node.Float("alpha", 1.0f)) {}
  template <typename T>
  T operator()(T x) const {
    return x <= T(alpha) ? T(0) : x;
  }
};

struct EluOp {
  float alpha;
  explicit EluOp(const Node& node) : alpha(node.Float("alpha", 1.0f)) {}
  template <typename T>
  T operator()(T x) const {
    const T negative = T(alpha) * Expm1(x);
    return x < T(0) ? negative : x;
  }
};

struct SeluOp {
  float alpha, gamma;
  explicit SeluOp(const Node& node)
      : alpha(node.Float("alpha", 1.67326319217681884765625f)),
        gamma(node.Float("gamma", 1.05070102214813232421875f)) {}
  template <typename T>
  T operator()(T x) const {
    const T negative = T(alpha) * Expm1(x);
    return T(gamma) * (x < T(0) ? negative : x);
  }
};

struct CeluOp {
  float alpha;
  explicit CeluOp(const Node& node) : alpha(node.Float("alpha", 1.0f)) {}
  template <typename T>
  T operator()(T x) const {
    const T negative = T(alpha) * Expm1(x / T(alpha));
    return x < T(0) ? negative : x;
  }
};

struct SigmoidOp {
  template <typename T>
  T operator()(T x) const {
    return Sigmoid(x);
  }
  static void Run(const float* x, float* y, int64_t n) { FloatMathHere().sigmoid(x, y, n); }
};

struct TanhOp {
  template <typename T>
  T operator()(T x) const {
    return Tanh(x);
  }
  static void Run(const float* x, float* y, int64_t n) { FloatMathHere().tanh(x, y, n); }
};

struct HardSigmoidOp {
  float alpha, beta;
  explicit HardSigmoidOp(const Node& node)
      : alpha(node.Float("alpha", 0.2f)), beta(node.Float("beta", 0.5f)) {}
  template <typename T>
  T operator()(T x) const {
    return ClipToUnit(T(alpha) * x + T(beta));
  }
};

struct HardSwishOp {
  template <typename T>
  T operator()(T x) const {
    return x * ClipToUnit(x / T(6) + T(0.5));
  }
};

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
struct SoftplusOp {
  template <typename T>
  T operator()(T x) const {
    return (T(0) > x ? T(0) : x) + LogOnePlus(Exp(-std::fabs(x)));
  }
};

struct SoftsignOp {
  template <typename T>
  T operator()(T x) const {
    return x / (T(1) + std::fabs(x));
  }
};

struct SwishOp {
  float alpha;
  explicit SwishOp(const Node& node) : alpha(node.Float("alpha", 1.0f)) {}
  template <typename T>
  T operator()(T x) const {
    return x * Sigmoid(T(alpha) * x);
  }
};

// tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2) for e = exp(x); it is 1 in
// double from x = 20 on.
struct MishOp {
  template <typename T>
  T operator()(T x) const {
    const T e = Exp(x > T(20) ? T(20) : x);
    const T n = e * (e + T(2));
    return x * (n / (n + T(2)));
  }
};

// x held within +-limit; NaN stays.
template <typename T>
T Clamp(T x, T limit) {
  x = x > limit ? limit : x;
  return x < -limit ? -limit : x;
}

// exp(x) for -87.3 <= x <= 0, where the power of two is a normal float.
inline float ExpOfNegative(float x) {
  const auto [tail, n] = Split(x);
  const float power = PowerOfTwo(n);
  return power * tail + power;
}
inline double ExpOfNegative(double x) { return std::exp(x); }

constexpr double kInvSqrt2Pi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;

// The normal distribution at t = |x|: Phi(-t) = bell * ratio, bell = exp(-t^2/2).
// So one exponential serves Phi and its derivative, and small probabilities keep
// their relative precision.
struct NormalTail {
  float t, bell, ratio;
};

// From here on Phi(-t) is 0 beside any x.
constexpr float kNormalEnd = 13.0f;

// The ratio is a minimax fraction of polynomials in t, within 5e-9 of the value for
// t <= 13.2; all terms are positive, so rounding adds little to that.
inline NormalTail NormalTailOf(float x) {
  float t = std::fabs(x);
  t = t > kNormalEnd ? kNormalEnd : t;
  float p = 4.01165812e-3f;
  p = p * t + 3.9926292e-2f;
  p = p * t + 0.181134318f;
  p = p * t + 0.435452206f;
  p = p * t + 0.5f;
  float q = 1.00555902e-2f;
  q = q * t + 0.100087842f;
  q = q * t + 0.463925245f;
  q = q * t + 1.19376579f;
  q = q * t + 1.66878933f;
  q = q * t + 1.0f;
  return {t, ExpOfNegative(-0.5f * t * t), p / q};
}

inline double NormalBelow(double x) { return 0.5 * std::erfc(x * (-std::numbers::sqrt2 / 2)); }

// y = x * Phi(x)
struct GeluOp {
  float operator()(float x) const {
    const NormalTail tail = NormalTailOf(x);
    const float beyond = tail.bell * tail.ratio;
    const float below = x < 0.0f ? beyond : 1.0f - beyond;
    return x * (x < -kNormalEnd ? 0.0f : below);
  }
  double operator()(double x) const { return x * NormalBelow(x); }
};

// dx = dy * (Phi(x) + x * exp(-x^2/2) / sqrt(2 pi)); the factor at -x is 1 less
// that at x.
struct GeluGradOp {
  float operator()(float dy, float x) const {
    const NormalTail tail = NormalTailOf(x);
    const float beyond = tail.bell * (tail.ratio - tail.t * static_cast<float>(kInvSqrt2Pi));
    return dy * (x < 0.0f ? beyond : 1.0f - beyond);
  }
  double operator()(double dy, double x) const {
    // Where the bell is 0, so is the product, for infinite x too.
    return dy * (NormalBelow(x) + Clamp(x, 40.0) * kInvSqrt2Pi * std::exp(-0.5 * x * x));
  }
};

// The tanh form is x * sigmoid(2u): (1 + tanh u) / 2 = sigmoid(2u), with
// 2u = kSlope * (x + kCube * x^3).
constexpr double kSlope = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kCube = 0.044715;

struct GeluTanhOp {
  template <typename T>
  T operator()(T x) const {
    return x / (T(1) + Exp(x * (x * x * T(-kSlope * kCube) - T(kSlope))));
  }
};

// dx = dy * (s + x * s * (1 - s) * (2u)'), s = sigmoid(2u)
struct GeluTanhGradOp {
  template <typename T>
  T operator()(T dy, T x) const {
    x = Clamp(x, std::is_same_v<T, float> ? T(10) : T(25));  // s is 0 or 1 from there on
    const T square = x * x;
    const T e = ExpOfNegative(-std::fabs(x * (square * T(kSlope * kCube) + T(kSlope))));
    const T r = T(1) / (T(1) + e);
    const T s = (x < T(0) ? e : T(1)) * r;
    return dy * (s + x * (e * r * r) * (square * T(3 * kSlope * kCube) + T(kSlope)));
  }
};

absl::StatusOr<bool> IsTanhGelu(const Node& node) {
  const std::string mode = node.String("approximate", "none");
  if (mode != "none" && mode != "tanh") {
    return NodeError(node, "approximate must be 'none' or 'tanh'");
  }
  return mode == "tanh";
}

absl::StatusOr<Kernel> MakeGelu(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(const bool tanh, IsTanhGelu(request.node));
  return tanh ? MakeUnary<GeluTanhOp, FloatingTypes>(request, kHeavyGrain)
              : MakeUnary<GeluOp, FloatingTypes>(request, kHeavyGrain);
}

absl::StatusOr<Kernel> MakeGeluGrad(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(const bool tanh, IsTanhGelu(request.node));
  return tanh ? MakeBinary<GeluTanhGradOp, FloatingTypes>(request, kHeavyGrain)
              : MakeBinary<GeluGradOp, FloatingTypes>(request, kHeavyGrain);
}

struct ShrinkOp {
  float bias, lambd;
  explicit ShrinkOp(const Node& node)
      : bias(node.Float("bias", 0.0f)), lambd(node.Float("lambd", 0.5f)) {}
  template <typename T>
  T operator()(T x) const {
    using Real = std::conditional_t<std::is_integral_v<T>, double, T>;
    const Real real = static_cast<Real>(x);
    const Real inside = real != real ? real : Real(0);
    const Real shrunk = real > Real(lambd) ? real - Real(bias) : inside;
    return Convert<T>(real < Real(-lambd) ? real + Real(bias) : shrunk);
  }
};

}  // namespace

void RegisterActivationKernels(KernelTable& table) {
  table.Add("Relu", Unary<ReluOp, SignedTypes>(6));
  table.Add("ReluGrad", Binary<ReluGradOp, FloatingTypes>(1), kOnwardDomain);
  table.Add("LeakyRelu", Unary<LeakyReluOp, FloatingTypes>(6));
  table.Add("ThresholdedRelu", Unary<ThresholdedReluOp, FloatingTypes>(10));
  table.Add("Elu", Unary<EluOp, FloatingTypes>(6, kHeavyGrain));
  table.Add("Selu", Unary<SeluOp, FloatingTypes>(6, kHeavyGrain));
  table.Add("Celu", Unary<CeluOp, FloatingTypes>(12, kHeavyGrain));
  table.Add("Sigmoid", Unary<SigmoidOp, FloatingTypes>(6, kHeavyGrain));
  table.Add("Tanh", Unary<TanhOp, FloatingTypes>(6, kHeavyGrain));
  table.Add("HardSigmoid", Unary<HardSigmoidOp, FloatingTypes>(6));
  table.Add("HardSwish", Unary<HardSwishOp, FloatingTypes>(14));
  table.Add("Softplus", Unary<SoftplusOp, FloatingTypes>(1, kHeavyGrain));
  table.Add("Softsign", Unary<SoftsignOp, FloatingTypes>(1));
  table.Add("Swish", Unary<SwishOp, FloatingTypes>(24, kHeavyGrain));
  table.Add("Mish", Unary<MishOp, FloatingTypes>(18, kHeavyGrain));
  table.Add("Gelu", Entry<FloatingTypes>(20, MakeGelu, LikeInput(0)));
  table.Add("GeluGrad", Entry<FloatingTypes>(1, MakeGeluGrad), kOnwardDomain);
  table.Add("Shrink", Unary<ShrinkOp, NumericTypes>(9));
}

}  // namespace onward

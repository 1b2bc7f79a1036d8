// SPDX-License-Identifier: Apache-2.0
// Activations, and the gradient of Relu. Comparisons are written so that NaN
// passes through rather than being clipped away: a diverged loss must show.
#include <cmath>
#include <string>
#include <type_traits>

#include "core/ops/elementwise.h"
#include "core/ops/register.h"
#include "core/ops/scalar_math.h"
#include "core/ops/vector_math.h"

namespace onward {
namespace {

using vector_math::Erf;
using vector_math::Exp;
using vector_math::Expm1;
using vector_math::LogOnePlus;
using vector_math::Sigmoid;
using vector_math::Tanh;

template <typename T>
T ClipToUnit(T x) {
  x = x < T(0) ? T(0) : x;
  return x > T(1) ? T(1) : x;
}

struct ReluOp {
  template <typename T>
  T operator()(T x) const { return T(0) > x ? T(0) : x; }
};

// dx = dy where y > 0, else 0
struct ReluGradOp {
  template <typename T>
  T operator()(T dy, T y) const { return y > T(0) ? dy : T(0); }
};

struct LeakyReluOp {
  float alpha;
  explicit LeakyReluOp(const Node& node) : alpha(node.Float("alpha", 0.01f)) {}
  template <typename T>
  T operator()(T x) const { return x < T(0) ? T(alpha) * x : x; }
};

struct ThresholdedReluOp {
  float alpha;
  explicit ThresholdedReluOp(const Node& node) : alpha(node.Float("alpha", 1.0f)) {}
  template <typename T>
  T operator()(T x) const { return x <= T(alpha) ? T(0) : x; }
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
  T operator()(T x) const { return Sigmoid(x); }
};

struct TanhOp {
  template <typename T>
  T operator()(T x) const { return Tanh(x); }
};

struct HardSigmoidOp {
  float alpha, beta;
  explicit HardSigmoidOp(const Node& node)
      : alpha(node.Float("alpha", 0.2f)), beta(node.Float("beta", 0.5f)) {}
  template <typename T>
  T operator()(T x) const { return ClipToUnit(T(alpha) * x + T(beta)); }
};

struct HardSwishOp {
  template <typename T>
  T operator()(T x) const { return x * ClipToUnit(x / T(6) + T(0.5)); }
};

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
struct SoftplusOp {
  template <typename T>
  T operator()(T x) const { return (T(0) > x ? T(0) : x) + LogOnePlus(Exp(-std::fabs(x))); }
};

struct SoftsignOp {
  template <typename T>
  T operator()(T x) const { return x / (T(1) + std::fabs(x)); }
};

struct SwishOp {
  float alpha;
  explicit SwishOp(const Node& node) : alpha(node.Float("alpha", 1.0f)) {}
  template <typename T>
  T operator()(T x) const { return x * Sigmoid(T(alpha) * x); }
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

// x * Phi(x), the normal distribution function.
struct GeluErfOp {
  template <typename T>
  T operator()(T x) const {
    return T(0.5) * x * (T(1) + Erf(x * T(0.70710678118654752440)));
  }
};

struct GeluTanhOp {
  template <typename T>
  T operator()(T x) const {
    constexpr T kScale = T(0.79788456080286535588);  // sqrt(2 / pi)
    return T(0.5) * x * (T(1) + Tanh(kScale * (x + T(0.044715) * x * x * x)));
  }
};

absl::StatusOr<Kernel> MakeGelu(const KernelRequest& request) {
  const std::string mode = request.node.String("approximate", "none");
  if (mode == "none") return MakeUnary<GeluErfOp, FloatingTypes>(request, kHeavyGrain);
  if (mode == "tanh") return MakeUnary<GeluTanhOp, FloatingTypes>(request, kHeavyGrain);
  return NodeError(request.node, "approximate must be 'none' or 'tanh'");
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
  table.Add("Gelu", Entry<FloatingTypes>(20, MakeGelu));
  table.Add("Shrink", Unary<ShrinkOp, NumericTypes>(9));
}

}  // namespace onward

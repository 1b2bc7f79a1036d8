// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rnn/rnn_activation.h"

#include <cmath>

#include "core/ops/cpu/vector_math.h"

namespace onward {
namespace {

using vector_math::Exp;
using vector_math::Expm1;
using vector_math::LogOnePlus;
using Kind = RnnActivation::Kind;

// Sigmoid and tanh take a good part of a cell's time: these need about half that
// of vector_math's, which also get subnormal results right.

// 1 / (1 + e^-x), relative error below 3 ulp. Beyond the limits e^-x would
// overflow, or vanishes beside 1.
inline float Sigmoid(float x) {
  float y = -x;
  y = y > 87.0f ? 87.0f : y;
  y = y < -87.0f ? -87.0f : y;
  const auto [tail, n] = vector_math::Split(y);
  return 1.0f / (1.0f + (1.0f + tail) * vector_math::PowerOfTwo(n));
}
inline double Sigmoid(double x) { return vector_math::Sigmoid(x); }

// A rational minimax fit, odd over even, error below 5 ulp; beyond the limits the
// result rounds to 1.
inline float Tanh(float x) {
  x = x > 7.90531111f ? 7.90531111f : x;
  x = x < -7.90531111f ? -7.90531111f : x;
  const float s = x * x;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return x * p / q;
}
inline double Tanh(double x) { return vector_math::Tanh(x); }

// Value gives f(x), Slope f'(x) from x and y = f(x).
struct ReluFn {
  template <typename T>
  static T Value(T x, T, T) {
    return T(0) > x ? T(0) : x;
  }
  template <typename T>
  static T Slope(T, T y, T, T) {
    return y > T(0) ? T(1) : T(0);
  }
};

struct TanhFn {
  template <typename T>
  static T Value(T x, T, T) {
    return Tanh(x);
  }
  template <typename T>
  static T Slope(T, T y, T, T) {
    return T(1) - y * y;
  }
};

struct SigmoidFn {
  template <typename T>
  static T Value(T x, T, T) {
    return Sigmoid(x);
  }
  template <typename T>
  static T Slope(T, T y, T, T) {
    return y * (T(1) - y);
  }
};

struct AffineFn {
  template <typename T>
  static T Value(T x, T alpha, T beta) {
    return alpha * x + beta;
  }
  template <typename T>
  static T Slope(T, T, T alpha, T) {
    return alpha;
  }
};

struct LeakyReluFn {
  template <typename T>
  static T Value(T x, T alpha, T) {
    return x < T(0) ? alpha * x : x;
  }
  template <typename T>
  static T Slope(T x, T, T alpha, T) {
    return x < T(0) ? alpha : T(1);
  }
};

struct ThresholdedReluFn {
  template <typename T>
  static T Value(T x, T alpha, T) {
    return x <= alpha ? T(0) : x;
  }
  template <typename T>
  static T Slope(T x, T, T alpha, T) {
    return x <= alpha ? T(0) : T(1);
  }
};

struct ScaledTanhFn {
  template <typename T>
  static T Value(T x, T alpha, T beta) {
    return alpha * Tanh(beta * x);
  }
  template <typename T>
  static T Slope(T x, T, T alpha, T beta) {
    const T t = Tanh(beta * x);
    return alpha * beta * (T(1) - t * t);
  }
};

struct HardSigmoidFn {
  template <typename T>
  static T Value(T x, T alpha, T beta) {
    T y = alpha * x + beta;
    y = y < T(0) ? T(0) : y;
    return y > T(1) ? T(1) : y;
  }
  template <typename T>
  static T Slope(T, T y, T alpha, T) {
    const T slope = y > T(0) ? alpha : T(0);
    return y < T(1) ? slope : T(0);
  }
};

struct EluFn {
  template <typename T>
  static T Value(T x, T alpha, T) {
    const T negative = alpha * Expm1(x);
    return x < T(0) ? negative : x;
  }
  template <typename T>
  static T Slope(T x, T y, T alpha, T) {
    return x < T(0) ? y + alpha : T(1);
  }
};

struct SoftsignFn {
  template <typename T>
  static T Value(T x, T, T) {
    return x / (T(1) + std::fabs(x));
  }
  template <typename T>
  static T Slope(T x, T, T, T) {
    const T r = T(1) / (T(1) + std::fabs(x));
    return r * r;
  }
};

struct SoftplusFn {
  template <typename T>
  static T Value(T x, T, T) {
    return (T(0) > x ? T(0) : x) + LogOnePlus(Exp(-std::fabs(x)));
  }
  template <typename T>
  static T Slope(T x, T, T, T) {
    return Sigmoid(x);
  }
};

template <typename Visitor>
void Visit(Kind kind, const Visitor& visit) {
  switch (kind) {
    case Kind::kRelu: return visit(ReluFn());
    case Kind::kTanh: return visit(TanhFn());
    case Kind::kSigmoid: return visit(SigmoidFn());
    case Kind::kAffine: return visit(AffineFn());
    case Kind::kLeakyRelu: return visit(LeakyReluFn());
    case Kind::kThresholdedRelu: return visit(ThresholdedReluFn());
    case Kind::kScaledTanh: return visit(ScaledTanhFn());
    case Kind::kHardSigmoid: return visit(HardSigmoidFn());
    case Kind::kElu: return visit(EluFn());
    case Kind::kSoftsign: return visit(SoftsignFn());
    case Kind::kSoftplus: return visit(SoftplusFn());
  }
}

template <typename T>
T Limited(T x, T clip) {
  x = x > clip ? clip : x;
  return x < -clip ? -clip : x;
}

}  // namespace

template <typename T>
void Activate(const RnnActivation& f, T clip, const T* x, T* y, int64_t n) {
  const T alpha = f.alpha, beta = f.beta;
  Visit(f.kind, [&]<typename Fn>(Fn) {
    for (int64_t i = 0; i < n; ++i) y[i] = Fn::Value(Limited(x[i], clip), alpha, beta);
  });
}

template <typename T>
void ActivateGrad(const RnnActivation& f, T clip, const T* x, const T* y, T* d, int64_t n) {
  const T alpha = f.alpha, beta = f.beta;
  Visit(f.kind, [&]<typename Fn>(Fn) {
    for (int64_t i = 0; i < n; ++i) {
      const T slope = Fn::Slope(Limited(x[i], clip), y[i], alpha, beta);
      d[i] = std::fabs(x[i]) > clip ? T(0) : d[i] * slope;
    }
  });
}

template void Activate(const RnnActivation&, float, const float*, float*, int64_t);
template void Activate(const RnnActivation&, double, const double*, double*, int64_t);
template void ActivateGrad(const RnnActivation&, float, const float*, const float*, float*,
                           int64_t);
template void ActivateGrad(const RnnActivation&, double, const double*, const double*, double*,
                           int64_t);

}  // namespace onward

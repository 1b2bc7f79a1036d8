// SPDX-License-Identifier: Apache-2.0
// Functions of one number: signs, rounding, exponentials, trigonometry, and the
// predicates IsNaN and IsInf.
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/small_float.h"
#include "core/ops/cpu/float_math.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/cpu/vector_math.h"
#include "core/ops/elementwise/elementwise.h"

namespace onward {
namespace {

// A functor from a function object without state.
template <auto kFunction>
struct Apply {
  template <typename T>
  T operator()(T x) const {
    return kFunction(x);
  }
};

// The same with a function of FloatMath for arrays of float.
template <auto kFunction, FloatMath::Map FloatMath::*kMap>
struct ApplyToAll : Apply<kFunction> {
  static void Run(const float* x, float* y, int64_t n) { (FloatMathHere().*kMap)(x, y, n); }
};

constexpr auto kNeg = []<typename T>(T x) {
  if constexpr (std::is_integral_v<T>) {
    return WrapSub(T(0), x);
  } else {
    return -x;
  }
};
constexpr auto kAbs = []<typename T>(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x < T(0) ? WrapSub(T(0), x) : x;
  } else {
    return std::fabs(x);
  }
};
// NaN has no sign: it stays.
constexpr auto kSign = []<typename T>(T x) {
  const T magnitude = x == T(0) ? T(0) : x > T(0) ? T(1) : x;
  return x < T(0) ? static_cast<T>(-1) : magnitude;
};
constexpr auto kReciprocal = []<typename T>(T x) { return T(1) / x; };
constexpr auto kSqrt = [](auto x) { return std::sqrt(x); };
constexpr auto kFloor = [](auto x) { return std::floor(x); };
constexpr auto kCeil = [](auto x) { return std::ceil(x); };
constexpr auto kRound = [](auto x) { return std::nearbyint(x); };  // ties to even
constexpr auto kExp = [](auto x) { return vector_math::Exp(x); };
constexpr auto kLog = [](auto x) { return vector_math::Log(x); };
constexpr auto kErf = [](auto x) { return vector_math::Erf(x); };
constexpr auto kSin = [](auto x) { return std::sin(x); };
constexpr auto kCos = [](auto x) { return std::cos(x); };
constexpr auto kTan = [](auto x) { return std::tan(x); };
constexpr auto kAsin = [](auto x) { return std::asin(x); };
constexpr auto kAcos = [](auto x) { return std::acos(x); };
constexpr auto kAtan = [](auto x) { return std::atan(x); };
constexpr auto kSinh = [](auto x) { return std::sinh(x); };
constexpr auto kCosh = [](auto x) { return std::cosh(x); };
constexpr auto kAsinh = [](auto x) { return std::asinh(x); };
constexpr auto kAcosh = [](auto x) { return std::acosh(x); };
constexpr auto kAtanh = [](auto x) { return std::atanh(x); };

struct NotOp {
  bool operator()(bool x) const { return !x; }
  // As bytes: gcc vectorises no negation of bool.
  static void Run(const bool* x, bool* y, int64_t n) {
    const auto* from = reinterpret_cast<const uint8_t*>(x);
    auto* to = reinterpret_cast<uint8_t*>(y);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] == 0;
  }
};

struct BitwiseNotOp {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

struct IsNaNOp {
  template <typename T>
  bool operator()(T x) const {
    return x != x;
  }
};

struct IsInfOp {
  bool negative, positive;
  explicit IsInfOp(const Node& node)
      : negative(node.Int("detect_negative", 1) != 0),
        positive(node.Int("detect_positive", 1) != 0) {}
  template <typename T>
  bool operator()(T x) const {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return (positive & (x == kInfinity)) | (negative & (x == -kInfinity));
  }
};

// A predicate of float8 too: there it is a table of the answer for each code.
template <typename Op>
absl::StatusOr<Kernel> MakePredicate(const KernelRequest& request) {
  const DType dtype = request.HasInput(0) ? request.inputs[0].dtype : DType::kUndefined;
  if (!IsFloat8(dtype)) return MakeUnary<Op, FloatingTypes>(request, kLightGrain);
  if (request.outputs[0].dtype != DType::kBool) return UnservedType(request);
  const Op op = MakeOp<Op>(request.node);
  const SmallValues& values = SmallValuesOf(dtype);
  std::array<bool, std::tuple_size_v<SmallValues>> answers;
  for (size_t code = 0; code < answers.size(); ++code) answers[code] = op(values[code]);
  const auto body = [answers](absl::Span<const Operand> in, void* out, int64_t n) {
    const uint8_t* codes = in[0].as<uint8_t>();
    bool* y = static_cast<bool*>(out);
    for (int64_t i = 0; i < n; ++i) y[i] = answers[codes[i]];
  };
  return BroadcastKernel(request, {0}, body, kLightGrain);
}

template <typename Op>
KernelTable::Entry Predicate(int since) {
  return {"reference", since,       MakePredicate<Op>, FloatingTypes::Names() + ", float8",
          false,       LikeInput(0)};
}

template <auto kFunction>
KernelTable::Entry Heavy(int since) {
  return Unary<Apply<kFunction>, FloatingTypes>(since, kHeavyGrain);
}

template <auto kFunction, FloatMath::Map FloatMath::*kMap>
KernelTable::Entry Heavy(int since) {
  return Unary<ApplyToAll<kFunction, kMap>, FloatingTypes>(since, kHeavyGrain);
}

}  // namespace

void RegisterUnaryMathKernels(KernelTable& table) {
  table.Add("Neg", Unary<Apply<kNeg>, SignedTypes>(13));
  table.Add("Abs", Unary<Apply<kAbs>, NumericTypes>(13));
  table.Add("Sign", Unary<Apply<kSign>, NumericTypes>(13));
  table.Add("Reciprocal", Unary<Apply<kReciprocal>, FloatingTypes>(13));
  table.Add("Sqrt", Unary<Apply<kSqrt>, FloatingTypes>(13));
  table.Add("Floor", Unary<Apply<kFloor>, FloatingTypes>(13));
  table.Add("Ceil", Unary<Apply<kCeil>, FloatingTypes>(13));
  table.Add("Round", Unary<Apply<kRound>, FloatingTypes>(11));
  table.Add("Exp", Heavy<kExp, &FloatMath::exp>(13));
  table.Add("Log", Heavy<kLog>(13));
  table.Add("Erf", Heavy<kErf, &FloatMath::erf>(13));
  table.Add("Sin", Heavy<kSin, &FloatMath::sin>(7));
  table.Add("Cos", Heavy<kCos, &FloatMath::cos>(7));
  table.Add("Tan", Heavy<kTan>(7));
  table.Add("Asin", Heavy<kAsin>(7));
  table.Add("Acos", Heavy<kAcos>(7));
  table.Add("Atan", Heavy<kAtan>(7));
  table.Add("Sinh", Heavy<kSinh>(9));
  table.Add("Cosh", Heavy<kCosh>(9));
  table.Add("Asinh", Heavy<kAsinh>(9));
  table.Add("Acosh", Heavy<kAcosh>(9));
  table.Add("Atanh", Heavy<kAtanh>(9));
  table.Add("Not", Unary<NotOp, BoolType>(1));
  table.Add("BitwiseNot", Unary<BitwiseNotOp, IntegerTypes>(18));
  table.Add("IsNaN", Predicate<IsNaNOp>(9));
  table.Add("IsInf", Predicate<IsInfOp>(10));
}

}  // namespace onward

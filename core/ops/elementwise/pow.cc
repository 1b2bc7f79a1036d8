// SPDX-License-Identifier: Apache-2.0
// Pow for every pair of types. Exponents that training graphs are full of (2,
// 0.5, -1, ...) become products and roots when they are the same for a run.
#include "core/ops/elementwise/pow.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "core/ops/cpu/scalar_math.h"
#include "core/ops/elementwise/elementwise.h"

namespace onward {
namespace {

// Wraps around as repeated multiplication would. A negative exponent gives the
// quotient rounded towards zero, and 0 for base 0.
template <typename T, typename E>
T IntegerPow(T base, E exponent) {
  if constexpr (std::is_signed_v<E>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == T(-1)) return exponent % 2 == 0 ? T(1) : T(-1);
      return 0;
    }
  }
  T result = 1;
  for (uint64_t e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if (e & 1) result = WrapMul(result, base);
    base = WrapMul(base, base);
  }
  return result;
}

template <typename T, typename E>
T Power(T base, E exponent) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
    return IntegerPow(base, exponent);
  } else if constexpr (std::is_same_v<T, E>) {
    return T(std::pow(static_cast<ComputeType<T>>(base), static_cast<ComputeType<T>>(exponent)));
  } else {
    const double power = std::pow(static_cast<double>(base), static_cast<double>(exponent));
    if constexpr (std::is_integral_v<T>) {
      return Convert<T>(power);
    } else {
      return FromDouble<T>(power);
    }
  }
}

// Whether the exponent has a short form, which then was computed.
template <typename T>
bool ShortPower(const T* x, double exponent, T* y, int64_t n) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  // pow(-0, 0.5) is +0 and pow(-infinity, 0.5) is infinity, unlike sqrt.
  const auto root = [](T v) { return v == -kInfinity ? kInfinity : std::sqrt(v + T(0)); };
  if (exponent == 2) {
    UnaryRun([](T v) { return v * v; }, x, y, n);
  } else if (exponent == 0.5) {
    UnaryRun(root, x, y, n);
  } else if (exponent == -0.5) {
    UnaryRun([root](T v) { return T(1) / root(v); }, x, y, n);
  } else if (exponent == -1) {
    UnaryRun([](T v) { return T(1) / v; }, x, y, n);
  } else if (exponent == 3) {
    UnaryRun([](T v) { return v * v * v; }, x, y, n);
  } else if (exponent == 1) {
    UnaryRun([](T v) { return v; }, x, y, n);
  } else {
    return false;
  }
  return true;
}

template <typename T, typename E>
void PowRun(absl::Span<const Operand> in, void* out, int64_t n) {
  const T* base = in[0].as<T>();
  const E* exponent = in[1].as<E>();
  T* y = static_cast<T*>(out);
  if constexpr (std::is_floating_point_v<T>) {
    if (in[1].repeats && !in[0].repeats && ShortPower(base, static_cast<double>(*exponent), y, n)) {
      return;
    }
  }
  const int64_t base_step = in[0].repeats ? 0 : 1;
  const int64_t exponent_step = in[1].repeats ? 0 : 1;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = Power(base[i * base_step], exponent[i * exponent_step]);
  }
}

}  // namespace

absl::StatusOr<Kernel> MakePow(const KernelRequest& request) {
  if (!request.HasInput(0) || !request.HasInput(1)) {
    return NodeError(request.node, "two inputs are needed");
  }
  RunBody body;
  PowBaseTypes::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    if (request.outputs[0].dtype != DTypeOf<T>::value) return;
    NumericTypes::Dispatch(request.inputs[1].dtype, [&]<typename E>() { body = PowRun<T, E>; });
  });
  if (body == nullptr) return UnservedType(request);
  return BroadcastKernel(request, {0, 1}, std::move(body), kHeavyGrain);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Arithmetic and conversions of scalars that are defined for every argument:
// integers wrap around, division by zero gives 0, NaN is never lost, floats
// beyond an integer's range saturate. For floats these are the plain operators.
#ifndef ONWARD_CORE_OPS_CPU_SCALAR_MATH_H_
#define ONWARD_CORE_OPS_CPU_SCALAR_MATH_H_

#include <limits>
#include <type_traits>

namespace onward {

// The unsigned type an integer is computed in: never narrower than int, so that
// promotion to a signed type cannot happen.
template <typename T>
using Modular = std::make_unsigned_t<decltype(T() + T())>;

template <typename T>
T WrapAdd(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Modular<T>>(a) + static_cast<Modular<T>>(b));
  } else {
    return a + b;
  }
}

template <typename T>
T WrapSub(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Modular<T>>(a) - static_cast<Modular<T>>(b));
  } else {
    return a - b;
  }
}

template <typename T>
T WrapMul(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Modular<T>>(a) * static_cast<Modular<T>>(b));
  } else {
    return a * b;
  }
}

// The quotient rounded towards zero; the lowest value divided by -1 wraps.
template <typename T>
T SafeDiv(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const bool minus_one = std::is_signed_v<T> && b == static_cast<T>(-1);
    const T divisor = b == 0 || minus_one ? T(1) : b;
    const T quotient = static_cast<T>(a / divisor);
    return b == 0 ? T(0) : minus_one ? WrapSub(T(0), a) : quotient;
  } else {
    return a / b;
  }
}

// The remainder of SafeDiv, with the sign of a; 0 where b is 0.
template <typename T>
T SafeRemainder(T a, T b) {
  const bool trivial = b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1));
  return trivial ? T(0) : static_cast<T>(a % (trivial ? T(1) : b));
}

// The larger and the smaller of two numbers; NaN wins in both.
template <typename T>
T NanMax(T a, T b) {
  const T larger = a > b ? a : b;
  return a != a ? a : larger;
}
template <typename T>
T NanMin(T a, T b) {
  const T smaller = a < b ? a : b;
  return a != a ? a : smaller;
}

// To any number type: floats to integers saturate and NaN becomes 0; integers to
// integers keep the low bits; anything but zero is true.
template <typename To, typename From>
To Convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr To kLowest = std::numeric_limits<To>::lowest();
    constexpr To kMax = std::numeric_limits<To>::max();
    constexpr From kBegin = static_cast<From>(kLowest);
    constexpr From kEnd = static_cast<From>(kMax / 2 + 1) * From(2);
    const To inside = static_cast<To>(x >= kBegin && x < kEnd ? x : From(0));
    const To low = x < kBegin ? kLowest : inside;
    return x >= kEnd ? kMax : low;
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_SCALAR_MATH_H_

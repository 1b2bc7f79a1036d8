// SPDX-License-Identifier: Apache-2.0
// Conversions of one element, and the kernel for types of at most 8 bits.
#ifndef ONWARD_CORE_OPS_ELEMENTWISE_CAST_H_
#define ONWARD_CORE_OPS_ELEMENTWISE_CAST_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/ops/cpu/scalar_math.h"
#include "core/ops/elementwise/elementwise.h"

namespace onward {

// Rounds towards zero and marks what was lost in the last bit, so that rounding
// once more to fewer bits gives the double's nearest value.
inline float RoundToOdd(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || std::isnan(x)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

// Floats beyond an integer's range, undefined in the standard, saturate; NaN becomes 0.
template <typename From, typename To>
To CastElement(From x) {
  if constexpr (kIsHalf<From>) {
    return CastElement<float, To>(x);
  } else if constexpr (kIsHalf<To>) {
    if constexpr (std::is_same_v<From, float>) return To(x);
    return To(RoundToOdd(static_cast<double>(x)));
  } else {
    return Convert<To>(x);
  }
}

// Cast and CastLike where one of the two types is small (core/base/small_float.h).
absl::StatusOr<Kernel> MakeSmallCast(const KernelRequest& request, DType to);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_ELEMENTWISE_CAST_H_

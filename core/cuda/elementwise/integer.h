// SPDX-License-Identifier: Apache-2.0
// The operators on integers, for device code: in 64 bits, whose low ones are those of narrower
// types. Everything is defined: sums wrap around, division by zero gives 0.
#ifndef ONWARD_CORE_CUDA_ELEMENTWISE_INTEGER_H_
#define ONWARD_CORE_CUDA_ELEMENTWISE_INTEGER_H_

#include <cstdint>
#include <type_traits>

#include "core/cuda/elementwise/opcode.h"
#include "core/cuda/launch.h"

namespace onward::cuda {

template <typename T>
__device__ bool IsNegative(T x) {
  if constexpr (std::is_signed_v<T>) return x < 0;
  return false;
}

template <typename T>
__device__ bool IsMinusOne(T x) {
  return IsNegative(x) && x == static_cast<T>(-1);
}

// The quotient rounded towards zero; the lowest value divided by -1 wraps.
template <typename T>
__device__ T QuotientOf(T a, T b) {
  if (b == T(0)) return T(0);
  if (IsMinusOne(b)) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
  return a / b;
}

template <typename T>
__device__ T RemainderOf(T a, T b) {
  if (b == T(0) || IsMinusOne(b)) return T(0);
  return a % b;
}

template <typename T>
__device__ T FlooredRemainderOf(T a, T b) {
  const T r = RemainderOf(a, b);
  return r != T(0) && IsNegative(r) != IsNegative(b) ? r + b : r;
}

// As repeated multiplication would.
__device__ inline uint64_t UnsignedPowerOf(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

// A negative exponent gives the quotient rounded towards zero, and 0 for base 0.
__device__ inline uint64_t SignedPowerOf(int64_t base, int64_t exponent) {
  if (exponent >= 0) {
    return UnsignedPowerOf(static_cast<uint64_t>(base), static_cast<uint64_t>(exponent));
  }
  if (base == 1) return 1;
  if (base == -1) return exponent % 2 == 0 ? 1 : ~uint64_t{0};
  return 0;
}

// A shift by a negative amount, or by the width or more, leaves what the fill alone gives.
template <typename T>
__device__ bool ShiftsOut(T amount, int bits) {
  return IsNegative(amount) || amount >= static_cast<T>(bits);
}

// What sums and products of T wrap around in is unsigned.
template <typename T>
__device__ T EvaluateInteger(Op op, T a, T b, int bits) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kNeg: return static_cast<T>(uint64_t{0} - x);
    case Op::kAbs: return static_cast<T>(IsNegative(a) ? uint64_t{0} - x : x);
    case Op::kSign: return IsNegative(a) ? static_cast<T>(-1) : T(a != T(0));
    case Op::kNot: return T(a == T(0));
    case Op::kBitwiseNot: return static_cast<T>(~x);
    case Op::kRelu: return IsNegative(a) ? T(0) : a;
    case Op::kAdd: return static_cast<T>(x + y);
    case Op::kSub: return static_cast<T>(x - y);
    case Op::kMul: return static_cast<T>(x * y);
    case Op::kDiv: return QuotientOf(a, b);
    case Op::kTruncatedMod: return RemainderOf(a, b);
    case Op::kFlooredMod: return FlooredRemainderOf(a, b);
    case Op::kPow:
      return static_cast<T>(SignedPowerOf(static_cast<int64_t>(a), static_cast<int64_t>(b)));
    case Op::kPowUnsigned: return static_cast<T>(UnsignedPowerOf(x, y));
    case Op::kMin: return a < b ? a : b;
    case Op::kMax: return a > b ? a : b;
    case Op::kPRelu: return IsNegative(a) ? static_cast<T>(x * y) : a;
    case Op::kEqual: return T(a == b);
    case Op::kGreater: return T(a > b);
    case Op::kGreaterOrEqual: return T(a >= b);
    case Op::kLess: return T(a < b);
    case Op::kLessOrEqual: return T(a <= b);
    case Op::kAnd: return static_cast<T>(x & y);
    case Op::kOr: return static_cast<T>(x | y);
    case Op::kXor: return static_cast<T>(x ^ y);
    case Op::kShiftLeft: return ShiftsOut(b, bits) ? T(0) : static_cast<T>(x << y);
    case Op::kShiftRight:
      return ShiftsOut(b, bits) ? (IsNegative(a) ? static_cast<T>(-1) : T(0)) : a >> b;
    default: return a;
  }
}

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_ELEMENTWISE_INTEGER_H_

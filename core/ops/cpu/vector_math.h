// SPDX-License-Identifier: Apache-2.0
// Elementary functions in float without branches or calls, so that a loop over
// them becomes vector code (with -fno-trapping-math -fno-math-errno; gcc keeps
// branches without the former). Errors stay below 2.5 ulp and special values are
// the C library's; the double versions are the C library's altogether.
//
// Arguments are reduced by powers of two; the polynomials are weighted minimax
// fits on the interval that remains.
#ifndef ONWARD_CORE_OPS_CPU_VECTOR_MATH_H_
#define ONWARD_CORE_OPS_CPU_VECTOR_MATH_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace onward {
namespace vector_math {

// exp(x) = 2^n * (1 + tail) with n = round(x / ln 2), for |n| < 200.
struct SplitExp {
  float tail;        // expm1 of the rest of x
  int32_t exponent;  // n
};

inline SplitExp Split(float x) {
  constexpr float kRound = 0x1.8p23f;  // adding it leaves an integer in the low mantissa bits
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float q = 1.39464508e-3f;
  q = q * r + 8.36658395e-3f;
  q = q * r + 4.1666282e-2f;
  q = q * r + 0.16666543f;
  q = q * r + 0.500000006f;
  return {q * (r * r) + r, std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound)};
}

inline float PowerOfTwo(int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

inline float CopySign(float magnitude, float sign) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(magnitude) & 0x7fffffffu) |
                              (std::bit_cast<uint32_t>(sign) & 0x80000000u));
}

inline float Exp(float x) {
  // Beyond the limits the result is infinity or 0 in any case; NaN passes both.
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const auto [tail, n] = Split(x);
  // Two factors, since 2^n alone may not be a normal float.
  const int32_t half = n >> 1;
  return (1.0f + tail) * PowerOfTwo(half) * PowerOfTwo(n - half);
}
inline double Exp(double x) { return std::exp(x); }

inline float Expm1(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -20.0f ? -20.0f : x;
  const auto [tail, n] = Split(x);
  const int32_t half = n >> 1;
  const float a = PowerOfTwo(half);
  const float b = PowerOfTwo(n - half);
  // 2^n tail + (2^n - 1), with the second factor taken out so that n = 128 works.
  const float result = (a * tail + (a - PowerOfTwo(half - n))) * b;
  return x == 0.0f ? x : result;
}
inline double Expm1(double x) { return std::expm1(x); }

// log(x) - shift ln 2, for normal x.
inline float LogOfNormal(float x, float shift) {
  // The mantissa goes to [sqrt(1/2), sqrt(2)).
  const int32_t bits = static_cast<int32_t>(std::bit_cast<uint32_t>(x) - 0x3f3504f3u);
  const float f = std::bit_cast<float>((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const float e = static_cast<float>(bits >> 23) - shift;
  float p = 6.91647556e-2f;
  p = p * f - 0.117916324f;
  p = p * f + 0.118734549f;
  p = p * f - 0.123840909f;
  p = p * f + 0.142185658f;
  p = p * f - 0.166692616f;
  p = p * f + 0.200022312f;
  p = p * f - 0.249999865f;
  p = p * f + 0.333333104f;
  const float square = f * f;
  // e ln 2 in two parts, the small one added to the small terms.
  float y = p * f * square + e * -2.12194440e-4f;
  y = (y - 0.5f * square) + f;
  return e * 0.693359375f + y;
}

inline float Log(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool tiny = x < std::numeric_limits<float>::min();
  float y = LogOfNormal(tiny ? x * 0x1p23f : x, tiny ? 23.0f : 0.0f);
  y = x == 0.0f ? -kInfinity : y;
  y = x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : y;
  return x < kInfinity ? y : x;  // infinity and NaN
}
inline double Log(double x) { return std::log(x); }

// log(1 + u) for u in [0, 1].
inline float LogOnePlus(float u) {
  const float w = 1.0f + u;
  return LogOfNormal(w, 0.0f) + (u - (w - 1.0f)) / w;
}
inline double LogOnePlus(double u) { return std::log1p(u); }

// tanh |x| = -m / (m + 2) with m = expm1(-2 |x|).
inline float Tanh(float x) {
  const float m = Expm1(-2.0f * std::fabs(x));
  return CopySign(m / (m + 2.0f), x);
}
inline double Tanh(double x) { return std::tanh(x); }

inline float Erf(float x) {
  const float magnitude = std::fabs(x);
  // Above 4 the result rounds to 1; below 0.93 a polynomial in x^2 is exact
  // where the logarithm of erfc would cancel.
  const float t = magnitude > 4.0f ? 4.0f : magnitude;
  const float s = t * t;
  float small = 8.31677545e-5f;
  small = small * s - 8.13001275e-4f;
  small = small * s + 5.19990668e-3f;
  small = small * s - 2.68589415e-2f;
  small = small * s + 0.112836872f;
  small = small * s - 0.376126332f;
  small = small * s + 0.128379167f;
  small = small * t + t;
  float log_erfc = 1.94777643e-4f;
  log_erfc = log_erfc * t - 3.03181952e-3f;
  log_erfc = log_erfc * t + 2.21813849e-2f;
  log_erfc = log_erfc * t - 0.103836904f;
  log_erfc = log_erfc * t - 0.637290423f;
  log_erfc = log_erfc * t - 1.12761121f;
  log_erfc = log_erfc * t - 2.11313251e-4f;
  const auto [tail, n] = Split(log_erfc);
  const float power = PowerOfTwo(n);
  const float large = 1.0f - (power * tail + power);
  return CopySign(t > 0.93f ? large : small, x);
}
inline double Erf(double x) { return std::erf(x); }

// 1 / (1 + exp(-x)), by exp(-|x|) so that nothing overflows.
template <typename T>
T Sigmoid(T x) {
  const T e = Exp(-std::fabs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

}  // namespace vector_math
}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_VECTOR_MATH_H_

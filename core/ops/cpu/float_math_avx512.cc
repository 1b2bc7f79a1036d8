// SPDX-License-Identifier: Apache-2.0
// Vectors of 16. Everything that is compiled for AVX-512 here is local to this file.
#include <immintrin.h>
#include <math.h>

#include "core/ops/cpu/float_math.h"

#pragma GCC push_options
#pragma GCC target("avx512f")

namespace onward {
namespace {

constexpr int kLaneCount = 16;
typedef float Lanes __attribute__((vector_size(64)));
typedef int32_t IntLanes __attribute__((vector_size(64)));
typedef uint32_t UintLanes __attribute__((vector_size(64)));

// Instructions that give their second operand where one is NaN.
inline Lanes Lesser(Lanes bound, Lanes v) { return _mm512_min_ps(bound, v); }
inline Lanes Greater(Lanes bound, Lanes v) { return _mm512_max_ps(bound, v); }

// a - b c, rounded once.
inline Lanes LessProduct(Lanes a, Lanes b, Lanes c) { return _mm512_fnmadd_ps(b, c, a); }

inline IntLanes FirstLanes(int64_t count) {
  const IntLanes numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return numbers < static_cast<int32_t>(count);
}
inline Lanes LoadFirst(const float* p, int64_t count) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p);
}
inline void StoreFirst(float* p, Lanes v, int64_t count) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), v);
}
inline bool AllSet(IntLanes mask) {
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) == 0xffff;
}

inline __m256 UpperHalf(Lanes v) {
  return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
}
// The second half of the lanes joined with the first, until one is left.
inline float SumOf(Lanes v) {
  const __m256 b = _mm256_add_ps(_mm512_castps512_ps256(v), UpperHalf(v));
  __m128 a = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  a = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}
inline float LargestOf(Lanes v) {
  const __m256 b = _mm256_max_ps(_mm512_castps512_ps256(v), UpperHalf(v));
  __m128 a = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  a = _mm_max_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
}

inline Lanes ScaleByPower(Lanes v, Lanes n) { return _mm512_scalef_ps(v, n); }

#include "core/ops/cpu/float_math_body.h"

}  // namespace

const FloatMath kFloatMathAvx512 = kFunctions;

}  // namespace onward

#pragma GCC pop_options

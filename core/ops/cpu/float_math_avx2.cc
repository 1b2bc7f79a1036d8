// SPDX-License-Identifier: Apache-2.0
// Vectors of 8, and the choice between the versions.
#include <immintrin.h>
#include <math.h>

#include "core/ops/cpu/float_math.h"

namespace onward {
namespace {

constexpr int kLaneCount = 8;
typedef float Lanes __attribute__((vector_size(32)));
typedef int32_t IntLanes __attribute__((vector_size(32)));
typedef uint32_t UintLanes __attribute__((vector_size(32)));

// Instructions that give their second operand where one is NaN.
inline Lanes Lesser(Lanes bound, Lanes v) { return _mm256_min_ps(bound, v); }
inline Lanes Greater(Lanes bound, Lanes v) { return _mm256_max_ps(bound, v); }

// a - b c, rounded once.
inline Lanes LessProduct(Lanes a, Lanes b, Lanes c) { return _mm256_fnmadd_ps(b, c, a); }

inline IntLanes FirstLanes(int64_t count) {
  const IntLanes numbers = {0, 1, 2, 3, 4, 5, 6, 7};
  return numbers < static_cast<int32_t>(count);
}
inline Lanes LoadFirst(const float* p, int64_t count) {
  return _mm256_maskload_ps(p, (__m256i)FirstLanes(count));
}
inline void StoreFirst(float* p, Lanes v, int64_t count) {
  _mm256_maskstore_ps(p, (__m256i)FirstLanes(count), v);
}
inline bool AllSet(IntLanes mask) { return _mm256_movemask_ps((__m256)mask) == 0xff; }

// The second half of the lanes joined with the first, until one is left.
inline float SumOf(Lanes v) {
  __m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}
inline float LargestOf(Lanes v) {
  __m128 a = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_max_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
}

// v * 2^n for v within [0.5, 2) and |n| <= 151, rounded once: 2^n alone may not be a normal
// float.
inline Lanes ScaleByPower(Lanes v, Lanes n) {
  const IntLanes power = (IntLanes)_mm256_cvtps_epi32(n);
  const IntLanes half = power >> 1;
  const Lanes moved = (Lanes)((IntLanes)v + (half << 23));
  return moved * (Lanes)((power - half + 127) << 23);
}

#include "core/ops/cpu/float_math_body.h"

}  // namespace

const FloatMath kFloatMathAvx2 = kFunctions;

const FloatMath& FloatMathOf(const CpuFeatures& cpu) {
  return cpu.avx512f ? kFloatMathAvx512 : kFloatMathAvx2;
}

const FloatMath& FloatMathHere() {
  static const FloatMath& chosen = FloatMathOf(ThisCpu());
  return chosen;
}

}  // namespace onward

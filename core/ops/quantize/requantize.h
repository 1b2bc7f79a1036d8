// SPDX-License-Identifier: Apache-2.0
// What follows a product of integers: the way back to 8 bits.
#ifndef ONWARD_CORE_OPS_QUANTIZE_REQUANTIZE_H_
#define ONWARD_CORE_OPS_QUANTIZE_REQUANTIZE_H_

#include <cstdint>
#include <limits>

#include "core/base/cpu_features.h"
#include "core/ops/quantize/rounding.h"

namespace onward {

// y = saturate(round((v + bias) * scale) + zero) of a panel's columns; scales per column, or
// one for all.
template <typename T>
void RequantizePanel(const int32_t* v, int32_t bias, const float* scales, bool one_scale,
                     float zero, T* y) {
  const ByteRounder<T> rounder(zero);
  const __m256i add = _mm256_set1_epi32(bias);
  const __m256 scale = _mm256_set1_ps(scales[0]);
  rounder.Store32(
      [&](int j) {
        const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(v + 8 * j));
        return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(sum, add)),
                             one_scale ? scale : _mm256_loadu_ps(scales + 8 * j));
      },
      y);
}

// The same with AVX-512, bit for bit.
template <typename T>
[[gnu::target("avx512f")]] void RequantizePanelWide(const int32_t* v, int32_t bias,
                                                    const float* scales, bool one_scale, float zero,
                                                    T* y) {
  const __m512 low = _mm512_set1_ps(static_cast<float>(std::numeric_limits<T>::min()) - zero);
  const __m512 high = _mm512_set1_ps(static_cast<float>(std::numeric_limits<T>::max()) - zero);
  const __m512i add = _mm512_set1_epi32(bias), zeros = _mm512_set1_epi32(static_cast<int>(zero));
  __m512 scale = _mm512_set1_ps(scales[0]);
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    if (!one_scale) scale = _mm512_loadu_ps(scales + 16 * j);
    const __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(v + 16 * j), add);
    const __m512 q = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
    const __m512 inside = _mm512_min_ps(_mm512_max_ps(q, low), high);
    const __m512i whole = _mm512_add_epi32(_mm512_cvtps_epi32(inside), zeros);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + 16 * j), _mm512_cvtepi32_epi8(whole));
  }
}

template <typename T>
using RequantizeFunction = void (*)(const int32_t*, int32_t, const float*, bool, float, T*);

template <typename T>
RequantizeFunction<T> RequantizeFor(const CpuFeatures& cpu = ThisCpu()) {
  return cpu.avx512f ? RequantizePanelWide<T> : RequantizePanel<T>;
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_REQUANTIZE_H_

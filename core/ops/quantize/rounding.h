// SPDX-License-Identifier: Apache-2.0
// From floats to 8-bit integers, 32 at a time: rounded to nearest even, kept in range.
#ifndef ONWARD_CORE_OPS_QUANTIZE_ROUNDING_H_
#define ONWARD_CORE_OPS_QUANTIZE_ROUNDING_H_

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace onward {

// saturate(round(q) + zero) of 32 numbers. Bounds that are whole may be applied before
// rounding; NaN becomes the lower one.
template <typename T>
class ByteRounder {
  static_assert(std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t>);
  static constexpr float kLow = static_cast<float>(std::numeric_limits<T>::min());
  static constexpr float kHigh = static_cast<float>(std::numeric_limits<T>::max());

 public:
  // `zero` is a number of T.
  explicit ByteRounder(float zero)
      : zero_(zero),
        zeros_(_mm256_set1_epi32(static_cast<int32_t>(zero))),
        low_(_mm256_set1_ps(kLow - zero)),
        high_(_mm256_set1_ps(kHigh - zero)) {}

  T One(float q) const {
    float v = std::nearbyint(q) + zero_;
    v = v > kLow ? v : kLow;
    v = v < kHigh ? v : kHigh;
    return static_cast<T>(static_cast<int32_t>(v));
  }

  // `get(j)` gives numbers [8 * j, 8 * j + 8), for j in [0, 4).
  template <typename Get>
  void Store32(const Get& get, T* y) const {
    const __m256i a = _mm256_packs_epi32(Whole(get(0)), Whole(get(1)));
    const __m256i b = _mm256_packs_epi32(Whole(get(2)), Whole(get(3)));
    const __m256i bytes =
        std::is_same_v<T, int8_t> ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
    // Packing works on halves of a register: their quarters are put in order.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm256_permutevar8x32_epi32(bytes, order));
  }

 private:
  __m256i Whole(__m256 q) const {
    const __m256 inside = _mm256_min_ps(_mm256_max_ps(q, low_), high_);
    return _mm256_add_epi32(_mm256_cvtps_epi32(inside), zeros_);
  }

  float zero_;
  __m256i zeros_;
  __m256 low_, high_;
};

// y = saturate(round(x / scale) + zero) of n numbers.
template <typename T>
void QuantizeBytes(const float* x, int64_t n, float scale, float zero, T* y) {
  const ByteRounder<T> rounder(zero);
  const __m256 divisor = _mm256_set1_ps(scale);
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    rounder.Store32([&](int j) { return _mm256_div_ps(_mm256_loadu_ps(x + i + 8 * j), divisor); },
                    y + i);
  }
  for (; i < n; ++i) y[i] = rounder.One(x[i] / scale);
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_ROUNDING_H_

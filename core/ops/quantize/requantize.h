// SPDX-License-Identifier: Apache-2.0
// What follows a product of integers: zero points, and the way back to 8 bits.
#ifndef ONWARD_CORE_OPS_QUANTIZE_REQUANTIZE_H_
#define ONWARD_CORE_OPS_QUANTIZE_REQUANTIZE_H_

#include <cstdint>

#include "core/ops/quantize/integer_gemm.h"
#include "core/ops/quantize/rounding.h"
#include "core/tensor/tensor.h"

namespace onward {

// A tensor of 8-bit integers as one side of a product sees it.
struct ByteOperand {
  bool is_signed = false;      // as stored
  bool wanted_signed = false;  // by the product
  uint8_t flip() const { return is_signed == wanted_signed ? 0 : 0x80; }
  // A stored number, or none for zero, in the product's range.
  int32_t Number(const Tensor* stored, int64_t i) const {
    const uint8_t raw = stored == nullptr ? 0 : stored->data<uint8_t>()[i];
    const uint8_t flipped = raw ^ flip();
    return wanted_signed ? static_cast<int8_t>(flipped) : static_cast<int32_t>(flipped);
  }
};

// sum (a - za)(b - zb) = sum ab + zb * (depth * za - sum a) - za * sum b, modulo 2^32, for a row
// a and a column b. The middle term:
inline int32_t OfColumnZero(int32_t column_zero, int32_t row_zero, int32_t row_sum, int64_t depth) {
  return static_cast<int32_t>(static_cast<uint32_t>(column_zero) *
                              (static_cast<uint32_t>(depth) * static_cast<uint32_t>(row_zero) -
                               static_cast<uint32_t>(row_sum)));
}

// The last one, taken from the sums of n columns.
inline void RemoveRowZero(int32_t row_zero, const int32_t* column_sums, int64_t n, int32_t* sums) {
  for (int64_t c = 0; c < n; ++c) {
    sums[c] = static_cast<int32_t>(static_cast<uint32_t>(sums[c]) -
                                   static_cast<uint32_t>(row_zero) *
                                       static_cast<uint32_t>(column_sums[c]));
  }
}

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

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_REQUANTIZE_H_

// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize/depthwise.h"

#include <immintrin.h>

namespace onward {

DepthwiseWeights::DepthwiseWeights(const ByteOperand& operand, const Tensor& weights, int64_t first,
                                   int64_t count)
    : even_(count % 2 == 0) {
  for (int64_t k = 0; k < count; k += 2) {
    const auto low = static_cast<uint32_t>(operand.Number(&weights, first + k)) & 0xffffu;
    const auto high =
        k + 1 < count ? static_cast<uint32_t>(operand.Number(&weights, first + k + 1)) : 0;
    pairs_.push_back(static_cast<int32_t>(low | high << 16));
  }
}

void DepthwiseWeights::Sum(const uint8_t* at, const int64_t* offsets, uint8_t flip, int32_t start,
                           int32_t* sums) const {
  if (flip == 0) return SumFlipped<false>(at, offsets, start, sums);
  SumFlipped<true>(at, offsets, start, sums);
}

template <bool kFlip>
void DepthwiseWeights::SumFlipped(const uint8_t* at, const int64_t* offsets, int32_t start,
                                  int32_t* sums) const {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(0x80));
  __m256i sum[4];
  for (__m256i& s : sum) s = _mm256_set1_epi32(start);
  const auto count = static_cast<int64_t>(pairs_.size());
  const auto load = [&](const uint8_t* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return kFlip ? _mm_xor_si128(bytes, flips) : bytes;
  };
  for (int64_t p = 0; p < count; ++p) {
    const __m256i weights = _mm256_set1_epi32(pairs_[p]);
    const uint8_t* first = at + offsets[2 * p];
    // Where the last one is alone, it is multiplied with a zero.
    const uint8_t* second = at + offsets[p + 1 < count || even_ ? 2 * p + 1 : 2 * p];
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m128i a = load(first + 16 * h), b = load(second + 16 * h);
      const __m256i low = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
      const __m256i high = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
      sum[2 * h] = _mm256_add_epi32(sum[2 * h], _mm256_madd_epi16(low, weights));
      sum[2 * h + 1] = _mm256_add_epi32(sum[2 * h + 1], _mm256_madd_epi16(high, weights));
    }
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + 8 * i), sum[i]);
  }
}

}  // namespace onward

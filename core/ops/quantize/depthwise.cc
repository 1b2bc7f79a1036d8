// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize/depthwise.h"

#include <immintrin.h>

#include <algorithm>
#include <utility>

namespace onward {
namespace {

// Lines of outputs are read whole, the last one too: what stands behind means nothing.
constexpr int64_t kReadBehind = 2 * kLineOutputs;

bool IsSideBySide(const Window& window) {
  return window.rank() >= 1 && window.rank() <= 2 && window.strides.back() == 2 &&
         window.dilations.back() == 1;
}

// The same with a stride of one: the outputs between are left out later.
ConvGeometry WithoutStrides(ConvGeometry g) {
  for (int axis = 0; axis < g.window.rank(); ++axis) {
    g.window.out[axis] = (g.window.out[axis] - 1) * g.window.strides[axis] + 1;
    g.window.strides[axis] = 1;
  }
  return g;
}

template <bool kFlip>
__m128i Load(const uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return kFlip ? _mm_xor_si128(bytes, _mm_set1_epi8(static_cast<char>(0x80))) : bytes;
}

template <int kVectors>
void Store(const __m256i* sum, int32_t* sums) {
  for (int v = 0; v < kVectors; ++v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + 8 * v), sum[v]);
  }
}

}  // namespace

std::optional<DepthwiseLayout> DepthwiseLayout::Of(const ConvGeometry& g, const CpuFeatures& cpu) {
  if (g.groups != g.out_channels || g.window.out_elements() == 0) return std::nullopt;
  const bool side_by_side = IsSideBySide(g.window);
  std::optional<BytePlanes> planes = BytePlanes::Of(side_by_side ? WithoutStrides(g) : g);
  if (!planes.has_value() || planes->offsets().empty()) return std::nullopt;
  return DepthwiseLayout(g, *std::move(planes), side_by_side, cpu.avx512vnni && cpu.avx512f);
}

DepthwiseLayout::DepthwiseLayout(const ConvGeometry& g, BytePlanes planes, bool side_by_side,
                                 bool wide)
    : planes_(std::move(planes)), side_by_side_(side_by_side), wide_(wide) {
  const Window& window = g.window;
  const bool two_axes = window.rank() == 2;
  rows_out_ = side_by_side && two_axes ? window.out[0] : planes_.rows_out();
  columns_out_ = side_by_side ? window.out.back() : planes_.columns_out();
  row_step_ = planes_.line() * (side_by_side && two_axes ? window.strides[0] : 1);
  column_step_ = side_by_side ? window.strides.back() : 1;
  group_bytes_ = g.in_channels / g.groups * planes_.channel_bytes() + kReadBehind;
  const std::vector<int64_t>& at = planes_.offsets();
  const auto count = static_cast<int64_t>(at.size());
  // Side by side, no pair reaches from one row of the kernel into the next.
  const int64_t row = side_by_side ? window.kernel.back() : count;
  for (int64_t begin = 0; begin < count; begin += row) {
    for (int64_t k = begin; k < begin + row; k += 2) {
      const bool two = k + 1 < begin + row;
      pairs_.push_back({k, two ? k + 1 : -1, at[k], two ? at[k + 1] : at[k]});
    }
  }
}

DepthwiseWeights::DepthwiseWeights(const DepthwiseLayout& layout, const ByteOperand& operand,
                                   const Tensor& weights, int32_t zero, int64_t first)
    : layout_(layout) {
  // From -255 to 255.
  const auto number = [&](int64_t k) {
    if (k < 0) return 0;
    const int32_t w = operand.Number(&weights, first + k) - zero;
    sum_ += static_cast<uint32_t>(w);
    return w;
  };
  for (const DepthwiseLayout::Pair& pair : layout.pairs()) {
    const auto low = static_cast<uint32_t>(number(pair.first)) & 0xffffu;
    const auto high = static_cast<uint32_t>(number(pair.second));
    weights_.push_back(static_cast<int32_t>(low | high << 16));
  }
}

template <int kVectors, bool kFlip>
void DepthwiseWeights::SumSideBySide(const uint8_t* at, int32_t start, int32_t* sums) const {
  __m256i sum[kVectors];
  for (__m256i& s : sum) s = _mm256_set1_epi32(start);
  const DepthwiseLayout::Pair* pairs = layout_.pairs().data();
  for (size_t p = 0; p < weights_.size(); ++p) {
    const __m256i weights = _mm256_set1_epi32(weights_[p]);
    const uint8_t* from = at + pairs[p].at_first;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i x = _mm256_cvtepu8_epi16(Load<kFlip>(from + 16 * v));
      sum[v] = _mm256_add_epi32(sum[v], _mm256_madd_epi16(x, weights));
    }
  }
  Store<kVectors>(sum, sums);
}

template <int kVectors, bool kFlip>
void DepthwiseWeights::SumInterleaved(const uint8_t* at, int32_t start, int32_t* sums) const {
  static_assert(kVectors % 2 == 0);
  __m256i sum[kVectors];
  for (__m256i& s : sum) s = _mm256_set1_epi32(start);
  const DepthwiseLayout::Pair* pairs = layout_.pairs().data();
  for (size_t p = 0; p < weights_.size(); ++p) {
    const __m256i weights = _mm256_set1_epi32(weights_[p]);
    const uint8_t *first = at + pairs[p].at_first, *second = at + pairs[p].at_second;
#pragma GCC unroll 2
    for (int h = 0; h < kVectors / 2; ++h) {
      const __m128i a = Load<kFlip>(first + 16 * h), b = Load<kFlip>(second + 16 * h);
      const __m256i low = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
      const __m256i high = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
      sum[2 * h] = _mm256_add_epi32(sum[2 * h], _mm256_madd_epi16(low, weights));
      sum[2 * h + 1] = _mm256_add_epi32(sum[2 * h + 1], _mm256_madd_epi16(high, weights));
    }
  }
  Store<kVectors>(sum, sums);
}

// 32 bytes as numbers of 16 bits.
[[gnu::target("avx512f,avx512bw"), gnu::always_inline]] static inline __m512i Widened(
    const uint8_t* from, __m256i flips) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_cvtepu8_epi16(_mm256_xor_si256(bytes, flips));
}

[[gnu::target("avx512f,avx512bw,avx512vnni")]] void DepthwiseWeights::SumSideBySideWide(
    const uint8_t* at, uint8_t flip, int32_t start, int32_t* sums) const {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  __m512i low = _mm512_set1_epi32(start), high = low;
  const DepthwiseLayout::Pair* pairs = layout_.pairs().data();
  for (size_t p = 0; p < weights_.size(); ++p) {
    const __m512i weights = _mm512_set1_epi32(weights_[p]);
    const uint8_t* from = at + pairs[p].at_first;
    low = _mm512_dpwssd_epi32(low, Widened(from, flips), weights);
    high = _mm512_dpwssd_epi32(high, Widened(from + 32, flips), weights);
  }
  _mm512_storeu_si512(sums, low);
  _mm512_storeu_si512(sums + 16, high);
}

[[gnu::target("avx512f,avx512bw,avx512vnni")]] void DepthwiseWeights::SumInterleavedWide(
    const uint8_t* at, uint8_t flip, int32_t start, int32_t* sums) const {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  __m512i even = _mm512_set1_epi32(start), odd = even;  // quarters of the outputs, by fours
  const DepthwiseLayout::Pair* pairs = layout_.pairs().data();
  for (size_t p = 0; p < weights_.size(); ++p) {
    const __m512i weights = _mm512_set1_epi32(weights_[p]);
    const __m512i a = Widened(at + pairs[p].at_first, flips);
    const __m512i b = Widened(at + pairs[p].at_second, flips);
    even = _mm512_dpwssd_epi32(even, _mm512_unpacklo_epi16(a, b), weights);
    odd = _mm512_dpwssd_epi32(odd, _mm512_unpackhi_epi16(a, b), weights);
  }
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  _mm512_storeu_si512(sums, _mm512_permutex2var_epi64(even, first, odd));
  _mm512_storeu_si512(sums + 16, _mm512_permutex2var_epi64(even, second, odd));
}

template <int kVectors>
void DepthwiseWeights::SumVectors(const uint8_t* at, uint8_t flip, int32_t start,
                                  int32_t* sums) const {
  if (layout_.side_by_side()) {
    return flip == 0 ? SumSideBySide<kVectors, false>(at, start, sums)
                     : SumSideBySide<kVectors, true>(at, start, sums);
  }
  constexpr int kEven = std::max(kVectors, 2);
  return flip == 0 ? SumInterleaved<kEven, false>(at, start, sums)
                   : SumInterleaved<kEven, true>(at, start, sums);
}

void DepthwiseWeights::Sum(const uint8_t* at, int64_t columns, uint8_t flip, int32_t start,
                           int32_t* sums) const {
  if (columns <= 8) return SumVectors<1>(at, flip, start, sums);
  if (columns <= 16) return SumVectors<2>(at, flip, start, sums);
  if (!layout_.wide()) return SumVectors<4>(at, flip, start, sums);
  return layout_.side_by_side() ? SumSideBySideWide(at, flip, start, sums)
                                : SumInterleavedWide(at, flip, start, sums);
}

}  // namespace onward

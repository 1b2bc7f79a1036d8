// SPDX-License-Identifier: Apache-2.0
// With AVX-512 VNNI: four products of bytes at once, which that instruction sums in 32 bits
// without saturating on the way. Without: the numbers are stored in 16 bits and multiplied in
// pairs; the pairs of bytes that AVX2 has would saturate.
#include "core/ops/quantize/integer_gemm.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace onward {
namespace {

constexpr int64_t kGroup = 4;  // numbers of a column that stand together
constexpr int64_t kPair = 2;   // the same in 16 bits
constexpr int64_t kRowBlock16 = 3;

// Rows of `depth` numbers, and where their sums begin and go.
template <typename Number>
struct RowBlock {
  const Number* rows;
  int64_t depth;
  const int32_t* starts;
  int32_t* tile;
  int64_t stride;
};

template <int kRows, bool kRowsUnsigned>
[[gnu::target("avx512f,avx512bw,avx512vnni")]] void MultiplyBytes(const RowBlock<uint8_t>& block,
                                                                  const uint8_t* panel) {
  __m512i sums[kRows][2];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm512_set1_epi32(block.starts[r]);
  for (int64_t k = 0; k < block.depth; k += kGroup) {
    const __m512i left = _mm512_loadu_si512(panel + k * kPanelColumns);
    const __m512i right = _mm512_loadu_si512(panel + k * kPanelColumns + 64);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      int32_t four;
      std::memcpy(&four, block.rows + r * block.depth + k, sizeof(four));
      const __m512i row = _mm512_set1_epi32(four);
      if constexpr (kRowsUnsigned) {
        sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], row, left);
        sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], row, right);
      } else {
        sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], left, row);
        sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], right, row);
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_si512(block.tile + r * block.stride, sums[r][0]);
    _mm512_storeu_si512(block.tile + r * block.stride + 16, sums[r][1]);
  }
}

template <int kRows>
void MultiplyShorts(const RowBlock<int16_t>& block, const int16_t* panel) {
  __m256i sums[kRows][4];
#pragma GCC unroll 3
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < 4; ++c) sums[r][c] = _mm256_set1_epi32(block.starts[r]);
  }
  for (int64_t k = 0; k < block.depth; k += kPair) {
    __m256i row[kRows];
#pragma GCC unroll 3
    for (int r = 0; r < kRows; ++r) {
      int32_t two;
      std::memcpy(&two, block.rows + r * block.depth + k, sizeof(two));
      row[r] = _mm256_set1_epi32(two);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const __m256i columns =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel + k * kPanelColumns + 16 * c));
#pragma GCC unroll 3
      for (int r = 0; r < kRows; ++r) {
        sums[r][c] = _mm256_add_epi32(sums[r][c], _mm256_madd_epi16(row[r], columns));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < 4; ++c) {
      auto* to = reinterpret_cast<__m256i*>(block.tile + r * block.stride + 8 * c);
      _mm256_storeu_si256(to, sums[r][c]);
    }
  }
}

using MultiplyBytesFunction = void (*)(const RowBlock<uint8_t>&, const uint8_t*);

template <bool kRowsUnsigned>
MultiplyBytesFunction BytesFor(int64_t rows) {
  switch (rows) {
    case 1: return MultiplyBytes<1, kRowsUnsigned>;
    case 2: return MultiplyBytes<2, kRowsUnsigned>;
    case 3: return MultiplyBytes<3, kRowsUnsigned>;
    case 4: return MultiplyBytes<4, kRowsUnsigned>;
    case 5: return MultiplyBytes<5, kRowsUnsigned>;
    case 6: return MultiplyBytes<6, kRowsUnsigned>;
    case 7: return MultiplyBytes<7, kRowsUnsigned>;
    case 8: return MultiplyBytes<8, kRowsUnsigned>;
    case 9: return MultiplyBytes<9, kRowsUnsigned>;
    case 10: return MultiplyBytes<10, kRowsUnsigned>;
    case 11: return MultiplyBytes<11, kRowsUnsigned>;
    default: return MultiplyBytes<12, kRowsUnsigned>;
  }
}

// Four rows of 32 bytes become 32 columns of four.
void Interleave(const uint8_t* const* rows, __m256i flip, uint8_t* to) {
  __m256i r[kGroup];
  for (int i = 0; i < kGroup; ++i) {
    r[i] = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[i])), flip);
  }
  const __m256i low01 = _mm256_unpacklo_epi8(r[0], r[1]), high01 = _mm256_unpackhi_epi8(r[0], r[1]);
  const __m256i low23 = _mm256_unpacklo_epi8(r[2], r[3]), high23 = _mm256_unpackhi_epi8(r[2], r[3]);
  const __m256i q0 = _mm256_unpacklo_epi16(low01, low23), q1 = _mm256_unpackhi_epi16(low01, low23);
  const __m256i q2 = _mm256_unpacklo_epi16(high01, high23);
  const __m256i q3 = _mm256_unpackhi_epi16(high01, high23);
  auto* out = reinterpret_cast<__m256i*>(to);
  _mm256_storeu_si256(out, _mm256_permute2x128_si256(q0, q1, 0x20));
  _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(q2, q3, 0x20));
  _mm256_storeu_si256(out + 2, _mm256_permute2x128_si256(q0, q1, 0x31));
  _mm256_storeu_si256(out + 3, _mm256_permute2x128_si256(q2, q3, 0x31));
}

// The same of two times four rows, one after the other.
[[gnu::target("avx512f,avx512bw")]] void InterleaveTwo(const uint8_t* const* rows, uint8_t flip,
                                                       uint8_t* to) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  __m512i r[kGroup];
#pragma GCC unroll 4
  for (int i = 0; i < kGroup; ++i) {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[i]));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[kGroup + i]));
    r[i] = _mm512_xor_si512(_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1), flips);
  }
  const __m512i low01 = _mm512_unpacklo_epi8(r[0], r[1]), high01 = _mm512_unpackhi_epi8(r[0], r[1]);
  const __m512i low23 = _mm512_unpacklo_epi8(r[2], r[3]), high23 = _mm512_unpackhi_epi8(r[2], r[3]);
  const __m512i q0 = _mm512_unpacklo_epi16(low01, low23), q1 = _mm512_unpackhi_epi16(low01, low23);
  const __m512i q2 = _mm512_unpacklo_epi16(high01, high23);
  const __m512i q3 = _mm512_unpackhi_epi16(high01, high23);
  // Quarters of each register: those of q0 to q3 that are alike follow one another.
  constexpr int kEven = 0x88, kOdd = 0xdd;
  const __m512i even01 = _mm512_shuffle_i32x4(q0, q1, kEven);
  const __m512i odd01 = _mm512_shuffle_i32x4(q0, q1, kOdd);
  const __m512i even23 = _mm512_shuffle_i32x4(q2, q3, kEven);
  const __m512i odd23 = _mm512_shuffle_i32x4(q2, q3, kOdd);
  _mm512_storeu_si512(to, _mm512_shuffle_i32x4(even01, even23, kEven));
  _mm512_storeu_si512(to + 64, _mm512_shuffle_i32x4(odd01, odd23, kEven));
  _mm512_storeu_si512(to + 128, _mm512_shuffle_i32x4(even01, even23, kOdd));
  _mm512_storeu_si512(to + 192, _mm512_shuffle_i32x4(odd01, odd23, kOdd));
}

int16_t Widened(uint8_t number, bool is_unsigned) {
  return is_unsigned ? static_cast<int16_t>(number) : static_cast<int8_t>(number);
}

}  // namespace

IntegerGemm::IntegerGemm(int64_t depth, Side unsigned_side, const CpuFeatures& cpu)
    : depth_(depth),
      padded_((depth + kGroup - 1) / kGroup * kGroup),
      wide_(cpu.avx512vnni && cpu.avx512f),
      rows_unsigned_(unsigned_side == Side::kRows),
      element_bytes_(wide_ ? 1 : 2) {}

int32_t IntegerGemm::PackRow(const uint8_t* numbers, uint8_t flip, void* row) const {
  uint32_t sum = 0;  // modulo 2^32, as the products
  auto* bytes = static_cast<uint8_t*>(row);
  auto* shorts = static_cast<int16_t*>(row);
  if (wide_ && rows_unsigned_) {
    for (int64_t k = 0; k < depth_; ++k) {
      bytes[k] = numbers[k] ^ flip;
      sum += bytes[k];
    }
  } else if (wide_) {
    for (int64_t k = 0; k < depth_; ++k) {
      bytes[k] = numbers[k] ^ flip;
      sum += static_cast<uint32_t>(static_cast<int8_t>(bytes[k]));
    }
  } else {
    for (int64_t k = 0; k < depth_; ++k) {
      shorts[k] = Widened(numbers[k] ^ flip, rows_unsigned_);
      sum += static_cast<uint32_t>(shorts[k]);
    }
  }
  std::memset(bytes + depth_ * element_bytes_, 0, (padded_ - depth_) * element_bytes_);
  return static_cast<int32_t>(sum);
}

void IntegerGemm::PackOnes(void* row) const {
  std::memset(row, 0, row_bytes());
  for (int64_t k = 0; k < depth_; ++k) static_cast<uint8_t*>(row)[k * element_bytes_] = 1;
}

void IntegerGemm::PackPanel(const uint8_t* base, const int64_t* offsets, int64_t columns,
                            uint8_t flip, void* panel) const {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  uint8_t edge[kGroup][kPanelColumns] = {};
  alignas(32) uint8_t group[kGroup * kPanelColumns];
  int64_t k = 0;
  if (wide_ && columns == kPanelColumns) {
    for (; k + 2 * kGroup <= depth_; k += 2 * kGroup) {
      const uint8_t* rows[2 * kGroup];
      for (int64_t i = 0; i < 2 * kGroup; ++i) rows[i] = base + offsets[k + i];
      InterleaveTwo(rows, flip, static_cast<uint8_t*>(panel) + k * kPanelColumns);
    }
  }
  for (; k < padded_; k += kGroup) {
    const uint8_t* rows[kGroup];
    for (int64_t i = 0; i < kGroup; ++i) {
      // What stands beyond the depth is multiplied with zeros of the rows.
      rows[i] = base + offsets[std::min(k + i, depth_ - 1)];
      if (columns == kPanelColumns) continue;
      std::memcpy(edge[i], rows[i], columns);
      rows[i] = edge[i];
    }
    if (wide_) {
      Interleave(rows, flips, static_cast<uint8_t*>(panel) + k * kPanelColumns);
      continue;
    }
    Interleave(rows, flips, group);
    int16_t* to = static_cast<int16_t*>(panel) + k * kPanelColumns;
    for (int64_t c = 0; c < kPanelColumns; ++c) {
      for (int64_t i = 0; i < kGroup; ++i) {
        to[(i / kPair * kPanelColumns + c) * kPair + i % kPair] =
            Widened(group[c * kGroup + i], !rows_unsigned_);
      }
    }
  }
}

void IntegerGemm::Multiply(const void* rows, int64_t count, const void* panel,
                           const int32_t* starts, int32_t* tile, int64_t stride) const {
  if (wide_) {
    const auto multiply = rows_unsigned_ ? BytesFor<true>(count) : BytesFor<false>(count);
    multiply({static_cast<const uint8_t*>(rows), padded_, starts, tile, stride},
             static_cast<const uint8_t*>(panel));
    return;
  }
  const auto* shorts = static_cast<const int16_t*>(rows);
  const auto* columns = static_cast<const int16_t*>(panel);
  for (int64_t r = 0; r < count; r += kRowBlock16) {
    const RowBlock<int16_t> block = {shorts + r * padded_, padded_, starts + r, tile + r * stride,
                                     stride};
    switch (std::min(kRowBlock16, count - r)) {
      case 1: MultiplyShorts<1>(block, columns); break;
      case 2: MultiplyShorts<2>(block, columns); break;
      default: MultiplyShorts<3>(block, columns); break;
    }
  }
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// The usual blocking: a panel of b (kDepth x kPanelColumns) stays in the
// third-level cache, kRowBlocks blocks of rows of a in the second, and up to 6 x 16
// results (6 x 32 where the CPU has AVX-512) in registers while the sum runs. Each result
// is summed in the same order either way.
#include "core/ops/cpu/sgemm.h"

#include <immintrin.h>

#include <algorithm>

#include "core/base/division.h"
#include "core/base/parallel.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/vec.h"
#include "core/ops/cpu/with_rows.h"

namespace onward {
namespace {

constexpr int kRows = 6;
constexpr int kColumns = 16;
constexpr int kLane = kLanes<float>;
constexpr int64_t kDepth = 400;  // at most; sums are cut evenly
constexpr int64_t kRowBlocks = 16;
constexpr int64_t kPanelColumns = 1024;
constexpr int64_t kSmallWork = 1 << 16;  // multiplications that stay on one thread

// Packed [k][kRows] from rows [0, rows) of a; missing rows are zero.
void PackRows(StridedMatrix a, int rows, int64_t depth, float* to) {
  int64_t k = 0;
  if (rows == kRows && a.column == 1) {
    for (; k + kLane < depth; k += kLane) {
      Vec<float> v[kLane] = {};
      for (int r = 0; r < kRows; ++r) v[r] = Load(a.data + r * a.row + k);
      Transpose8(v);
      for (int i = 0; i < kLane; ++i) Store(to + (k + i) * kRows, v[i]);
    }
  }
  for (; k < depth; ++k) {
    for (int r = 0; r < kRows; ++r) {
      to[k * kRows + r] = r < rows ? a.data[r * a.row + k * a.column] : 0.0f;
    }
  }
}

// `rows` rows of a in blocks of `height`, each packed as above. Neighbouring rows are read
// along all blocks for one k after the other: each line is then read once, also where
// a power of two between the lines lets few of them stay in the cache.
void PackBlocks(StridedMatrix a, int64_t rows, int64_t height, int64_t depth, float* to) {
  int64_t packed = 0;
  if (height == kRows && a.row == 1) {
    packed = rows / kRows * kRows;
    for (int64_t k = 0; k < depth; ++k) {
      const float* from = a.data + k * a.column;
      for (int64_t i = 0; i < packed; i += kRows) {
        const __m128 first = _mm_loadu_ps(from + i);
        const __m128i rest = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + i + 4));
        float* const block = to + i * depth + k * kRows;
        _mm_storeu_ps(block, first);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(block + 4), rest);
      }
    }
  }
  for (; packed < rows; packed += height) {
    PackRows({a.data + packed * a.row, a.row, a.column},
             static_cast<int>(std::min(height, rows - packed)), depth,
             to + packed / height * kRows * depth);
  }
}

// Packed [k][kColumns] from columns [0, columns) of b; missing ones are zero.
void PackColumns(StridedMatrix b, int columns, int64_t depth, float* to) {
  int64_t k = 0;
  if (columns == kColumns && b.column == 1) {
    for (; k < depth; ++k) {
      const float* from = b.data + k * b.row;
      Store(to + k * kColumns, Load(from));
      Store(to + k * kColumns + kLane, Load(from + kLane));
    }
  } else if (columns == kColumns && b.row == 1) {
    for (; k + kLane <= depth; k += kLane) {
      for (int half = 0; half < kColumns; half += kLane) {
        Vec<float> v[kLane];
        for (int c = 0; c < kLane; ++c) v[c] = Load(b.data + (half + c) * b.column + k);
        Transpose8(v);
        for (int i = 0; i < kLane; ++i) Store(to + (k + i) * kColumns + half, v[i]);
      }
    }
  }
  for (; k < depth; ++k) {
    for (int c = 0; c < kColumns; ++c) {
      to[k * kColumns + c] = c < columns ? b.data[k * b.row + c * b.column] : 0.0f;
    }
  }
}

// One block of results; `c`, `bias` and `residual` point at its first element.
struct Target {
  float* c;
  int64_t stride;
  bool add;   // to what c holds
  bool last;  // the sum is complete: apply the epilogue
  const SgemmEpilogue* epilogue;
  const float* bias;
  const float* residual;
  // The sum is stored as it is.
  bool plain() const {
    return !add && (!last || (bias == nullptr && residual == nullptr && !epilogue->bounded));
  }
};

// A block of rows of a: packed, or as they are, each row contiguous.
struct Rows {
  const float* data;
  int64_t stride;  // between rows, unless packed
  bool packed;
};

// Stores eight results, `at` elements after the first of the block, of which `column` in its row.
inline void Finish(Vec<float> v, int64_t at, int64_t column, const Target& t) {
  if (t.add) v += Load(t.c + at);
  if (t.last) {
    if (t.bias != nullptr) v += Load(t.bias + column);
    if (t.residual != nullptr) v += Load(t.residual + at);
    if (t.epilogue->bounded) v = Within(Splat(t.epilogue->low), v, Splat(t.epilogue->high));
  }
  Store(t.c + at, v);
}

template <int R, bool kPacked>
void MultiplyBlock(const Rows& rows, const float* b, int64_t depth, const Target& t) {
  Vec<float> sum[R][2] = {};
  const float* a = rows.data;
  const int64_t row = kPacked ? 1 : rows.stride;
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k) {
    const Vec<float> b0 = Load(b), b1 = Load(b + kLane);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const Vec<float> value = _mm256_broadcast_ss(a + r * row);
      sum[r][0] = _mm256_fmadd_ps(value, b0, sum[r][0]);
      sum[r][1] = _mm256_fmadd_ps(value, b1, sum[r][1]);
    }
    a += kPacked ? kRows : 1;
    b += kColumns;
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    for (int h = 0; h < 2; ++h) {
      Finish(sum[r][h], r * t.stride + h * kLane, h * kLane, t);
    }
  }
}

// kBlocks blocks of rows, `next` elements apart in a, times two blocks of columns, `other`
// elements apart in b.
template <int R, int kBlocks, bool kPacked>
[[gnu::target("avx512f")]] void MultiplyWide(const Rows& rows, int64_t next, const float* b,
                                             int64_t other, int64_t depth, const Target& t) {
  __m512 sum[kBlocks][R][2] = {};
  const float* a = rows.data;
  const int64_t row = kPacked ? 1 : rows.stride;
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k) {
    const __m512 b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + other);
#pragma GCC unroll 2
    for (int i = 0; i < kBlocks; ++i) {
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        const __m512 value = _mm512_set1_ps(a[i * next + r * row]);
        sum[i][r][0] = _mm512_fmadd_ps(value, b0, sum[i][r][0]);
        sum[i][r][1] = _mm512_fmadd_ps(value, b1, sum[i][r][1]);
      }
    }
    a += kPacked ? kRows : 1;
    b += kColumns;
  }
  if (t.plain()) {
#pragma GCC unroll 12
    for (int r = 0; r < kBlocks * R; ++r) {
      _mm512_storeu_ps(t.c + r * t.stride, sum[r / R][r % R][0]);
      _mm512_storeu_ps(t.c + r * t.stride + kColumns, sum[r / R][r % R][1]);
    }
    return;
  }
#pragma GCC unroll 12
  for (int r = 0; r < kBlocks * R; ++r) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m512 v = sum[r / R][r % R][h];
      const int64_t column = h * kColumns, at = r * t.stride + column;
      Finish(_mm512_castps512_ps256(v), at, column, t);
      Finish(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)), at + kLane,
             column + kLane, t);
    }
  }
}

void MultiplyRows(int rows, const Rows& a, const float* b, int64_t depth, const Target& t) {
  WithRows<kRows>(rows, [&](auto r) {
    if (a.packed) return MultiplyBlock<r, true>(a, b, depth, t);
    MultiplyBlock<r, false>(a, b, depth, t);
  });
}

void MultiplyWideRows(int rows, int blocks, const Rows& a, int64_t next, const float* b,
                      int64_t other, int64_t depth, const Target& t) {
  WithRows<kRows>(rows, [&](auto r) {
    if (blocks == 1) {
      if (a.packed) return MultiplyWide<r, 1, true>(a, next, b, other, depth, t);
      return MultiplyWide<r, 1, false>(a, next, b, other, depth, t);
    }
    if (a.packed) return MultiplyWide<r, 2, true>(a, next, b, other, depth, t);
    MultiplyWide<r, 2, false>(a, next, b, other, depth, t);
  });
}

// Fewer than 16 columns: by way of a block that has them all.
void MultiplyNarrow(int rows, int columns, const Rows& a, const float* b, int64_t depth,
                    const Target& t) {
  alignas(32) float c[kRows * kColumns] = {}, residual[kRows * kColumns] = {}, bias[kColumns] = {};
  for (int r = 0; r < rows; ++r) {
    if (t.add) std::copy_n(t.c + r * t.stride, columns, c + r * kColumns);
    if (t.residual != nullptr)
      std::copy_n(t.residual + r * t.stride, columns, residual + r * kColumns);
  }
  if (t.bias != nullptr) std::copy_n(t.bias, columns, bias);
  Target whole = t;
  whole.c = c;
  whole.stride = kColumns;
  if (t.bias != nullptr) whole.bias = bias;
  if (t.residual != nullptr) whole.residual = residual;
  MultiplyRows(rows, a, b, depth, whole);
  for (int r = 0; r < rows; ++r) std::copy_n(c + r * kColumns, columns, t.c + r * t.stride);
}

// A packed panel of b and a packed block of a.
size_t PackedBytes(int64_t rows, int64_t columns, int64_t depth) {
  const int64_t packed = std::min(depth, kDepth) *
                         (std::min(columns, kPanelColumns) + std::min(rows, kRowBlocks * kRows));
  // Packing rows stores two elements more than it keeps.
  return (packed + 16) * sizeof(float) / 64 * 64 + 64;
}

}  // namespace

// `packed`: all of b in blocks of 16 columns, or null.
struct Sgemm::Operands {
  StridedMatrix a, b;
  const float* packed;
  float* c;
  const SgemmEpilogue& epilogue;
  void* workspace;
  // Rows of a that are contiguous need no packing.
  bool packs_a() const { return a.column != 1; }
};

// The results that one item computes.
struct Sgemm::Part {
  int64_t m_begin, m_end, n_begin, n_end;
};

Sgemm::Sgemm(int64_t m, int64_t n, int64_t k, int most_threads, const CpuFeatures& cpu)
    : m_(m),
      n_(n),
      k_(k),
      depth_(CeilDiv(CeilDiv(k, std::max<int64_t>(CeilDiv(k, kDepth), 1)), kLane) * kLane),
      wide_(cpu.avx512f),
      block_rows_(CeilDiv(m, std::max<int64_t>(CeilDiv(m, kRows), 1))) {
  block_rows_ = std::max<int64_t>(block_rows_, 1);
  const int64_t allowed = most_threads > 0 ? most_threads : Threads();
  const int64_t threads = IsSmall(m, n, k) ? 1 : allowed;
  // The split that reads least twice: along the longer side, in whole blocks.
  for (int64_t rows = 1; rows <= threads; ++rows) {
    if (threads % rows != 0) continue;
    const auto cost = [&](int64_t r) {
      return std::max(CeilDiv(m, r), int64_t{1}) + std::max(CeilDiv(n, threads / r), int64_t{1});
    };
    if (rows == 1 || cost(rows) < cost(row_parts_)) row_parts_ = rows;
  }
  row_parts_ = std::min(row_parts_, std::max<int64_t>(CeilDiv(m, block_rows_), 1));
  column_parts_ = std::min(std::max<int64_t>(threads / row_parts_, 1),
                           std::max<int64_t>(CeilDiv(n, kColumns), 1));
}

bool Sgemm::IsSmall(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < kSmallWork;
}

size_t Sgemm::part_bytes() const {
  return PackedBytes(CeilDiv(CeilDiv(m_, block_rows_), row_parts_) * kRows,
                     CeilDiv(CeilDiv(n_, kColumns), column_parts_) * kColumns, k_);
}

size_t Sgemm::WorkspaceBound(int64_t m, int64_t n, int64_t k, int threads) {
  return threads * PackedBytes(CeilDiv(m, kRows) * kRows, CeilDiv(n, kColumns) * kColumns, k);
}

void Sgemm::Run(StridedMatrix a, StridedMatrix b, float* c, const SgemmEpilogue& epilogue,
                void* workspace) const {
  RunParts({a, b, nullptr, c, epilogue, workspace});
}

std::vector<float> Sgemm::Pack(StridedMatrix b) const {
  std::vector<float> packed(CeilDiv(n_, kColumns) * kColumns * k_);
  for (int64_t j = 0; j < n_; j += kColumns) {
    PackColumns({b.data + j * b.column, b.row, b.column},
                static_cast<int>(std::min<int64_t>(kColumns, n_ - j)), k_, packed.data() + j * k_);
  }
  return packed;
}

void Sgemm::RunPacked(StridedMatrix a, const std::vector<float>& b, float* c,
                      const SgemmEpilogue& epilogue, void* workspace) const {
  RunParts({a, {}, b.data(), c, epilogue, workspace});
}

// More pieces than threads, so that these can help each other, where a piece repeats
// little of the packing.
void Sgemm::RunParts(const Operands& operands) const {
  const int64_t row_blocks = CeilDiv(m_, block_rows_), column_blocks = CeilDiv(n_, kColumns);
  int64_t rows = row_parts_, columns = column_parts_;
  if (column_parts_ > 1 && !operands.packs_a()) {
    columns = ItemsFor(column_blocks / 2, column_parts_);
  } else {
    rows = ItemsFor(row_blocks / (operands.packed != nullptr ? 2 : kRowBlocks), row_parts_);
  }
  ParallelItems(rows * columns, threads(), [&](int64_t item, int64_t slot) {
    const int64_t r = item / columns, c = item % columns;
    const Part part{row_blocks * r / rows * block_rows_,
                    std::min(m_, row_blocks * (r + 1) / rows * block_rows_),
                    column_blocks * c / columns * kColumns,
                    std::min(n_, column_blocks * (c + 1) / columns * kColumns)};
    RunPart(part, operands, At<char>(operands.workspace, slot * part_bytes()));
  });
}

void Sgemm::RunPart(const Part& part, const Operands& operands, void* workspace) const {
  const auto& [a, b, packed, c, epilogue, all_workspace] = operands;
  const auto& [m_begin, m_end, n_begin, n_end] = part;
  const bool packs_a = operands.packs_a();
  float* const b_packed = static_cast<float*>(workspace);
  float* const a_packed =
      b_packed +
      std::min(k_, kDepth) *
          std::min(CeilDiv(CeilDiv(n_, kColumns), column_parts_) * kColumns, kPanelColumns);
  const int64_t c_row = epilogue.row == 0 ? n_ : epilogue.row;
  for (int64_t j = n_begin; j < n_end; j += kPanelColumns) {
    const int64_t columns = std::min(kPanelColumns, n_end - j);
    for (int64_t p = 0; p < k_; p += depth_) {
      const int64_t depth = std::min(depth_, k_ - p);
      for (int64_t jj = 0; packed == nullptr && jj < columns; jj += kColumns) {
        PackColumns({b.data + p * b.row + (j + jj) * b.column, b.row, b.column},
                    static_cast<int>(std::min<int64_t>(kColumns, columns - jj)), depth,
                    b_packed + jj * depth);
      }
      const auto b_block = [&](int64_t jj) {
        return packed == nullptr ? b_packed + jj * depth : packed + (j + jj) * k_ + p * kColumns;
      };
      for (int64_t i = m_begin; i < m_end; i += kRowBlocks * block_rows_) {
        const int64_t rows = std::min(kRowBlocks * block_rows_, m_end - i);
        if (packs_a) {
          PackBlocks({a.data + i * a.row + p * a.column, a.row, a.column}, rows, block_rows_, depth,
                     a_packed);
        }
        for (int64_t jj = 0, next = 0; jj < columns; jj = next) {
          const bool pair = wide_ && columns - jj >= 2 * kColumns;
          next = std::min(columns, jj + (pair ? 2 : 1) * kColumns);
          const int width = static_cast<int>(next - jj);
          for (int64_t ii = 0, below = 0; ii < rows; ii = below) {
            const int blocks = pair && packs_a && rows - ii >= 2 * block_rows_ ? 2 : 1;
            const int height = static_cast<int>(std::min<int64_t>(block_rows_, rows - ii));
            below = ii + blocks * height;
            const int64_t at = (i + ii) * c_row + j + jj;
            const Target target{c + at,
                                c_row,
                                epilogue.add || p > 0,
                                p + depth == k_,
                                &epilogue,
                                epilogue.bias == nullptr ? nullptr : epilogue.bias + j + jj,
                                epilogue.residual == nullptr ? nullptr : epilogue.residual + at};
            const Rows a_block = packs_a
                                     ? Rows{a_packed + ii / block_rows_ * kRows * depth, 1, true}
                                     : Rows{a.data + (i + ii) * a.row + p, a.row, false};
            if (pair) {
              MultiplyWideRows(height, blocks, a_block,
                               packs_a ? kRows * depth : block_rows_ * a.row, b_block(jj),
                               b_block(jj + kColumns) - b_block(jj), depth, target);
            } else if (width == kColumns) {
              MultiplyRows(height, a_block, b_block(jj), depth, target);
            } else {
              MultiplyNarrow(height, width, a_block, b_block(jj), depth, target);
            }
          }
        }
      }
    }
  }
}

}  // namespace onward

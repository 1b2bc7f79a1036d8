// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rnn/rnn_gemm.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/base/parallel.h"
#include "core/ops/cpu/vec.h"
#include "core/ops/cpu/with_rows.h"

namespace onward {
namespace {

// Rows of a tile: 6 x 2 sums, 2 vectors of b and a factor fill the 16 registers.
constexpr int kTileRows = 6;
// Depth of a panel that stays in the first-level cache, and rows of a block of a
// that stays in the second-level one.
constexpr int64_t kDepth = 256;
constexpr int64_t kBlockRows = 8 * kTileRows;
// Multiplications that are worth a second thread.
constexpr int64_t kGrain = 1 << 17;

// Copies count <= kMost elements; the usual kMost without a call.
template <int kMost, typename T>
inline void CopyUpTo(const T* from, int64_t count, T* to) {
  if (count == kMost) {
    std::memcpy(to, from, kMost * sizeof(T));
  } else {
    std::memcpy(to, from, count * sizeof(T));
  }
}

// What a tile adds its product to.
template <typename T>
struct TileTarget {
  T* c;
  int64_t stride;
  int first, second;  // columns in the two vectors of a panel's width
  bool accumulate;
  const T* bias;  // may be null
};

// Rounded once, however the compiler likes to contract.
Vec<float> MulAdd(Vec<float> a, Vec<float> b, Vec<float> c) { return _mm256_fmadd_ps(a, b, c); }
Vec<double> MulAdd(Vec<double> a, Vec<double> b, Vec<double> c) { return _mm256_fmadd_pd(a, b, c); }

// kRows rows of a times one panel; element (r, p) of a is at r * stride + p, or
// in a packed block at r + p * kTileRows.
template <typename T, int kRows, bool kPacked>
void Tile(const T* a, int64_t stride, const T* panel, int64_t depth, const TileTarget<T>& to) {
  constexpr int kStep = kLanes<T>;
  Vec<T> sums[kRows][2] = {};
  if (to.accumulate) {
    for (int r = 0; r < kRows; ++r) {
      sums[r][0] = Load(to.c + r * to.stride, to.first);
      sums[r][1] = Load(to.c + r * to.stride + kStep, to.second);
    }
  }
  if (to.bias != nullptr) {
    const Vec<T> first = Load(to.bias, to.first), second = Load(to.bias + kStep, to.second);
    for (int r = 0; r < kRows; ++r) {
      sums[r][0] += first;
      sums[r][1] += second;
    }
  }
  for (int64_t p = 0; p < depth; ++p) {
    const Vec<T> first = Load(panel), second = Load(panel + kStep);
    panel += 2 * kStep;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const Vec<T> factor = Splat(kPacked ? a[p * kTileRows + r] : a[r * stride + p]);
      sums[r][0] = MulAdd(factor, first, sums[r][0]);
      sums[r][1] = MulAdd(factor, second, sums[r][1]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    Store<T>(to.c + r * to.stride, sums[r][0], to.first);
    Store<T>(to.c + r * to.stride + kStep, sums[r][1], to.second);
  }
}

// The same for two panels of floats, `next` elements apart, in AVX-512: sums in the same order.
template <int kRows, bool kPacked>
[[gnu::target("avx512f")]] void WideTile(const float* a, int64_t stride, const float* panel,
                                         int64_t next, int64_t depth, const TileTarget<float>& to) {
  constexpr int kWidth = PackedMatrix<float>::kWidth;
  __m512 sums[kRows][2] = {};
  for (int r = 0; to.accumulate && r < kRows; ++r) {
    sums[r][0] = _mm512_loadu_ps(to.c + r * to.stride);
    sums[r][1] = _mm512_loadu_ps(to.c + r * to.stride + kWidth);
  }
  for (int r = 0; to.bias != nullptr && r < kRows; ++r) {
    sums[r][0] += _mm512_loadu_ps(to.bias);
    sums[r][1] += _mm512_loadu_ps(to.bias + kWidth);
  }
  for (int64_t p = 0; p < depth; ++p) {
    const __m512 first = _mm512_loadu_ps(panel), second = _mm512_loadu_ps(panel + next);
    panel += kWidth;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(kPacked ? a[p * kTileRows + r] : a[r * stride + p]);
      sums[r][0] = _mm512_fmadd_ps(factor, first, sums[r][0]);
      sums[r][1] = _mm512_fmadd_ps(factor, second, sums[r][1]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(to.c + r * to.stride, sums[r][0]);
    _mm512_storeu_ps(to.c + r * to.stride + kWidth, sums[r][1]);
  }
}

// A block of a, its rows in tiles of nearly equal height (16 are 6 + 5 + 5).
template <typename T>
struct Block {
  const T* a;
  int64_t row_stride;  // of a packed block: 1
  int64_t rows, depth;
  bool packed = false;

  int64_t tiles() const { return (rows + kTileRows - 1) / kTileRows; }
  int64_t first_row(int64_t tile) const {
    return rows % kTileRows == 0 ? tile * kTileRows : rows * tile / tiles();
  }
};

template <typename T, int kRows>
void BlockTile(const Block<T>& block, int64_t tile, const T* panel, const TileTarget<T>& to) {
  if (block.packed) {
    Tile<T, kRows, true>(block.a + tile * block.depth * kTileRows, 1, panel, block.depth, to);
  } else {
    Tile<T, kRows, false>(block.a + block.first_row(tile) * block.row_stride, block.row_stride,
                          panel, block.depth, to);
  }
}

template <typename T>
void BlockTile(int64_t rows, const Block<T>& block, int64_t tile, const T* panel,
               const TileTarget<T>& to) {
  WithRows<kTileRows>(static_cast<int>(rows),
                      [&](auto r) { BlockTile<T, r>(block, tile, panel, to); });
}

void WideBlockTile(int64_t rows, const Block<float>& block, int64_t tile, const float* panel,
                   int64_t next, const TileTarget<float>& to) {
  WithRows<kTileRows>(static_cast<int>(rows), [&](auto r) {
    if (block.packed) {
      WideTile<r, true>(block.a + tile * block.depth * kTileRows, 1, panel, next, block.depth, to);
    } else {
      WideTile<r, false>(block.a + block.first_row(tile) * block.row_stride, block.row_stride,
                         panel, next, block.depth, to);
    }
  });
}

// The block's product with rows [from, from + depth) of b.
template <typename T>
void MultiplyBlock(const Block<T>& block, const PackedMatrix<T>& b, int64_t from, bool accumulate,
                   const T* bias, T* c, int64_t c_stride) {
  constexpr int kWidth = PackedMatrix<T>::kWidth, kHalf = kWidth / 2;
  const int64_t tiles = block.tiles();
  for (int64_t column = 0, next = 0; column < b.n; column = next) {
    const bool pair = std::is_same_v<T, float> && b.wide && b.n - column >= 2 * kWidth;
    next = column + (pair ? 2 : 1) * kWidth;
    const T* panel = b.panels + column * b.k + from * kWidth;
    const int count = static_cast<int>(std::min<int64_t>(kWidth, b.n - column));
    TileTarget<T> to = {nullptr,
                        c_stride,
                        std::min(count, kHalf),
                        std::max(count - kHalf, 0),
                        accumulate,
                        bias == nullptr ? nullptr : bias + column};
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t row = block.first_row(i);
      to.c = c + row * c_stride + column;
      const int64_t rows = block.first_row(i + 1) - row;
      if constexpr (std::is_same_v<T, float>) {
        if (pair) {
          WideBlockTile(rows, block, i, panel, kWidth * b.k, to);
          continue;
        }
      }
      BlockTile(rows, block, i, panel, to);
    }
  }
}

// Rows of a transposed matrix as a block: tile by tile, in it depth by depth.
template <typename T>
Block<T> PackRows(const T* columns, int64_t stride, int64_t rows, int64_t depth, T* to) {
  const Block<T> block = {to, 1, rows, depth, true};
  const int64_t tiles = block.tiles();
  for (int64_t p = 0; p < depth; ++p) {
    const T* from = columns + p * stride;
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t row = block.first_row(i), count = block.first_row(i + 1) - row;
      T* tile = to + (i * depth + p) * kTileRows;
      CopyUpTo<kTileRows>(from + row, count, tile);
    }
  }
  return block;
}

// Rows [begin, end) of the products.
template <typename T>
void ProductRows(GemmOperand<T> a, int64_t begin, int64_t end,
                 absl::Span<const ProductPart<T>> parts, bool accumulate, const T* bias) {
  alignas(64) T packed[kBlockRows * kDepth];
  const int64_t k = parts[0].b.k;
  for (int64_t row = begin; row < end; row += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, end - row);
    for (int64_t from = 0; from == 0 || from < k; from += kDepth) {
      const int64_t depth = std::min(kDepth, k - from);
      const Block<T> block =
          a.transposed ? PackRows(a.data + from * a.stride + row, a.stride, rows, depth, packed)
                       : Block<T>{a.data + row * a.stride + from, a.stride, rows, depth};
      for (const ProductPart<T>& part : parts) {
        MultiplyBlock(block, part.b, from, accumulate || from > 0, from > 0 ? nullptr : bias,
                      part.c + row * part.c_stride, part.c_stride);
      }
    }
  }
}

// 16 rows of a transposed matrix, side by side: column p becomes to[p * 16].
// Returns how many columns were done.
int64_t PackWholePanel(const float* from, int64_t stride, int64_t depth, float* to) {
  constexpr int kStep = kLanes<float>;
  int64_t p = 0;
  for (; p + kStep <= depth; p += kStep) {
    for (int half = 0; half < 2 * kStep; half += kStep) {
      Vec<float> v[kStep];
      for (int i = 0; i < kStep; ++i) v[i] = Load(from + (half + i) * stride + p);
      Transpose8(v);
      for (int i = 0; i < kStep; ++i) Store(to + (p + i) * 2 * kStep + half, v[i]);
    }
  }
  return p;
}
int64_t PackWholePanel(const double*, int64_t, int64_t, double*) { return 0; }

template <typename T>
PackedMatrix<T> PackPanels(GemmOperand<T> b, int64_t k, int64_t n, T* to, const CpuFeatures& cpu) {
  constexpr int kWidth = PackedMatrix<T>::kWidth;
  constexpr int64_t kPackGrain = 1 << 14;  // elements
  const int64_t panel_size = std::max<int64_t>(k * kWidth, 1);
  ParallelFor(PackedMatrix<T>::PanelCount(n), kPackGrain / panel_size + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t panel = begin; panel < end; ++panel) {
                  const int64_t column = panel * kWidth;
                  const int count = static_cast<int>(std::min<int64_t>(kWidth, n - column));
                  T* rows = to + panel * k * kWidth;
                  if (count < kWidth) std::fill_n(rows, k * kWidth, T(0));
                  int64_t p = 0;
                  if (b.transposed && count == kWidth) {
                    p = PackWholePanel(b.data + column * b.stride, b.stride, k, rows);
                  }
                  for (; p < k; ++p) {
                    T* row = rows + p * kWidth;
                    if (b.transposed) {
                      for (int j = 0; j < count; ++j) row[j] = b.data[(column + j) * b.stride + p];
                    } else {
                      CopyUpTo<kWidth>(b.data + p * b.stride + column, count, row);
                    }
                  }
                }
              });
  return {to, k, n, cpu.avx512f};
}

template <typename T>
void OnAllThreads(GemmOperand<T> a, int64_t m, absl::Span<const ProductPart<T>> parts,
                  bool accumulate) {
  if (parts.empty()) return;
  int64_t row_work = 1;
  for (const ProductPart<T>& part : parts) row_work += part.b.k * part.b.n;
  // Every range reads all of b, so a thread gets one.
  const int64_t grain = std::max(kGrain / row_work + 1, (m + Threads() - 1) / Threads());
  ParallelFor(m, grain, [&](int64_t begin, int64_t end) {
    ProductRows<T>(a, begin, end, parts, accumulate, nullptr);
  });
}

}  // namespace

template <>
PackedMatrix<float> Pack(GemmOperand<float> b, int64_t k, int64_t n, float* to,
                         const CpuFeatures& cpu) {
  return PackPanels(b, k, n, to, cpu);
}

template <typename T>
PackedMatrix<T> Pack(GemmOperand<T> b, int64_t k, int64_t n, T* to, const CpuFeatures& cpu) {
  return PackPanels(b, k, n, to, cpu);
}

template <typename T>
void AddProduct(const T* a, int64_t a_stride, int64_t m, const PackedMatrix<T>& b, const T* bias,
                T* c, int64_t c_stride) {
  const ProductPart<T> part = {b, c, c_stride};
  ProductRows<T>({a, a_stride}, 0, m, absl::MakeConstSpan(&part, 1), true, bias);
}

template <>
void LargeProduct(GemmOperand<float> a, int64_t m, absl::Span<const ProductPart<float>> parts,
                  bool accumulate) {
  OnAllThreads(a, m, parts, accumulate);
}

template <typename T>
void LargeProduct(GemmOperand<T> a, int64_t m, absl::Span<const ProductPart<T>> parts,
                  bool accumulate) {
  OnAllThreads(a, m, parts, accumulate);
}

template PackedMatrix<double> Pack(GemmOperand<double>, int64_t, int64_t, double*,
                                   const CpuFeatures&);
template void AddProduct(const float*, int64_t, int64_t, const PackedMatrix<float>&, const float*,
                         float*, int64_t);
template void AddProduct(const double*, int64_t, int64_t, const PackedMatrix<double>&,
                         const double*, double*, int64_t);
template void LargeProduct(GemmOperand<double>, int64_t, absl::Span<const ProductPart<double>>,
                           bool);

}  // namespace onward

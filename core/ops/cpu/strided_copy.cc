// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/strided_copy.h"

#include <immintrin.h>

#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/cpu/vec.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

// A plane is walked in blocks small enough to stay in cache while they are moved, unit by unit.
constexpr int64_t kBlock = 64;
// Where there are few rows or few columns, a thread takes so many of the others at a time.
constexpr int64_t kLong = 4096;

// dst[j * dst_row + k] = src[k * src_row + j] for j < columns, k < rows.
template <typename T>
void TransposeEdge(T* dst, int64_t dst_row, const T* src, int64_t src_row, int64_t columns,
                   int64_t rows) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t k = 0; k < rows; ++k) dst[j * dst_row + k] = src[k * src_row + j];
  }
}

void TransposeUnit(uint32_t* dst, int64_t dst_row, const uint32_t* src, int64_t src_row) {
  Vec<float> r[8];
  for (int i = 0; i < 8; ++i) r[i] = Load(reinterpret_cast<const float*>(src + i * src_row));
  Transpose8(r);
  for (int i = 0; i < 8; ++i) Store(reinterpret_cast<float*>(dst + i * dst_row), r[i]);
}

void TransposeUnit(uint64_t* dst, int64_t dst_row, const uint64_t* src, int64_t src_row) {
  __m256d r[4];
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_loadu_pd(reinterpret_cast<const double*>(src + i * src_row));
  }
  const __m256d t0 = _mm256_unpacklo_pd(r[0], r[1]);
  const __m256d t1 = _mm256_unpackhi_pd(r[0], r[1]);
  const __m256d t2 = _mm256_unpacklo_pd(r[2], r[3]);
  const __m256d t3 = _mm256_unpackhi_pd(r[2], r[3]);
  double* out = reinterpret_cast<double*>(dst);
  _mm256_storeu_pd(out, _mm256_permute2f128_pd(t0, t2, 0x20));
  _mm256_storeu_pd(out + dst_row, _mm256_permute2f128_pd(t1, t3, 0x20));
  _mm256_storeu_pd(out + 2 * dst_row, _mm256_permute2f128_pd(t0, t2, 0x31));
  _mm256_storeu_pd(out + 3 * dst_row, _mm256_permute2f128_pd(t1, t3, 0x31));
}

template <typename T>
constexpr int64_t kUnit = sizeof(T) == 4   ? 8
                          : sizeof(T) == 8 ? 4
                                           : 16;

template <typename T>
void TransposeUnit(T* dst, int64_t dst_row, const T* src, int64_t src_row) {
  TransposeEdge(dst, dst_row, src, src_row, kUnit<T>, kUnit<T>);
}

constexpr int64_t kMostInterleaved = 4;

// A plane with few rows or few columns (channels of an image, block sizes). Where these lie side
// by side, the distance is a constant and the loop becomes vector code.
template <int kRows, typename T>
void Interleave(T* dst, int64_t dst_row, const T* src, int64_t src_row, int64_t columns) {
  if (dst_row == kRows) {
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      for (int k = 0; k < kRows; ++k) dst[j * kRows + k] = src[k * src_row + j];
    }
    return;
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int k = 0; k < kRows; ++k) dst[j * dst_row + k] = src[k * src_row + j];
  }
}

template <int kColumns, typename T>
void Deinterleave(T* dst, int64_t dst_row, const T* src, int64_t src_row, int64_t rows) {
  if (src_row == kColumns) {
#pragma omp simd
    for (int64_t k = 0; k < rows; ++k) {
      for (int j = 0; j < kColumns; ++j) dst[j * dst_row + k] = src[k * kColumns + j];
    }
    return;
  }
  for (int64_t k = 0; k < rows; ++k) {
    for (int j = 0; j < kColumns; ++j) dst[j * dst_row + k] = src[k * src_row + j];
  }
}

// Lines at a distance with many factors of two compete for the same places in the cache. True:
// those of the destination do so more, so each is better written as a whole; else the same for
// those of the source.
bool WriteWholeLines(int64_t dst_row, int64_t src_row) {
  const auto factors = [](int64_t distance) {
    return std::min<int64_t>(distance & -distance, 1024);
  };
  const int64_t dst = factors(dst_row), src = factors(src_row);
  return dst == src ? dst_row > src_row || dst >= 256 : dst > src;
}

template <typename T>
void TransposeBlock(T* dst, int64_t dst_row, const T* src, int64_t src_row, int64_t columns,
                    int64_t rows) {
  switch (rows) {
    case 2: return Interleave<2>(dst, dst_row, src, src_row, columns);
    case 3: return Interleave<3>(dst, dst_row, src, src_row, columns);
    case 4: return Interleave<4>(dst, dst_row, src, src_row, columns);
    default: break;
  }
  switch (columns) {
    case 2: return Deinterleave<2>(dst, dst_row, src, src_row, rows);
    case 3: return Deinterleave<3>(dst, dst_row, src, src_row, rows);
    case 4: return Deinterleave<4>(dst, dst_row, src, src_row, rows);
    default: break;
  }
  constexpr int64_t kStep = kUnit<T>;
  const auto unit = [&](int64_t j, int64_t k) {
    TransposeUnit(dst + j * dst_row + k, dst_row, src + k * src_row + j, src_row);
  };
  const int64_t full_columns = columns - columns % kStep, full_rows = rows - rows % kStep;
  for (int64_t j0 = 0; j0 < full_columns; j0 += kBlock) {
    const int64_t j1 = std::min(j0 + kBlock, full_columns);
    for (int64_t k0 = 0; k0 < full_rows; k0 += kBlock) {
      const int64_t k1 = std::min(k0 + kBlock, full_rows);
      if (WriteWholeLines(dst_row, src_row)) {
        for (int64_t j = j0; j < j1; j += kStep) {
          for (int64_t k = k0; k < k1; k += kStep) unit(j, k);
        }
      } else {
        for (int64_t k = k0; k < k1; k += kStep) {
          for (int64_t j = j0; j < j1; j += kStep) unit(j, k);
        }
      }
    }
  }
  TransposeEdge(dst + full_rows, dst_row, src + full_rows * src_row, src_row, full_columns,
                rows - full_rows);
  TransposeEdge(dst + full_columns * dst_row, dst_row, src + full_columns, src_row,
                columns - full_columns, rows);
}

}  // namespace

StridedCopy::StridedCopy(DType dtype, absl::Span<const int64_t> dims,
                         absl::Span<const int64_t> src_strides, int64_t src_offset)
    : dtype_(dtype), offset_(src_offset) {
  Merge(dims, src_strides);
  ChooseWay();
}

void StridedCopy::Merge(absl::Span<const int64_t> dims, absl::Span<const int64_t> src_strides) {
  elements_ = 1;
  for (int64_t d : dims) elements_ *= d;
  for (size_t i = 0; i < dims.size() && elements_ > 0; ++i) {
    if (dims[i] == 1) continue;
    if (!dims_.empty() && src_.back() == src_strides[i] * dims[i]) {
      dims_.back() *= dims[i];
      src_.back() = src_strides[i];
    } else {
      dims_.push_back(dims[i]);
      src_.push_back(src_strides[i]);
    }
  }
  if (dims_.empty()) {
    dims_.push_back(std::min<int64_t>(elements_, 1));
    src_.push_back(1);
  }
  dst_ = Shape(dims_).Strides();
}

void StridedCopy::ChooseWay() {
  const int last = static_cast<int>(dims_.size()) - 1;
  if (src_[last] == 1) {
    way_ = Way::kRuns;
    return;
  }
  if (src_[last] == 0) {
    way_ = Way::kFill;
    return;
  }
  way_ = Way::kGather;
  for (int i = last - 1; i >= 0; --i) {
    if (src_[i] != 1) continue;
    way_ = Way::kTranspose;
    for (Shape::Dims* v : {&dims_, &dst_, &src_}) {
      std::rotate(v->begin() + i, v->begin() + i + 1, v->begin() + last);
    }
    return;
  }
}

bool StridedCopy::transposes() const {
  const int last = static_cast<int>(dims_.size()) - 1;
  if (way_ != Way::kTranspose) return false;
  const int64_t fewer = std::min(dims_[last - 1], dims_[last]);
  return fewer >= kUnit<uint32_t> || fewer <= kMostInterleaved;
}

bool StridedCopy::identity() const { return dims_.size() == 1 && src_[0] == 1 && offset_ == 0; }

template <typename T>
void StridedCopy::CopyRuns(T* dst, const T* src) const {
  const int outer = static_cast<int>(dims_.size()) - 1;
  const int64_t run = dims_[outer];
  const int64_t rows = elements_ / run;
  if (rows < Threads()) {
    ForRows(dims_, dst_, src_, outer, 0, rows, [&](int64_t d, int64_t s) {
      ParallelFor(run, MoveGrain<T>(), [&](int64_t begin, int64_t end) {
        CopyRun(dst + d + begin, src + s + begin, end - begin);
      });
    });
    return;
  }
  ParallelFor(rows, RowGrain<T>(run), [&](int64_t begin, int64_t end) {
    ForRows(dims_, dst_, src_, outer, begin, end,
            [&](int64_t d, int64_t s) { CopyRun(dst + d, src + s, run); });
  });
}

template <typename T>
void StridedCopy::Fill(T* dst, const T* src) const {
  const int outer = static_cast<int>(dims_.size()) - 1;
  const int64_t run = dims_[outer];
  const int64_t rows = elements_ / run;
  if (rows < Threads()) {
    ForRows(dims_, dst_, src_, outer, 0, rows, [&](int64_t d, int64_t s) {
      ParallelFor(run, MoveGrain<T>(), [&](int64_t begin, int64_t end) {
        std::fill(dst + d + begin, dst + d + end, src[s]);
      });
    });
    return;
  }
  ParallelFor(rows, RowGrain<T>(run), [&](int64_t begin, int64_t end) {
    ForRows(dims_, dst_, src_, outer, begin, end,
            [&](int64_t d, int64_t s) { std::fill(dst + d, dst + d + run, src[s]); });
  });
}

template <typename T>
void StridedCopy::GatherElements(T* dst, const T* src) const {
  const int outer = static_cast<int>(dims_.size()) - 1;
  const int64_t run = dims_[outer];
  const int64_t stride = src_[outer];
  ParallelFor(elements_ / run, RowGrain<T>(run), [&](int64_t begin, int64_t end) {
    ForRows(dims_, dst_, src_, outer, begin, end, [&](int64_t d, int64_t s) {
      for (int64_t k = 0; k < run; ++k) dst[d + k] = src[s + k * stride];
    });
  });
}

template <typename T>
void StridedCopy::TransposePlanes(T* dst, const T* src) const {
  const int outer = static_cast<int>(dims_.size()) - 2;
  const int64_t columns = dims_[outer], rows = dims_[outer + 1];
  const int64_t dst_row = dst_[outer], src_row = src_[outer + 1];
  const int64_t planes = elements_ / (columns * rows);
  // Small planes go to a thread as a whole; large ones are cut, the columns
  // first, and the rows where there are few columns.
  const bool cut = columns * rows > 4 * MoveGrain<T>();
  const int64_t wide = !cut ? columns : rows < kBlock ? kLong : kBlock;
  const int64_t tall = !cut ? rows : columns < kBlock ? kLong : kBlock;
  const int64_t across = (columns + wide - 1) / wide;
  const int64_t blocks = across * ((rows + tall - 1) / tall);
  const int64_t grain = RowGrain<T>(std::min(wide, columns) * std::min(tall, rows));
  ParallelFor(planes * blocks, grain, [&](int64_t begin, int64_t end) {
    if (blocks == 1) {
      ForRows(dims_, dst_, src_, outer, begin, end, [&](int64_t d, int64_t s) {
        TransposeBlock(dst + d, dst_row, src + s, src_row, columns, rows);
      });
      return;
    }
    const int64_t first = begin / blocks;
    int64_t block = begin;
    ForRows(dims_, dst_, src_, outer, first, (end + blocks - 1) / blocks,
            [&](int64_t d, int64_t s) {
              const int64_t stop = std::min(end, (block / blocks + 1) * blocks);
              for (; block < stop; ++block) {
                const int64_t j = block % blocks % across * wide;
                const int64_t k = block % blocks / across * tall;
                TransposeBlock(dst + d + j * dst_row + k, dst_row, src + s + k * src_row + j,
                               src_row, std::min(wide, columns - j), std::min(tall, rows - k));
              }
            });
  });
}

void StridedCopy::Run(void* dst, const void* src) const {
  if (elements_ == 0) return;
  const bool movable = DispatchWidth(dtype_, [&]<typename T>() {
    T* to = static_cast<T*>(dst);
    const T* from = static_cast<const T*>(src) + offset_;
    switch (way_) {
      case Way::kRuns: return CopyRuns(to, from);
      case Way::kFill: return Fill(to, from);
      case Way::kTranspose: return TransposePlanes(to, from);
      case Way::kGather: return GatherElements(to, from);
    }
  });
  CheckInvariant(movable, "StridedCopy serves movable types");
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers summed in 32 bits: exact, modulo 2^32, on every CPU. Rows are
// multiplied with panels of columns; one side is unsigned and the other signed, and who has
// it otherwise flips the sign bit and moves the zero point by 128.
#ifndef ONWARD_CORE_OPS_QUANTIZE_INTEGER_GEMM_H_
#define ONWARD_CORE_OPS_QUANTIZE_INTEGER_GEMM_H_

#include <cstddef>
#include <cstdint>

#include "core/base/cpu_features.h"

namespace onward {

inline constexpr int64_t kPanelColumns = 32;
inline constexpr int64_t kMaxRowBlock = 12;
inline constexpr int32_t kNoStarts[kMaxRowBlock] = {};

class IntegerGemm {
 public:
  enum class Side { kRows, kColumns };

  // Sums over `depth` products, numbers of `unsigned_side` from 0 to 255 and those of the other
  // from -128 to 127. What `cpu` has changes the speed, not the results.
  IntegerGemm(int64_t depth, Side unsigned_side, const CpuFeatures& cpu = ThisCpu());

  int64_t depth() const { return depth_; }
  size_t row_bytes() const { return static_cast<size_t>(padded_ * element_bytes_); }
  size_t panel_bytes() const { return kPanelColumns * row_bytes(); }

  // Packs `depth` numbers, each of them flipped (0 or 0x80), and returns their sum.
  int32_t PackRow(const uint8_t* numbers, uint8_t flip, void* row) const;
  // All ones: multiplied with a panel they give its columns' sums.
  void PackOnes(void* row) const;
  // Packs `columns` of at most kPanelColumns: number k of column c is base[offsets[k] + c].
  void PackPanel(const uint8_t* base, const int64_t* offsets, int64_t columns, uint8_t flip,
                 void* panel) const;

  // tile[r * stride + c] = starts[r] + sum over k of row r times column c, for at most kMaxRowBlock
  // rows.
  void Multiply(const void* rows, int64_t count, const void* panel, const int32_t* starts,
                int32_t* tile, int64_t stride = kPanelColumns) const;

 private:
  int64_t depth_, padded_;
  bool wide_, rows_unsigned_;
  int64_t element_bytes_;
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_INTEGER_GEMM_H_

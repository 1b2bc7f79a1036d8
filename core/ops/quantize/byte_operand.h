// SPDX-License-Identifier: Apache-2.0
// Operands of a product of 8-bit integers, and what their zero points add to it.
#ifndef ONWARD_CORE_OPS_QUANTIZE_BYTE_OPERAND_H_
#define ONWARD_CORE_OPS_QUANTIZE_BYTE_OPERAND_H_

#include <cstdint>

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

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_BYTE_OPERAND_H_

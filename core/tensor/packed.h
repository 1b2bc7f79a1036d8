// SPDX-License-Identifier: Apache-2.0
// Elements narrower than a byte. Element i begins at bit i * bits of the memory, lowest bits
// first; what is left of the last byte is zero.
#ifndef ONWARD_CORE_TENSOR_PACKED_H_
#define ONWARD_CORE_TENSOR_PACKED_H_

#include <cstdint>

#include "core/tensor/tensor.h"

namespace onward {

inline bool IsPacked(DType dtype) { return DTypeBits(dtype) > 0 && DTypeBits(dtype) < 8; }

// Runs of elements that begin at a multiple of this begin at a byte.
inline constexpr int64_t kPackedStep = 8;

// Elements [begin, begin + n) of a tensor of a small type (core/base/small_float.h), one code
// per byte; those of whole bytes are copied. `begin` is a multiple of kPackedStep.
void UnpackCodes(const Tensor& from, int64_t begin, int64_t n, uint8_t* codes);
// Back; bits of a code beyond the element's are dropped. n is a multiple of kPackedStep too, or
// the run ends the tensor.
void PackCodes(const uint8_t* codes, int64_t begin, int64_t n, Tensor* to);

// One code per byte, of the whole tensor: uint8.
Tensor Unpacked(const Tensor& packed);

}  // namespace onward

#endif  // ONWARD_CORE_TENSOR_PACKED_H_

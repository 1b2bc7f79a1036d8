// SPDX-License-Identifier: Apache-2.0
// Moving runs of elements between tensors of one type, strings included.
#ifndef ONWARD_CORE_TENSOR_ELEMENTS_H_
#define ONWARD_CORE_TENSOR_ELEMENTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/tensor/tensor.h"

namespace onward {

// Ok if elements of this type start at whole bytes; `what` begins the message otherwise.
absl::Status CheckWholeBytes(DType dtype, const char* what);

// Elements [from_begin, from_begin + count) to [to_begin, ...); whole bytes each.
void CopyElements(const Tensor& from, int64_t from_begin, int64_t count, Tensor* to,
                  int64_t to_begin);

// Element i of the first axis, in the same memory.
Tensor SliceOf(const Tensor& tensor, int64_t i);

}  // namespace onward

#endif  // ONWARD_CORE_TENSOR_ELEMENTS_H_

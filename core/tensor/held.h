// SPDX-License-Identifier: Apache-2.0
// How much memory the tensors of a thread hold.
#ifndef ONWARD_CORE_TENSOR_HELD_H_
#define ONWARD_CORE_TENSOR_HELD_H_

#include <cstddef>
#include <cstdint>

#include "core/tensor/value.h"

namespace onward {

// Bytes of tensors that this thread has made, less those that it has freed (strings without
// their letters): what it holds more than at an earlier moment is the difference of the figures.
int64_t HeldTensorBytes();
// Bytes of a value that these figures leave out: the letters of strings, the items of sequences.
size_t UncountedBytes(const Value& value);

}  // namespace onward

#endif  // ONWARD_CORE_TENSOR_HELD_H_

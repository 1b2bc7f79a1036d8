// SPDX-License-Identifier: Apache-2.0
// Whether numbers are numbers.
#ifndef ONWARD_CORE_TENSOR_FINITE_H_
#define ONWARD_CORE_TENSOR_FINITE_H_

#include "core/tensor/tensor.h"

namespace onward {

// Whether no element is NaN or an infinity; true for types that have neither.
bool AllFinite(const Tensor& tensor);

}  // namespace onward

#endif  // ONWARD_CORE_TENSOR_FINITE_H_

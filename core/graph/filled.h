// SPDX-License-Identifier: Apache-2.0
// Tensors of one number.
#ifndef ONWARD_CORE_GRAPH_FILLED_H_
#define ONWARD_CORE_GRAPH_FILLED_H_

#include "core/graph/builder.h"

namespace onward {

// A tensor of this shape (a vector) whose elements all are `value`, in forms that every opset
// from 18 on has for the type.
Expr Filled(const Expr& shape, DType dtype, double value);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_FILLED_H_

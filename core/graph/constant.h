// SPDX-License-Identifier: Apache-2.0
// What a Constant node stands for.
#ifndef ONWARD_CORE_GRAPH_CONSTANT_H_
#define ONWARD_CORE_GRAPH_CONSTANT_H_

#include <optional>

#include "core/graph/graph.h"

namespace onward {

// The value of a Constant node in any of its forms (value, value_int, ...);
// nothing for other nodes, for sparse values and where an attribute is a
// reference to one of the enclosing function.
std::optional<Tensor> ConstantValue(const Node& node);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_CONSTANT_H_

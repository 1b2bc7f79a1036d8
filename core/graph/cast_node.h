// SPDX-License-Identifier: Apache-2.0
#ifndef ONWARD_CORE_GRAPH_CAST_NODE_H_
#define ONWARD_CORE_GRAPH_CAST_NODE_H_

#include <cstdint>
#include <string>

#include "core/graph/graph.h"

namespace onward {

// to = Cast(from)
inline Node CastNode(const std::string& from, const std::string& to, DType dtype) {
  Node cast;
  cast.op_type = "Cast";
  cast.inputs = {from};
  cast.outputs = {to};
  cast.attributes["to"] = static_cast<int64_t>(dtype);
  return cast;
}

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_CAST_NODE_H_

// SPDX-License-Identifier: Apache-2.0
// Operators that draw random numbers.
#ifndef ONWARD_CORE_GRAPH_RANDOM_H_
#define ONWARD_CORE_GRAPH_RANDOM_H_

#include "core/graph/graph.h"

namespace onward {

// Whether two evaluations of the node may differ.
bool IsRandom(const Node& node);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_RANDOM_H_

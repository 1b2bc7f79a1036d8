// SPDX-License-Identifier: Apache-2.0
// Operators that nobody defines.
#ifndef ONWARD_CORE_RUNTIME_UNKNOWN_OPERATORS_H_
#define ONWARD_CORE_RUNTIME_UNKNOWN_OPERATORS_H_

#include "absl/status/status.h"
#include "core/device/kernel.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"

namespace onward {

// One error that lists every operator of the graph, its bodies included, that has neither
// schema nor function nor kernel, with the nodes that call it.
absl::Status CheckOperatorsKnown(const Graph& graph, const OperatorSet& operators,
                                 const Device& device);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_UNKNOWN_OPERATORS_H_

// SPDX-License-Identifier: Apache-2.0
// Gradient nodes inside the bodies of If, Loop and Scan.
#ifndef ONWARD_TRAINING_INFO_BODY_GRADIENTS_H_
#define ONWARD_TRAINING_INFO_BODY_GRADIENTS_H_

#include <functional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"

namespace onward {

bool IsGradient(const Node& node);

// Every Gradient node among `nodes` and in their bodies.
void ForEachGradient(const std::vector<Node>& nodes, absl::FunctionRef<void(const Node&)> visit);

// Expands a graph's own Gradient nodes; the names are taken by graphs around it.
using ExpandClosed = std::function<absl::StatusOr<Graph>(
    const Graph& graph, const absl::flat_hash_set<std::string>& taken)>;

// Expands them where they stand: names resolve in the body, then in the graphs around it. What lies
// outside between an x and the body is computed once more inside, so that the body holds all of
// what is differentiated.
absl::Status ExpandBodyGradients(const OperatorSet& operators,
                                 const absl::flat_hash_set<std::string>& taken,
                                 const ExpandClosed& expand, Graph* graph);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_BODY_GRADIENTS_H_

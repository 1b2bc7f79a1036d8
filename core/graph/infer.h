// SPDX-License-Identifier: Apache-2.0
// Types of every value of a graph, as far as they follow from its inputs.
#ifndef ONWARD_CORE_GRAPH_INFER_H_
#define ONWARD_CORE_GRAPH_INFER_H_

#include <vector>

#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"
#include "core/graph/verify.h"

namespace onward {

// Fills graph->types. Declared types stay where inference knows less; a
// contradiction between the two is resolved in favour of inference. Bodies are seen
// through (infer_bodies.h).
absl::Status InferTypes(Graph* graph, const OperatorSet& operators);

// The same, leaving out nodes that cannot be typed although they break no demand of
// their operator; a broken demand is an error. Outputs of bodies stay unknown.
absl::Status InferKnownTypes(Graph* graph, const OperatorSet& operators);

// Every contradiction in it: nodes that cannot be typed, operands of the wrong element
// type, declared types that are not what is computed.
std::vector<Finding> CheckTypes(Graph graph, const OperatorSet& operators);

// Whether both can be the shape of one tensor; what is unknown fits everything.
bool ShapesFit(const ValueType& a, const ValueType& b);

// `inferred` completed by what `declared` knows in addition.
ValueType MergeTypes(const ValueType& inferred, const ValueType& declared);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_INFER_H_

// SPDX-License-Identifier: Apache-2.0
// Types seen through the bodies of If, Loop, Scan and SequenceMap.
#ifndef ONWARD_CORE_GRAPH_INFER_BODIES_H_
#define ONWARD_CORE_GRAPH_INFER_BODIES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"

namespace onward {

// What is known of a value, by its name.
using FactOf = absl::FunctionRef<InputFact(const std::string& value)>;

// Whether the node runs bodies: If, Loop, Scan, SequenceMap.
bool RunsBodies(const Node& node);

// The outer values that the bodies of a node read, each once.
std::vector<std::string> CapturedByBodies(const Node& node);

// Types of the node's outputs, those of bodies included. What goes wrong inside a body is
// no error (it may never run): what follows from it stays unknown. The work is bounded.
absl::StatusOr<std::vector<ValueType>> InferOutputs(const Node& node, FactOf known,
                                                    const OperatorSet& operators,
                                                    const std::map<std::string, int>& opsets);

// Types of the inputs of the body of a Loop, Scan or SequenceMap that hold in every
// iteration; none for If. What a file declares inside a body counts for element types
// alone: exporters write down the shapes of one iteration.
std::vector<ValueType> BodyInputTypes(const Node& node, FactOf known, const OperatorSet& operators,
                                      const std::map<std::string, int>& opsets);

// What holds for values of both types.
ValueType JoinTypes(const ValueType& a, const ValueType& b);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_INFER_BODIES_H_

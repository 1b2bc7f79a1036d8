// SPDX-License-Identifier: Apache-2.0
// Seeing the operator behind a chain of small ones. Exporters write
// LayerNormalization, Gelu and attention as arithmetic; as one operator each has one
// kernel forward and one backward, so this runs before differentiation.
#ifndef ONWARD_CORE_GRAPH_PATTERNS_RECOGNISE_H_
#define ONWARD_CORE_GRAPH_PATTERNS_RECOGNISE_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "core/graph/graph.h"

namespace onward {

// Replaces chains that compute LayerNormalization (opset 17), Gelu (opset 20) or
// ScaledDotProductAttention (of ai.onward, for float; opset 18) by that operator, gives Conv the
// zeros of a Pad before it (opset 11), and returns the number of all. The result keeps its name,
// and values inside a chain disappear; so a chain is left alone if one of those is read elsewhere,
// is an output of the graph or is named in `keep`. An initializer named in `keep` is a variable:
// its value is not a constant of the pattern.
//
// Needs the types of the values (InferTypes) and nodes in topological order.
// Subgraphs of If, Loop and Scan are not entered.
int RecogniseOperators(Graph* graph, const absl::flat_hash_set<std::string>& keep);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_PATTERNS_RECOGNISE_H_

// SPDX-License-Identifier: Apache-2.0
// What happens to generated nodes after the backward walk. Nodes of the forward
// graph, which stand before index `first`, are never removed or reordered.
#ifndef ONWARD_AUTOGRAD_TIDY_H_
#define ONWARD_AUTOGRAD_TIDY_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/graph/graph.h"

namespace onward {

// The values that subgraphs of the nodes read from outside.
absl::flat_hash_set<std::string> CapturedBySubgraphs(const std::vector<Node>& nodes);

// Removes the generated nodes that no value of `wanted` needs.
void RemoveUnused(Graph* graph, size_t first, const std::vector<std::string>& wanted);

// Generated nodes that compute what an earlier node computes give way to it;
// `wanted` follows.
void MergeEqual(Graph* graph, size_t first, std::vector<std::string>* wanted);

// Generated values that may be renamed: no subgraph captures them.
absl::flat_hash_set<std::string> RenamableValues(const Graph& graph, size_t first);
void RenameGenerated(Graph* graph, size_t first,
                     const absl::flat_hash_map<std::string, std::string>& names);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_TIDY_H_

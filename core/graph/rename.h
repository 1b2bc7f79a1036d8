// SPDX-License-Identifier: Apache-2.0
// Other names for the values of a graph.
#ifndef ONWARD_CORE_GRAPH_RENAME_H_
#define ONWARD_CORE_GRAPH_RENAME_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "core/graph/graph.h"

namespace onward {

using Renaming = absl::flat_hash_map<std::string, std::string>;  // old -> new

// The new name, or the old one where there is none.
std::string Renamed(const Renaming& names, const std::string& value);

// In what the node reads, also what its bodies capture from around it.
void RenameReads(const Renaming& names, Node* node);
// In the attributes of a Gradient node, which name values; other nodes stay.
void RenameNamed(const Renaming& names, Node* node);
void RenameOutputs(const Renaming& names, Node* node);

// In every list, node, type and body: a value inside a body is renamed like one outside.
void RenameEverywhere(const Renaming& names, Graph* graph);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_RENAME_H_

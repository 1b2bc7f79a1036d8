// SPDX-License-Identifier: Apache-2.0
// The invariants of graph.h, checked: all findings at once.
#ifndef ONWARD_CORE_GRAPH_VERIFY_H_
#define ONWARD_CORE_GRAPH_VERIFY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/graph/graph.h"

namespace onward {

// One broken rule: where, what is wrong, and how to mend it.
struct Finding {
  std::string rule;   // short, stable: "undefined-value"
  std::string place;  // "graph, node 'fc1' (Gemm)"
  std::string what;
  std::string fix;
  std::string ToString() const;
};

// A file may break rules a million times; the first thousand tell enough.
inline constexpr size_t kMaxFindings = 1000;
// A place is text that grows with the nesting: made only where it is reported.
using Place = std::function<std::string()>;
void AddFinding(const char* rule, const Place& place, std::string what, const char* fix,
                std::vector<Finding>* findings);

// The remedy for a node that breaks a demand of its operator.
inline constexpr char kMendNode[] = "mend the node's attributes or its inputs";

std::vector<Finding> Verify(const Graph& graph);
// InvalidArgument with every finding on a line of its own.
absl::Status FindingsToStatus(const std::vector<Finding>& findings);

// Nodes in topological order (stable); an error naming a cycle's node if there
// is none.
absl::Status SortNodes(Graph* graph);

// Drops nodes that no wanted value depends on, and initializers nobody reads.
void Prune(Graph* graph, const std::vector<std::string>& wanted);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_VERIFY_H_

// SPDX-License-Identifier: Apache-2.0
// Replacing calls of functions by their bodies.
#ifndef ONWARD_CORE_GRAPH_INLINE_H_
#define ONWARD_CORE_GRAPH_INLINE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/name_scope.h"

namespace onward {

// No model needs more nodes than this after expansion; beyond it a file is
// refused rather than expanded.
inline constexpr int64_t kMaxExpandedNodes = 1'000'000;

// The nodes that stand for `call`: body values get new names of `names` that begin
// with `prefix`, formal parameters become the call's inputs and outputs, attribute
// references the call's attributes (or defaults, or nothing).
absl::StatusOr<std::vector<Node>> ExpandCall(const Function& function, const Node& call,
                                             const std::string& prefix, NameScope* names);

// The nodes of the branch that If node `node` takes, giving the node's outputs; names as
// above.
absl::StatusOr<std::vector<Node>> ExpandBranch(const Node& node, bool condition,
                                               const std::string& prefix, NameScope* names);

// The same body under names of its own that begin with `prefix`; what it captures keeps its
// name. Types of values inside are left out.
Graph CopyBody(const Graph& body, const std::string& prefix, NameScope* names);

// Puts the values of the call's attributes (or defaults, or nothing) in place of
// the references to them, names unchanged.
void ResolveAttributes(const Node& call, Function* function);

// Inlines every call of graph.functions, also inside subgraphs and functions,
// except those for which `keep` says so. Recursion, missing callees and
// expansions beyond kMaxExpandedNodes are errors. The result has no functions.
absl::StatusOr<Graph> InlineFunctions(
    const Graph& graph,
    const std::function<bool(const Node& call, const Function& function)>& keep = nullptr);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_INLINE_H_

// SPDX-License-Identifier: Apache-2.0
#include "core/graph/verify.h"

#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/graph/scope.h"

namespace onward {
namespace {

using NameSet = absl::flat_hash_set<std::string>;

void VerifyScope(const Graph& graph, const Scope* outer, const Place& where,
                 std::vector<Finding>* findings) {
  Scope scope{{}, outer};
  auto define = [&](const std::string& name, const Place& place) {
    if (name.empty() || scope.names.insert(name).second) return;
    AddFinding("duplicate-value", place, absl::StrCat("value '", name, "' is defined twice"),
               "give each value one producer", findings);
  };
  const Place inputs = [&] { return where() + ", inputs"; };
  for (const NamedType& in : graph.inputs) {
    if (in.name.empty()) AddFinding("no-name", inputs, "an input has no name", "name it", findings);
    define(in.name, inputs);
  }
  for (const auto& [name, tensor] : graph.initializers) scope.names.insert(name);
  NameSet later;
  for (const Node& node : graph.nodes) later.insert(node.outputs.begin(), node.outputs.end());
  for (const Node& node : graph.nodes) {
    const Place place = [&] { return absl::StrCat(where(), ", ", node.Describe()); };
    for (const std::string& in : node.inputs) {
      if (in.empty() || scope.Has(in)) continue;
      const bool comes = later.contains(in);
      AddFinding(comes ? "not-sorted" : "undefined-value", place,
                 absl::StrCat("reads '", in,
                              comes ? "' before it is computed" : "', which nothing produces"),
                 comes ? "order the nodes topologically (a cycle cannot be ordered)"
                       : "check the spelling, or add the input, initializer or node",
                 findings);
    }
    if (node.outputs.empty()) {
      AddFinding("no-output", place, "has no outputs", "remove the node or name an output",
                 findings);
    }
    ForEachBody(node, [&](const std::string& name, const Graph& body) {
      VerifyScope(
          body, &scope, [&] { return absl::StrCat(place(), " ", name); }, findings);
    });
    for (const std::string& out : node.outputs) define(out, place);
  }
  for (const NamedType& out : graph.outputs) {
    if (scope.Has(out.name)) continue;
    AddFinding("undefined-output", where, absl::StrCat("output '", out.name, "' is not produced"),
               "name a value of the graph", findings);
  }
}

}  // namespace

std::string Finding::ToString() const {
  return absl::StrCat("[", rule, "] ", place, ": ", what, fix.empty() ? "" : "; fix: ", fix);
}

void AddFinding(const char* rule, const Place& place, std::string what, const char* fix,
                std::vector<Finding>* findings) {
  if (findings->size() < kMaxFindings) findings->push_back({rule, place(), std::move(what), fix});
}

std::vector<Finding> Verify(const Graph& graph) {
  std::vector<Finding> findings;
  VerifyScope(
      graph, nullptr, [] { return std::string("graph"); }, &findings);
  return findings;
}

absl::Status FindingsToStatus(const std::vector<Finding>& findings) {
  if (findings.empty()) return absl::OkStatus();
  constexpr size_t kShown = 50;
  std::vector<std::string> lines;
  for (size_t i = 0; i < findings.size() && i < kShown; ++i)
    lines.push_back(findings[i].ToString());
  if (findings.size() > kShown)
    lines.push_back(absl::StrCat("... and ", findings.size() - kShown, " more"));
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

namespace {

bool IsSorted(const Graph& graph) {
  NameSet later;
  for (const Node& node : graph.nodes) later.insert(node.outputs.begin(), node.outputs.end());
  later.erase("");
  for (const Node& node : graph.nodes) {
    for (const std::string& in : AllInputs(node)) {
      if (later.contains(in)) return false;
    }
    bool bodies = true;
    ForEachBody(node,
                [&](const std::string&, const Graph& body) { bodies = bodies && IsSorted(body); });
    if (!bodies) return false;
    for (const std::string& out : node.outputs) later.erase(out);
  }
  return true;
}

absl::Status SortBodies(Node* node) {
  bool sorted = true;
  ForEachBody(*node,
              [&](const std::string&, const Graph& body) { sorted = sorted && IsSorted(body); });
  if (sorted) return absl::OkStatus();
  const auto sort = [](const Graph& body) -> absl::StatusOr<Graph> {
    Graph copy = body;
    ONWARD_RETURN_IF_ERROR(SortNodes(&copy));
    return copy;
  };
  return ChangeBodies(sort, node);
}

}  // namespace

absl::Status SortNodes(Graph* graph) {
  for (Node& node : graph->nodes) ONWARD_RETURN_IF_ERROR(SortBodies(&node));
  absl::flat_hash_map<std::string, int> producer;
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    for (const std::string& out : graph->nodes[i].outputs) {
      if (!out.empty()) producer[out] = static_cast<int>(i);
    }
  }
  const int n = static_cast<int>(graph->nodes.size());
  std::vector<int> waiting(n, 0);
  std::vector<std::vector<int>> readers(n);
  for (int i = 0; i < n; ++i) {
    for (const std::string& in : AllInputs(graph->nodes[i])) {
      auto it = producer.find(in);
      if (it == producer.end()) continue;
      readers[it->second].push_back(i);
      ++waiting[i];
    }
  }
  // Lowest index first keeps an already sorted graph as it is.
  std::vector<int> ready;
  auto push = [&](int i) {
    ready.push_back(i);
    std::push_heap(ready.begin(), ready.end(), std::greater<>());
  };
  for (int i = 0; i < n; ++i) {
    if (waiting[i] == 0) push(i);
  }
  std::vector<Node> sorted;
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const int i = ready.back();
    ready.pop_back();
    for (int r : readers[i]) {
      if (--waiting[r] == 0) push(r);
    }
    sorted.push_back(std::move(graph->nodes[i]));
    waiting[i] = -1;
  }
  if (static_cast<int>(sorted.size()) != n) {
    for (int i = 0; i < n; ++i) {
      if (waiting[i] > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the graph has a cycle through ", graph->nodes[i].Describe()));
      }
    }
  }
  graph->nodes = std::move(sorted);
  return absl::OkStatus();
}

namespace {

// A Gradient node needs what it names, not its inputs alone.
void AddNamedValues(const Node& node, NameSet* needed) {
  if (node.Is("Gradient", kTrainingDomain)) {
    for (const char* list : {"xs", "zs"}) {
      for (std::string& name : node.Strings(list)) needed->insert(std::move(name));
    }
    needed->insert(node.String("y", ""));
  }
  ForEachBody(node, [&](const std::string&, const Graph& body) {
    for (const Node& inner : body.nodes) AddNamedValues(inner, needed);
  });
}

}  // namespace

void Prune(Graph* graph, const std::vector<std::string>& wanted) {
  NameSet needed(wanted.begin(), wanted.end());
  std::vector<Node> kept;
  for (auto it = graph->nodes.rbegin(); it != graph->nodes.rend(); ++it) {
    const bool used = std::any_of(it->outputs.begin(), it->outputs.end(),
                                  [&](const std::string& o) { return needed.contains(o); });
    if (!used) continue;
    for (std::string& in : AllInputs(*it)) needed.insert(std::move(in));
    AddNamedValues(*it, &needed);
    kept.push_back(std::move(*it));
  }
  std::reverse(kept.begin(), kept.end());
  graph->nodes = std::move(kept);
  for (auto it = graph->initializers.begin(); it != graph->initializers.end();) {
    it = needed.contains(it->first) ? std::next(it) : graph->initializers.erase(it);
  }
}

}  // namespace onward

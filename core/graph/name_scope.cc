// SPDX-License-Identifier: Apache-2.0
#include "core/graph/name_scope.h"

#include "absl/strings/str_cat.h"

namespace onward {

void NameScope::Reserve(const Graph& graph) {
  for (const NamedType& v : graph.inputs) taken_.insert(v.name);
  for (const NamedType& v : graph.outputs) taken_.insert(v.name);
  for (const auto& [name, tensor] : graph.initializers) taken_.insert(name);
  for (const Node& node : graph.nodes) {
    ReserveAll(node.inputs);
    ReserveAll(node.outputs);
    ForEachBody(node, [&](const std::string&, const Graph& body) { Reserve(body); });
  }
}

std::string NameScope::Unique(const std::string& base) {
  if (taken_.insert(base).second) return base;
  return FirstFree(base, 2);
}

std::string NameScope::Numbered(const std::string& base) { return FirstFree(base, 0); }

std::string NameScope::FirstFree(const std::string& base, int first) {
  int& next = next_.try_emplace(base, first).first->second;
  while (true) {
    std::string numbered = absl::StrCat(base, "_", next++);
    if (taken_.insert(numbered).second) return numbered;
  }
}

}  // namespace onward

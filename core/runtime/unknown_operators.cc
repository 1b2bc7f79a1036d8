// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/unknown_operators.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace onward {
namespace {

// Beyond these, nodes are counted.
constexpr size_t kNodesNamed = 8;

struct Unknown {
  std::string version;              // "", or ", version 3"
  std::vector<std::string> called;  // nodes, as Node::Describe names them
};
using Unknowns = std::map<std::string, Unknown>;  // by operator

void FindUnknown(const Graph& graph, const std::map<std::string, int>& opsets,
                 const OperatorSet& operators, const Device& device, Unknowns* unknown) {
  for (const Node& node : graph.nodes) {
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      FindUnknown(body, opsets, operators, device, unknown);
    });
    if (operators.SinceVersion(node, opsets) != 0 ||
        device.kernels().Find(node.op_type, node.domain) != nullptr) {
      continue;
    }
    Unknown& found =
        (*unknown)[absl::StrCat(node.domain, node.domain.empty() ? "" : ".", node.op_type)];
    if (auto version = opsets.find(node.domain); version != opsets.end()) {
      found.version = absl::StrCat(", version ", version->second);
    }
    const bool unnamed = node.name.empty() && !node.outputs.empty();
    found.called.push_back(unnamed ? absl::StrCat("'-> ", node.outputs[0], "'")
                                   : absl::StrCat("'", node.name, "'"));
  }
}

// "nodes 'a', 'b' and 3 more"
std::string Listed(const std::vector<std::string>& nodes) {
  const size_t named = std::min(nodes.size(), kNodesNamed);
  std::string text =
      absl::StrCat(nodes.size() == 1 ? "node " : "nodes ",
                   absl::StrJoin(nodes.begin(), nodes.begin() + static_cast<int64_t>(named), ", "));
  if (named < nodes.size()) absl::StrAppend(&text, " and ", nodes.size() - named, " more");
  return text;
}

}  // namespace

absl::Status CheckOperatorsKnown(const Graph& graph, const OperatorSet& operators,
                                 const Device& device) {
  Unknowns unknown;
  FindUnknown(graph, graph.opsets, operators, device, &unknown);
  if (unknown.empty()) return absl::OkStatus();
  std::string message = unknown.size() == 1
                            ? "an operator is not known:"
                            : absl::StrCat(unknown.size(), " operators are not known:");
  for (const auto& [name, found] : unknown) {
    absl::StrAppend(&message, "\n  ", Listed(found.called), " (", name, ")", found.version);
  }
  return absl::UnimplementedError(
      absl::StrCat(message,
                   "\nfix: name the shared library that defines them (--plugin LIB.so; in C++ "
                   "EnvironmentOptions::plugins), or put a function for each into the file"));
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/compile/unknown_operators.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/runtime/control/control.h"

namespace onward {
namespace {

// Beyond these, nodes are counted.
constexpr size_t kNodesNamed = 8;

using MissingByName = std::map<std::string, MissingOperator>;

void Add(const Node& node, const std::map<std::string, int>& opsets, bool defined,
         MissingByName* missing) {
  const std::string name = absl::StrCat(node.domain, node.domain.empty() ? "" : ".", node.op_type);
  MissingOperator& found = (*missing)[name];
  found.name = name;
  found.defined = defined;
  if (auto version = opsets.find(node.domain); version != opsets.end()) {
    found.version = version->second;
  }
  const bool unnamed = node.name.empty() && !node.outputs.empty();
  found.nodes.push_back(unnamed ? absl::StrCat("'-> ", node.outputs[0], "'")
                                : absl::StrCat("'", node.name, "'"));
}

bool HasKernel(const Node& node, const Device& device) {
  return IsControl(node) || device.kernels().Find(node.op_type, node.domain) != nullptr;
}

void AddUnknown(const Graph& graph, const std::map<std::string, int>& opsets,
                const OperatorSet& operators, const Device& device, MissingByName* missing) {
  for (const Node& node : graph.nodes) {
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      AddUnknown(body, opsets, operators, device, missing);
    });
    if (HasKernel(node, device) || operators.SinceVersion(node, opsets) != 0) continue;
    Add(node, opsets, /*defined=*/false, missing);
  }
}

std::vector<MissingOperator> Listed(MissingByName missing) {
  std::vector<MissingOperator> list;
  for (auto& [name, m] : missing) list.push_back(std::move(m));
  return list;
}

absl::Status ToStatus(const std::vector<MissingOperator>& missing, const char* one,
                      const char* many, const char* fix) {
  if (missing.empty()) return absl::OkStatus();
  std::string message = missing.size() == 1 ? one : absl::StrCat(missing.size(), many);
  for (const MissingOperator& m : missing) absl::StrAppend(&message, "\n  ", Describe(m));
  return absl::UnimplementedError(absl::StrCat(message, "\nfix: ", fix));
}

}  // namespace

std::vector<MissingOperator> FindUnknown(const Graph& graph, const OperatorSet& operators,
                                         const Device& device) {
  MissingByName missing;
  AddUnknown(graph, graph.opsets, operators, device, &missing);
  return Listed(std::move(missing));
}

std::vector<MissingOperator> FindWithoutKernel(const Graph& graph, const OperatorSet& operators,
                                               const Device& device) {
  MissingByName missing;
  for (const Node& node : graph.nodes) {
    if (HasKernel(node, device) || operators.SinceVersion(node, graph.opsets) == 0) continue;
    std::vector<InputFact> facts(node.inputs.size());
    for (size_t i = 0; i < facts.size(); ++i) facts[i].type = graph.TypeOf(node.inputs[i]);
    const auto body = operators.FunctionBody(node, facts, graph.opsets);
    // A call that cannot be expanded is wrong in another way.
    if (!body.ok() || body->has_value()) continue;
    Add(node, graph.opsets, /*defined=*/true, &missing);
  }
  return Listed(std::move(missing));
}

std::string Describe(const MissingOperator& missing) {
  const size_t named = std::min(missing.nodes.size(), kNodesNamed);
  std::string text =
      absl::StrCat(missing.nodes.size() == 1 ? "node " : "nodes ",
                   absl::StrJoin(missing.nodes.begin(),
                                 missing.nodes.begin() + static_cast<int64_t>(named), ", "));
  if (named < missing.nodes.size()) {
    absl::StrAppend(&text, " and ", missing.nodes.size() - named, " more");
  }
  return absl::StrCat(text, " (", missing.name, ")",
                      missing.version > 0 ? absl::StrCat(", version ", missing.version) : "");
}

absl::Status CheckOperatorsKnown(const Graph& graph, const OperatorSet& operators,
                                 const Device& device) {
  return ToStatus(FindUnknown(graph, operators, device),
                  "an operator is not known:", " operators are not known:",
                  "name the shared library that defines them (--plugin LIB.so; in C++ "
                  "EnvironmentOptions::plugins), or put a function for each into the file");
}

absl::Status CheckKernelsExist(const Graph& graph, const OperatorSet& operators,
                               const Device& device) {
  return ToStatus(FindWithoutKernel(graph, operators, device),
                  "an operator has no kernel:", " operators have no kernel:",
                  "ask for outputs that do without them (--only NAME), or replace these nodes");
}

}  // namespace onward

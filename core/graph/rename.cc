// SPDX-License-Identifier: Apache-2.0
#include "core/graph/rename.h"

#include <utility>
#include <vector>

namespace onward {
namespace {

void RenameList(const Renaming& names, std::vector<std::string>* values) {
  for (std::string& v : *values) v = Renamed(names, v);
}

void RenameList(const Renaming& names, std::vector<NamedType>* values) {
  for (NamedType& v : *values) v.name = Renamed(names, v.name);
}

// What a body defines itself hides what stands around it.
Graph WithRenamedCaptures(const Graph& body, Renaming names) {
  for (const NamedType& in : body.inputs) names.erase(in.name);
  for (const auto& [name, tensor] : body.initializers) names.erase(name);
  for (const Node& node : body.nodes) {
    for (const std::string& out : node.outputs) names.erase(out);
  }
  Graph copy = body;
  if (names.empty()) return copy;
  for (Node& node : copy.nodes) RenameReads(names, &node);
  RenameList(names, &copy.outputs);
  return copy;
}

template <typename Map>
void RenameKeys(const Renaming& names, Map* map) {
  Map renamed;
  for (auto& [name, value] : *map) renamed.emplace(Renamed(names, name), std::move(value));
  *map = std::move(renamed);
}

}  // namespace

std::string Renamed(const Renaming& names, const std::string& value) {
  auto it = names.find(value);
  return it == names.end() ? value : it->second;
}

void RenameReads(const Renaming& names, Node* node) {
  RenameList(names, &node->inputs);
  ChangeBodies([&](const Graph& body) { return WithRenamedCaptures(body, names); }, node)
      .IgnoreError();
}

void RenameNamed(const Renaming& names, Node* node) {
  if (!node->Is("Gradient", kTrainingDomain)) return;
  for (auto& [name, attribute] : node->attributes) {
    if (auto* one = std::get_if<std::string>(&attribute.value)) *one = Renamed(names, *one);
    if (auto* list = std::get_if<std::vector<std::string>>(&attribute.value)) {
      for (std::string& value : *list) value = Renamed(names, value);
    }
  }
}

void RenameOutputs(const Renaming& names, Node* node) { RenameList(names, &node->outputs); }

void RenameEverywhere(const Renaming& names, Graph* graph) {
  RenameList(names, &graph->inputs);
  RenameList(names, &graph->outputs);
  RenameKeys(names, &graph->initializers);
  RenameKeys(names, &graph->types);
  for (Node& node : graph->nodes) {
    RenameList(names, &node.inputs);
    RenameList(names, &node.outputs);
    ChangeBodies(
        [&](const Graph& body) {
          Graph copy = body;
          RenameEverywhere(names, &copy);
          return copy;
        },
        &node)
        .IgnoreError();
  }
}

}  // namespace onward

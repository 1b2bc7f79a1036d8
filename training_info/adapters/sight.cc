// SPDX-License-Identifier: Apache-2.0
#include "training_info/adapters/sight.h"

#include <algorithm>
#include <vector>

#include "core/graph/constant.h"
#include "core/graph/random.h"

namespace onward {

Sight::Sight(const Graph& graph, const Sight* outer) : graph_(graph), outer_(outer) {
  for (const auto& [name, tensor] : graph.initializers) constants_.insert(name);
  for (const Node& node : graph.nodes) {
    bool bodies = false;
    ForEachBody(node, [&](const std::string&, const Graph&) { bodies = true; });
    const bool constant =
        !bodies && !IsRandom(node) && (!node.inputs.empty() || node.Is("Constant")) &&
        std::all_of(node.inputs.begin(), node.inputs.end(),
                    [&](const std::string& in) { return in.empty() || IsConstant(in); });
    for (const std::string& out : node.outputs) {
      producer_.emplace(out, &node);
      if (constant) constants_.insert(out);
    }
  }
}

bool Sight::IsConstant(const std::string& value) const {
  return constants_.contains(value) || (outer_ != nullptr && outer_->IsConstant(value));
}

const Node* Sight::Producer(const std::string& value) const {
  auto it = producer_.find(value);
  if (it != producer_.end()) return it->second;
  return outer_ == nullptr ? nullptr : outer_->Producer(value);
}

std::optional<Tensor> Sight::Stored(const std::string& value) const {
  auto it = graph_.initializers.find(value);
  if (it != graph_.initializers.end()) return it->second;
  if (auto node = producer_.find(value); node != producer_.end())
    return ConstantValue(*node->second);
  return outer_ == nullptr ? std::nullopt : outer_->Stored(value);
}

std::optional<Sight::Known> Sight::TypeOf(const std::string& value) const {
  if (const std::optional<Tensor> tensor = Stored(value))
    return Known{tensor->dtype(), tensor->shape()};
  if (const ValueType* type = graph_.TypeOf(value); type != nullptr && type->is_tensor()) {
    if (const std::optional<Shape> shape = type->StaticShape()) return Known{type->dtype, *shape};
  }
  return outer_ == nullptr ? std::nullopt : outer_->TypeOf(value);
}

Graph Sight::ConstantGraph(const std::string& value) const {
  Graph graph;
  graph.name = "constant";
  graph.opsets = root().graph_.opsets;
  graph.outputs.push_back({value, {}});
  // Depth first, by hand: chains may be as long as the file says.
  std::vector<std::pair<std::string, bool>> open = {{value, false}};
  absl::flat_hash_set<std::string> seen;
  while (!open.empty()) {
    const auto [name, ready] = open.back();
    open.pop_back();
    const Node* node = Producer(name);
    if (ready) {
      graph.nodes.push_back(*node);
      continue;
    }
    if (name.empty() || !seen.insert(name).second) continue;
    if (const std::optional<Tensor> stored = Stored(name)) {
      graph.initializers.emplace(name, *stored);
    } else if (node != nullptr) {
      seen.insert(node->outputs.begin(), node->outputs.end());
      open.emplace_back(name, true);
      for (const std::string& in : node->inputs) open.emplace_back(in, false);
    }
  }
  return graph;
}

}  // namespace onward

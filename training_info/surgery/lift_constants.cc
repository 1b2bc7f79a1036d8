// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/graph/constant.h"
#include "core/graph/name_scope.h"
#include "core/graph/rename.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

bool MayBeWeight(const Tensor& tensor) {
  return IsFloating(tensor.dtype()) && tensor.elements() > 1;
}

class BodyLifter {
 public:
  explicit BodyLifter(const Graph& root) : names_(root) { CountDefinitions(root); }

  // Takes them out of the bodies of a graph's nodes.
  void Visit(Graph* graph) {
    for (Node& node : graph->nodes) {
      ChangeBodies(
          [&](const Graph& body) -> absl::StatusOr<Graph> {
            Graph changed = body;
            TakeOut(&changed);
            Visit(&changed);
            return changed;
          },
          &node)
          .IgnoreError();
    }
  }

  std::vector<Node> Taken() { return std::move(taken_); }

 private:
  void CountDefinitions(const Graph& graph) {
    for (const NamedType& in : graph.inputs) ++definitions_[in.name];
    for (const auto& [name, tensor] : graph.initializers) ++definitions_[name];
    for (const Node& node : graph.nodes) {
      for (const std::string& out : node.outputs) ++definitions_[out];
      ForEachBody(node, [&](const std::string&, const Graph& body) { CountDefinitions(body); });
    }
  }

  void TakeOut(Graph* body) {
    Renaming renaming;
    const auto take = [&](const std::string& name, const Tensor& value) {
      Node constant;
      constant.op_type = "Constant";
      constant.attributes["value"] = value;
      constant.outputs = {definitions_[name] == 1 ? name : names_.Unique(name)};
      if (constant.outputs[0] != name) renaming[name] = constant.outputs[0];
      taken_.push_back(std::move(constant));
    };
    for (auto it = body->initializers.begin(); it != body->initializers.end();) {
      if (!MayBeWeight(it->second) || body->IsInput(it->first) || body->IsOutput(it->first)) {
        ++it;
        continue;
      }
      take(it->first, it->second);
      it = body->initializers.erase(it);
    }
    std::erase_if(body->nodes, [&](const Node& node) {
      const std::optional<Tensor> value = ConstantValue(node);
      if (!value || !MayBeWeight(*value) || body->IsOutput(node.outputs[0])) return false;
      take(node.outputs[0], *value);
      return true;
    });
    if (renaming.empty()) return;
    for (Node& node : body->nodes) RenameReads(renaming, &node);
  }

  NameScope names_;
  absl::flat_hash_map<std::string, int> definitions_;
  std::vector<Node> taken_;
};

}  // namespace

bool LiftFromBodies(Graph* graph) {
  BodyLifter lifter(*graph);
  lifter.Visit(graph);
  std::vector<Node> nodes = lifter.Taken();
  if (nodes.empty()) return false;
  nodes.insert(nodes.end(), std::make_move_iterator(graph->nodes.begin()),
               std::make_move_iterator(graph->nodes.end()));
  graph->nodes = std::move(nodes);
  return true;
}

bool LiftConstants(Graph* graph, const std::set<std::string>& names) {
  const size_t before = graph->nodes.size();
  std::vector<Node> nodes;
  for (Node& node : graph->nodes) {
    std::optional<Tensor> value;
    if (node.Is("Constant") && !node.outputs.empty() && names.contains(node.outputs[0]))
      value = ConstantValue(node);
    if (value.has_value()) {
      graph->types[node.outputs[0]] = ValueType::Of(value->dtype(), value->shape());
      graph->initializers.insert_or_assign(node.outputs[0], *std::move(value));
    } else {
      nodes.push_back(std::move(node));
    }
  }
  graph->nodes = std::move(nodes);
  return graph->nodes.size() < before;
}

}  // namespace onward

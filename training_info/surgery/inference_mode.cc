// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/graph/constant.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

class ModeSetter {
 public:
  ModeChange Run(Graph* graph) {
    SetNodes(graph);
    return change_;
  }

 private:
  bool Changed(const ModeChange& before) const {
    return change_.normalizations != before.normalizations || change_.dropouts != before.dropouts;
  }

  void SetNodes(Graph* graph) {
    for (const auto& [name, tensor] : graph->initializers) constants_[name] = tensor;
    for (const Node& node : graph->nodes) {
      if (std::optional<Tensor> value = ConstantValue(node)) constants_[node.outputs[0]] = *value;
    }
    std::vector<Node> nodes;
    for (Node& node : graph->nodes) {
      SetBodies(&node);
      std::vector<Node> behind;
      if (node.Is("BatchNormalization")) behind = SetNormalization(&node);
      if (node.Is("Dropout")) SetDropout(&node);
      nodes.push_back(std::move(node));
      for (Node& n : behind) nodes.push_back(std::move(n));
    }
    graph->nodes = std::move(nodes);
    DropUnreadStatistics(graph);
  }

  void SetBodies(Node* node) {
    for (auto& [name, attribute] : node->attributes) {
      auto* body = std::get_if<std::shared_ptr<const Graph>>(&attribute.value);
      if (body == nullptr || *body == nullptr) continue;
      auto copy = std::make_shared<Graph>(**body);
      const ModeChange before = change_;
      SetNodes(copy.get());
      if (Changed(before)) *body = std::move(copy);
    }
  }

  // Before opset 14 it is the number of outputs that tells.
  std::vector<Node> SetNormalization(Node* node) {
    if (node->Int("training_mode", 0) == 0 && node->outputs.size() <= 1) return {};
    ++change_.normalizations;
    if (node->Has("training_mode")) node->attributes["training_mode"] = 0;
    std::vector<Node> statistics;
    for (int i = 1; i <= 2 && node->HasInput(2 + i); ++i) {
      if (!node->HasOutput(i)) continue;
      Node same;
      same.op_type = "Identity";
      same.inputs = {node->inputs[2 + i]};
      same.outputs = {node->outputs[i]};
      written_.insert(node->outputs[i]);
      statistics.push_back(std::move(same));
    }
    node->outputs.resize(1);
    return statistics;
  }

  void DropUnreadStatistics(Graph* graph) {
    absl::flat_hash_set<std::string> read;
    for (const NamedType& out : graph->outputs) read.insert(out.name);
    for (const Node& node : graph->nodes) {
      for (std::string& in : AllInputs(node)) read.insert(std::move(in));
    }
    std::erase_if(graph->nodes, [&](const Node& node) {
      return node.Is("Identity") && node.HasOutput(0) && !read.contains(node.outputs[0]) &&
             written_.contains(node.outputs[0]);
    });
  }

  void SetDropout(Node* node) {
    if (!node->HasInput(2)) return;
    auto mode = constants_.find(node->inputs[2]);
    if (mode == constants_.end() || mode->second.dtype() != DType::kBool ||
        mode->second.elements() != 1 || !*mode->second.data<bool>()) {
      return;
    }
    ++change_.dropouts;
    node->inputs.resize(2);
    if (node->inputs[1].empty()) node->inputs.resize(1);
  }

  ModeChange change_;
  absl::flat_hash_map<std::string, Tensor> constants_;
  absl::flat_hash_set<std::string> written_;  // statistics that training mode gave out
};

}  // namespace

std::string ModeChange::ToString() const {
  std::string text;
  if (normalizations > 0) absl::StrAppend(&text, normalizations, " BatchNormalization");
  if (dropouts > 0) absl::StrAppend(&text, text.empty() ? "" : ", ", dropouts, " Dropout");
  return text;
}

ModeChange SetInferenceMode(Graph* graph) { return ModeSetter().Run(graph); }

}  // namespace onward

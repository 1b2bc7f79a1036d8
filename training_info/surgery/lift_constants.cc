// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "core/graph/constant.h"
#include "training_info/surgery/surgery.h"

namespace onward {

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

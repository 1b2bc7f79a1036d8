// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "core/graph/constant.h"
#include "training_info/author.h"
#include "training_info/author_graphs.h"

namespace onward {

bool LiftConstants(Graph* graph) {
  if (graph->outputs.empty()) return false;
  if (!TrainableInitializers(*graph, graph->outputs[0].name).empty()) return false;
  std::vector<Node> nodes;
  for (Node& node : graph->nodes) {
    const std::optional<Tensor> value = ConstantValue(node);
    if (!value.has_value() || !IsFloating(value->dtype()) || value->shape().rank() == 0) {
      nodes.push_back(std::move(node));
      continue;
    }
    graph->initializers.emplace(node.outputs[0], *value);
  }
  const bool lifted = nodes.size() < graph->nodes.size();
  graph->nodes = std::move(nodes);
  return lifted;
}

}  // namespace onward

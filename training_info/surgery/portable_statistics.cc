// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/name_scope.h"
#include "training_info/surgery/portable.h"

namespace onward {
namespace {

using Reads = absl::flat_hash_map<std::string, int>;

void CountReads(const Graph& graph, Reads* reads) {
  for (const NamedType& out : graph.outputs) ++(*reads)[out.name];
  for (const Node& node : graph.nodes) {
    for (const std::string& in : node.inputs) ++(*reads)[in];
    ForEachBody(node, [&](const std::string&, const Graph& body) { CountReads(body, reads); });
  }
}

absl::Status CopyStatistics(const Reads& reads, NameScope* names, Graph* graph) {
  std::vector<Node> nodes = std::move(graph->nodes);
  graph->nodes.clear();
  for (Node& node : nodes) {
    ONWARD_RETURN_IF_ERROR(ChangeBodies(
        [&](const Graph& body) -> absl::StatusOr<Graph> {
          Graph changed = body;
          ONWARD_RETURN_IF_ERROR(CopyStatistics(reads, names, &changed));
          return changed;
        },
        &node));
    const bool trains = node.Is("BatchNormalization") && node.Int("training_mode", 0) != 0;
    for (int i = 3; trains && i < 5; ++i) {
      if (!node.HasInput(i) || reads.at(node.inputs[i]) < 2) continue;
      // An Identity would be optimized away.
      Node copy;
      copy.op_type = "Max";
      copy.inputs = {node.inputs[i]};
      copy.outputs = {names->Unique(absl::StrCat(node.inputs[i], "__own"))};
      node.inputs[i] = copy.outputs[0];
      graph->nodes.push_back(std::move(copy));
    }
    graph->nodes.push_back(std::move(node));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CopyTrainedStatistics(Graph* graph) {
  Reads reads;
  CountReads(*graph, &reads);
  NameScope names(*graph);
  return CopyStatistics(reads, &names, graph);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "core/graph/patterns/recognise.h"

#include "core/graph/patterns/pattern.h"

namespace onward {
namespace {

int RecogniseInBodies(Graph* graph) {
  int found = 0;
  for (Node& node : graph->nodes) {
    bool has_body = false;
    ForEachBody(node, [&](const std::string&, const Graph&) { has_body = true; });
    if (!has_body) continue;
    const auto recognise = [&](const Graph& body) -> absl::StatusOr<Graph> {
      Graph changed = body;
      changed.opsets = graph->opsets;
      absl::flat_hash_set<std::string> outputs;
      for (const NamedType& out : body.outputs) outputs.insert(out.name);
      found += RecogniseOperators(&changed, outputs);
      changed.opsets = body.opsets;
      return changed;
    };
    ChangeBodies(recognise, &node).IgnoreError();
  }
  return found;
}

}  // namespace

int RecogniseOperators(Graph* graph, const absl::flat_hash_set<std::string>& keep) {
  PatternGraph pattern(graph, keep);
  int found = 0;
  for (const Node& node : pattern.nodes()) {
    if (pattern.gone(node)) continue;
    const bool matched = (graph->opset() >= 17 && MatchLayerNormalization(&pattern, node)) ||
                         (graph->opset() >= 20 && MatchGelu(&pattern, node)) ||
                         (graph->opset() >= 18 && MatchAttention(&pattern, node)) ||
                         (graph->opset() >= 11 && MatchPaddedConv(&pattern, node));
    if (matched) ++found;
  }
  if (found > 0) pattern.Finish();
  return found + RecogniseInBodies(graph);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "core/graph/patterns/recognise.h"

#include "core/graph/patterns/pattern.h"

namespace onward {

int RecogniseOperators(Graph* graph, const absl::flat_hash_set<std::string>& keep) {
  PatternGraph pattern(graph, keep);
  int found = 0;
  for (const Node& node : pattern.nodes()) {
    if (pattern.gone(node)) continue;
    const bool matched = (graph->opset() >= 17 && MatchLayerNormalization(&pattern, node)) ||
                         (graph->opset() >= 20 && MatchGelu(&pattern, node)) ||
                         (graph->opset() >= 18 && MatchAttention(&pattern, node));
    if (matched) ++found;
  }
  if (found > 0) pattern.Finish();
  return found;
}

}  // namespace onward

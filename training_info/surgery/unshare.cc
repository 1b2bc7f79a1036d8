// SPDX-License-Identifier: Apache-2.0
// Exporters store equal initializers once. Layers that all start with ones or
// zeros (scales, shifts and running statistics of normalizations) then share one
// tensor although each has its own in the network they came from.
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/graph/name_scope.h"
#include "training_info/surgery/surgery.h"
#include "training_info/weights/weights.h"

namespace onward {

std::vector<std::string> UnshareInitializers(Graph* graph, const std::vector<std::string>& names) {
  std::map<std::string, int> readers;
  for (const std::string& name : names) {
    auto it = graph->initializers.find(name);
    if (it != graph->initializers.end() && IsFloating(it->second.dtype()) && IsUniform(it->second))
      readers[name] = 0;
  }
  NameScope scope(*graph);
  std::set<std::string> unshared;
  auto add_copy = [&](const std::string& from, const std::string& name) {
    const Tensor value = graph->initializers.at(from);
    graph->types[name] = ValueType::Of(value.dtype(), value.shape());
    graph->initializers[name] = value;
    std::map<std::string, std::string> entries = graph->metadata[from];
    entries[kCopyOfKey] = from;
    graph->metadata[from] = graph->metadata[name] = std::move(entries);
    unshared.insert(from);
  };
  // The usual form: an Identity node that carries the name the tensor had.
  std::erase_if(graph->nodes, [&](const Node& node) {
    if (!node.Is("Identity") || !readers.contains(node.inputs[0])) return false;
    add_copy(node.inputs[0], node.outputs[0]);
    return true;
  });
  for (Node& node : graph->nodes) {
    for (std::string& input : node.inputs) {
      auto it = readers.find(input);
      if (it == readers.end() || ++it->second == 1) continue;
      const std::string copy = scope.Unique(absl::StrCat(it->first, "__", it->second));
      add_copy(it->first, copy);
      input = copy;
    }
  }
  return {unshared.begin(), unshared.end()};
}

}  // namespace onward

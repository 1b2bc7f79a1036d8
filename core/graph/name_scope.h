// SPDX-License-Identifier: Apache-2.0
// New names. Whoever adds values to a graph takes their names from here: nothing
// else keeps a file's own "x__grad" or "call0__y" from being given twice.
#ifndef ONWARD_CORE_GRAPH_NAME_SCOPE_H_
#define ONWARD_CORE_GRAPH_NAME_SCOPE_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/graph/graph.h"

namespace onward {

class NameScope {
 public:
  NameScope() = default;
  explicit NameScope(const Graph& graph) { Reserve(graph); }

  // Takes every name of the graph, read or written, those in bodies included.
  void Reserve(const Graph& graph);
  void Reserve(std::string name) { taken_.insert(std::move(name)); }
  template <typename Names>
  void ReserveAll(const Names& names) {
    taken_.insert(names.begin(), names.end());
  }

  // `base` where it is free, else base_2, base_3, ...
  std::string Unique(const std::string& base);
  // base_0, base_1, ...: the next that is free.
  std::string Numbered(const std::string& base);

 private:
  std::string FirstFree(const std::string& base, int first);

  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::string, int> next_;  // base -> number to try
};

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_NAME_SCOPE_H_

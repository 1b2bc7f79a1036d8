// SPDX-License-Identifier: Apache-2.0
// The nodes of adapters, found again in a graph. Files come from anywhere: what looks otherwise
// than InsertAdapters writes it is an error that says where.
#ifndef ONWARD_TRAINING_INFO_ADAPTERS_MATCH_H_
#define ONWARD_TRAINING_INFO_ADAPTERS_MATCH_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "training_info/adapters/adapter.h"
#include "training_info/adapters/site.h"

namespace onward {

// One place where an adapter is used: y = base + up(scale * down(x)). Nodes are those of the graph
// that was looked through.
struct AdapterUse {
  const Adapter* adapter = nullptr;
  const Node* base = nullptr;
  const Node* dropout = nullptr;  // may be null
  const Node *down = nullptr, *mul = nullptr, *up = nullptr, *add = nullptr;
  Site site;         // of base
  double scale = 1;  // as the nodes have it
};

// Finds uses in one graph (not in its bodies), whose sight this is.
class AdapterMatcher {
 public:
  // Keeps references.
  AdapterMatcher(const std::vector<Adapter>& adapters, const Graph& graph, const Sight& sight);

  absl::StatusOr<std::vector<AdapterUse>> Match() const;

 private:
  absl::StatusOr<AdapterUse> MatchAt(const Adapter& adapter, const Node& down) const;
  // The one node that reads a result of `node`; null if there are none or several, or if it is
  // an output or captured by a body.
  const Node* OnlyReader(const Node* node) const;
  const Node* LocalProducer(const std::string& value) const;

  const std::vector<Adapter>& adapters_;
  const Graph& graph_;
  const Sight& sight_;
  absl::flat_hash_map<std::string, std::vector<const Node*>> readers_;
  absl::flat_hash_map<std::string, const Node*> producer_;
};

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_ADAPTERS_MATCH_H_

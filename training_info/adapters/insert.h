// SPDX-License-Identifier: Apache-2.0
// Adapters into graphs: which weights, and which nodes.
#ifndef ONWARD_TRAINING_INFO_ADAPTERS_INSERT_H_
#define ONWARD_TRAINING_INFO_ADAPTERS_INSERT_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "training_info/adapters/adapter.h"
#include "training_info/adapters/site.h"
#include "training_info/weights/choice.h"

namespace onward {

// A weight that can have an adapter: one of its uses.
struct Target {
  Site site;         // its chain is empty
  std::string name;  // what the file calls the weight
  int use = 0;
};
// In the order of the graph's nodes, bodies included, without adapters themselves. `is_tensor`
// tells which computed values the file has tensors of (WeightChoice::StoodForTensor).
std::vector<Target> FindTargets(const Graph& graph,
                                const std::function<bool(const std::string&)>& is_tensor);

// Writes the nodes of each adapter behind those that its key means; its A and B are initializers
// of the graph.
void InsertAdapters(const std::map<Site::Key, Adapter>& adapters, Graph* graph);

// The attributes of the nodes that multiply with A and with B beside a base: A stands in the
// weight's place, so x is read as the base reads it.
Attributes DownAttributes(const Site& site, const Node& base);
Attributes UpAttributes(const Site& site);

struct AddedAdapters {
  std::vector<Adapter> adapters;   // new ones, and those that were there and are meant
  std::vector<std::string> drawn;  // initializers A that wait for their numbers
  std::set<std::string> bases;     // weights that have an adapter, and stay as they are
  std::vector<std::string> notes;
};
// Gives every weight on the way to `outputs` that a spec means an adapter, A and B zero; the first
// spec that means it counts. Weights in `whole` train as they are and get none. Types of the graph
// are known (InferTypes). A spec that means nothing is an error that lists what there is.
absl::StatusOr<AddedAdapters> AddAdapters(const std::vector<LoraSpec>& specs,
                                          const WeightChoice& weights,
                                          const std::vector<std::string>& outputs,
                                          const std::set<std::string>& whole, Graph* graph);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_ADAPTERS_INSERT_H_

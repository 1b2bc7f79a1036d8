// SPDX-License-Identifier: Apache-2.0
// TrainingInfoProto as plain values.
#ifndef ONWARD_TRAINING_INFO_SPEC_H_
#define ONWARD_TRAINING_INFO_SPEC_H_

#include <set>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace onward {

struct Binding {
  std::string variable;  // key: an initializer
  std::string value;     // an output of a graph
};

// One TrainingInfoProto. Graphs are at the model's own opset.
struct TrainingEntry {
  Graph initialization;
  Graph algorithm;  // partial: completed by the inference graph
  std::vector<Binding> initialization_bindings;
  std::vector<Binding> update_bindings;
};

struct TrainingSpec {
  Graph inference;
  std::vector<TrainingEntry> entries;
  // Initializers that the file keeps sparse: constants, never variables.
  std::set<std::string> sparse;

  // Every initializer that some binding names.
  std::set<std::string> StateVariables() const;
  // The initializer's tensor, wherever it is; null if there is none.
  const Tensor* FindInitializer(const std::string& name) const;
};

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_SPEC_H_

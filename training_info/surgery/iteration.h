// SPDX-License-Identifier: Apache-2.0
// The entries of a training as one graph: an iteration.
#ifndef ONWARD_TRAINING_INFO_SURGERY_ITERATION_H_
#define ONWARD_TRAINING_INFO_SURGERY_ITERATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "training_info/spec.h"

namespace onward {

struct EntryGraph {
  int entry = 0;
  Graph graph;         // the training graph, typed, without Gradient nodes and functions
  bool rests = false;  // in some iterations, as the entry's rate says
};

struct IterationGraph {
  Graph graph;
  std::map<std::string, std::string> updates;  // variable -> the output that is its new value
};

// Variables are inputs with defaults, their new values are outputs; an entry computes with what
// those before it assigned. An output that several entries give is the last one's. Those that
// rest at times stand in an If: variables then stay as they are, and an output is what an entry
// before gave, or empty. `iteration`, how many there were, is the default of one more variable.
absl::StatusOr<IterationGraph> JoinEntries(const TrainingSpec& spec,
                                           std::vector<EntryGraph> entries, int64_t iteration);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_SURGERY_ITERATION_H_

// SPDX-License-Identifier: Apache-2.0
// The training entry that MakeTrainable writes, cut off the graph that it was built on.
#ifndef ONWARD_TRAINING_INFO_AUTHOR_ENTRY_H_
#define ONWARD_TRAINING_INFO_AUTHOR_ENTRY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "environment/environment.h"
#include "training_info/author_state.h"

namespace onward {

struct EntryRequest {
  const Graph& graph;                       // the inference graph
  const std::vector<std::string>& labels;   // inputs of the algorithm
  const std::vector<std::string>& outputs;  // of the algorithm, all that is bound included
  std::string named;                        // read by a Gradient node, by its name; "": nothing
};

// `work` is the inference graph, then all nodes of the algorithm. What the inference graph gives
// is there already, and is left out; initialization is the caller's.
absl::StatusOr<TrainingEntry> CutEntry(const EntryRequest& request, const AlgorithmState& state,
                                       const Environment& environment, Graph work);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_AUTHOR_ENTRY_H_

// SPDX-License-Identifier: Apache-2.0
// The forward pass that MakeTrainable differentiates: in training mode, and in the precision that
// was chosen. Where it is not the inference graph's own, the algorithm holds a copy of it.
#ifndef ONWARD_TRAINING_INFO_AUTHOR_FORWARD_H_
#define ONWARD_TRAINING_INFO_AUTHOR_FORWARD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/rename.h"
#include "training_info/author.h"
#include "training_info/author_state.h"

namespace onward {

struct ForwardRequest {
  const AuthorOptions& options;
  const Graph& graph;                       // the inference graph
  const std::vector<std::string>& outputs;  // that are compared with labels
  const std::vector<std::string>& trained;  // initializers that learn
  const Environment& environment;
};

struct TrainedForward {
  Renaming outputs;                    // of the model -> what stands for them in training
  std::vector<TrainedWeight> weights;  // for each of `trained`
  std::vector<std::string> notes;      // what was done, in sentences
};

// Adds it to `work`, a copy of the graph; `state` gets master weights and the bindings of
// running statistics.
absl::StatusOr<TrainedForward> WriteForward(const ForwardRequest& request, AlgorithmState* state,
                                            Graph* work);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_AUTHOR_FORWARD_H_

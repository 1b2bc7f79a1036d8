// SPDX-License-Identifier: Apache-2.0
// The part of an algorithm that MakeTrainable writes behind the gradients: whether the step counts,
// accumulation, clipping, the rate, an optimizer's step for each group of weights, averages.
#ifndef ONWARD_TRAINING_INFO_AUTHOR_UPDATE_H_
#define ONWARD_TRAINING_INFO_AUTHOR_UPDATE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "training_info/author.h"
#include "training_info/author_state.h"
#include "training_info/loss_scale.h"
#include "training_info/stored_recipe.h"

namespace onward {

inline constexpr char kStepVariable[] = "onward_step";  // updates done, which schedules count
inline constexpr char kCallsVariable[] = "onward_accumulated";  // steps since the last update

struct UpdateRequest {
  const AuthorOptions& options;
  const WeightChoice& weights;
  const Graph& graph;  // the inference graph
  const std::vector<TrainedWeight>& trained;
  const std::vector<std::string>& gradients;  // by the variables of `trained`
  const std::optional<LossScale>& scale;      // what these gradients are multiplied by
  const Environment& environment;
};

struct WrittenUpdate {
  std::string rate;                // a scalar of the graph
  std::vector<GroupFacts> groups;  // that have options of their own
};

// Adds to `work` what the options say of optimizer, schedule, groups, clipping, accumulation and
// averages. Bindings of running statistics that `state` holds hold for steps that count.
absl::StatusOr<WrittenUpdate> WriteUpdate(const UpdateRequest& request, AlgorithmState* state,
                                          Graph* work);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_AUTHOR_UPDATE_H_

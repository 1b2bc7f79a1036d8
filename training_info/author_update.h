// SPDX-License-Identifier: Apache-2.0
// The part of an algorithm that MakeTrainable writes behind the gradients: clipping, the rate,
// and an optimizer's step for each group of weights.
#ifndef ONWARD_TRAINING_INFO_AUTHOR_UPDATE_H_
#define ONWARD_TRAINING_INFO_AUTHOR_UPDATE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "training_info/author.h"
#include "training_info/spec.h"

namespace onward {

struct WrittenUpdate {
  std::string rate;  // a scalar
  std::vector<Binding> bindings;
  std::vector<std::pair<std::string, Tensor>> states;  // new variables, with their start
};

// Adds to `work` what `options` say of optimizer, schedule, groups and clipping, for the
// weights of `graph` and their gradients.
absl::StatusOr<WrittenUpdate> WriteUpdate(const AuthorOptions& options, const WeightChoice& weights,
                                          const Graph& graph,
                                          const std::vector<std::string>& trained,
                                          const std::vector<std::string>& gradients,
                                          const Environment& environment, Graph* work);

// Which weights belong to normalisations, by the operators that read them.
bool IsNormalizationWeight(const Graph& graph, const std::string& weight);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_AUTHOR_UPDATE_H_

// SPDX-License-Identifier: Apache-2.0
// Classes that differ in number, made to count the same in the loss.
#ifndef ONWARD_TRAINER_RUN_BALANCE_H_
#define ONWARD_TRAINER_RUN_BALANCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "data/dataset.h"
#include "training_info/author.h"

namespace onward {

// Weighs each class of the loss that `options` choose by how rare it is in the data
// (ClassWeights), in the order of the model's outputs: `weight` of cross_entropy and nll,
// `pos_weight` of bce. `classes` is what the model's file calls them. An error for other losses,
// for several, and where weights are given already.
absl::Status WeighClasses(const Graph& inference, const std::vector<std::string>& classes,
                          std::shared_ptr<const Dataset> data, AuthorOptions* options);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_BALANCE_H_

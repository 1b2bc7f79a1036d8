// SPDX-License-Identifier: Apache-2.0
// Moving averages of weights that a file carries beside the weights (make-trainable --ema).
#ifndef ONWARD_TRAINING_INFO_AVERAGES_H_
#define ONWARD_TRAINING_INFO_AVERAGES_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"
#include "training_info/spec.h"

namespace onward {

// In the metadata of a variable of an algorithm: the weight that it is the average of, and the
// weight that it is the master copy of.
inline constexpr char kAverageOfKey[] = "ai.onward.average_of";
inline constexpr char kMasterOfKey[] = "ai.onward.master_of";

// Average -> weight, for the averages that fit their weights.
std::map<std::string, std::string> AveragesOf(const TrainingSpec& spec);

// The same variables with the averages, in the types of the weights, in the place of the weights.
Variables WithAverages(const std::map<std::string, std::string>& averages,
                       const Variables& variables);

// Puts the averages of a model in the place of its weights. An error where it has none.
absl::Status UseAverages(Model* model);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_AVERAGES_H_

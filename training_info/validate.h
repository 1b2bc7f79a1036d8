// SPDX-License-Identifier: Apache-2.0
// The rules of TrainingInfoProto, one function each. onnx's own checker never
// looks at training_info, so all of it is checked here.
#ifndef ONWARD_TRAINING_INFO_VALIDATE_H_
#define ONWARD_TRAINING_INFO_VALIDATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/verify.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"
#include "training_info/spec.h"

namespace onward {

// Every broken rule, in order of entries. Also checks each combined graph.
std::vector<Finding> ValidateTraining(const TrainingSpec& spec, const Environment& environment);

// The training of a file that has one and breaks no rule; else an error that tells all.
absl::StatusOr<TrainingSpec> ValidTraining(const Model& model, const Environment& environment);

// The whole model: its graph and its training_info, and what is odd about a file that can be
// trained (check.cc). An error only where the file is gone.
absl::StatusOr<std::vector<Finding>> CheckModel(const Model& model, const Environment& environment);

// Whether the finding is about a file that can be trained all the same.
bool IsRemark(const Finding& finding);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_VALIDATE_H_

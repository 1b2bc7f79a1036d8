// SPDX-License-Identifier: Apache-2.0
// TrainingInfoProto messages to TrainingSpec.
#ifndef ONWARD_TRAINING_INFO_IMPORT_H_
#define ONWARD_TRAINING_INFO_IMPORT_H_

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "training_info/spec.h"

namespace onward {

// Reads what is there; ValidateTraining says whether it makes sense.
absl::StatusOr<TrainingSpec> ImportTraining(const Model& model);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_IMPORT_H_

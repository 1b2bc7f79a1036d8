// SPDX-License-Identifier: Apache-2.0
// TrainingInfoProto messages to TrainingSpec.
#ifndef ONWARD_TRAINING_INFO_IMPORT_H_
#define ONWARD_TRAINING_INFO_IMPORT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "training_info/spec.h"

namespace onward {

// Reads what is there; ValidateTraining says whether it makes sense.
// What is wanted of a file. The inference graph never needs the training part.
enum class ImportMode {
  kTraining,   // every graph has to be readable
  kInference,  // the inference graph alone; training_info is not looked at
  kBoth        // what is readable: TrainingSpec::problems says what is not
};

absl::StatusOr<TrainingSpec> ImportTraining(const Model& model,
                                            ImportMode mode = ImportMode::kTraining);

// What is wrong with the file's lists although they can be read: nodes that are not sorted (they
// are read in an order that works), functions of one name.
std::vector<Finding> CheckLists(const Model& model);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_IMPORT_H_

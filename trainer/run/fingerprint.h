// SPDX-License-Identifier: Apache-2.0
// Short texts by which a resumed run knows the model and the data it belongs to, and its files.
#ifndef ONWARD_TRAINER_RUN_FINGERPRINT_H_
#define ONWARD_TRAINER_RUN_FINGERPRINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "data/dataset.h"
#include "trainer/run/options.h"
#include "training_info/spec.h"

namespace onward {

// Of the inference graph and its weights: of small ones whole, of large ones parts from all over
// them. Where the weights are stored makes no difference.
absl::StatusOr<std::string> ModelFingerprint(const Model& model);

// Of the number of examples, the fields, the names of the classes, and some examples from all
// over the data set.
absl::StatusOr<std::string> DataFingerprint(const Dataset& data);

// Of a run that begins: of its model, its data, and how it is trained. What begins alike goes on
// alike, so that it is one run.
std::string RunFingerprint(const TrainingSpec& spec, const TrainOptions& options,
                           const std::string& data_fingerprint);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_FINGERPRINT_H_

// SPDX-License-Identifier: Apache-2.0
// Short texts by which a resumed run knows the model and the data it belongs to.
#ifndef ONWARD_TRAINER_RUN_FINGERPRINT_H_
#define ONWARD_TRAINER_RUN_FINGERPRINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "data/dataset.h"

namespace onward {

// Of the inference graph and its weights: of small ones whole, of large ones parts from all over
// them. Where the weights are stored makes no difference.
absl::StatusOr<std::string> ModelFingerprint(const Model& model);

// Of the number of examples, the fields, the names of the classes, and some examples from all
// over the data set.
absl::StatusOr<std::string> DataFingerprint(const Dataset& data);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_FINGERPRINT_H_

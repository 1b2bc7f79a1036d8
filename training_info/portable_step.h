// SPDX-License-Identifier: Apache-2.0
// A training step as an ordinary model of plain operators, which any runtime can run.
#ifndef ONWARD_TRAINING_INFO_PORTABLE_STEP_H_
#define ONWARD_TRAINING_INFO_PORTABLE_STEP_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"

namespace onward {

// Metadata of such a model: a JSON object that says for each variable which output is its new
// value, {"fc.weight":"fc.weight_new"}. Who feeds these to the next run trains.
inline constexpr char kMetaUpdates[] = "onward.updates";

// One iteration as the file says (surgery/iteration.h); with `entry` that one alone, whatever its
// rate.
absl::StatusOr<Model> PortableStep(const Model& model, std::optional<int> entry,
                                   const Environment& environment);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_PORTABLE_STEP_H_

// SPDX-License-Identifier: Apache-2.0
// The model that `onward train` trains: a file that says how, or one that is told by flags.
#ifndef ONWARD_CLI_TRAINABLE_H_
#define ONWARD_CLI_TRAINABLE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/args.h"
#include "core/onnx_io/model.h"
#include "data/dataset.h"
#include "environment/environment.h"
#include "trainer/make/make_model.h"
#include "trainer/run/options.h"

namespace onward {

// Makes an inference model trainable. Of a trainable one the flags may change the rate; others
// that it was not made with are errors. One that was `made` for its data trains as it is usual
// for its kind, where no flag says otherwise. `run` gets the batch size that the model fixes;
// `notes` what the user should know.
absl::StatusOr<Model> TrainableModel(const Args& args, const std::shared_ptr<const Dataset>& data,
                                     const std::optional<MadeTraining>& made, Model model,
                                     const Environment& environment, TrainOptions* run,
                                     std::vector<std::string>* notes);

}  // namespace onward

#endif  // ONWARD_CLI_TRAINABLE_H_

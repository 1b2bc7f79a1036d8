// SPDX-License-Identifier: Apache-2.0
// The flags of `onward train`, apart from those that make a model trainable.
#ifndef ONWARD_CLI_TRAIN_FLAGS_H_
#define ONWARD_CLI_TRAIN_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/args.h"
#include "core/onnx_io/model.h"
#include "trainer/make/make_model.h"
#include "trainer/run/options.h"

namespace onward {

std::vector<Flag> TrainFlags();
std::vector<Clash> TrainClashes();

// Flags that need others; an OUT that would be lost.
absl::Status CheckTrainFlags(const Args& args);

// Whether nothing is trained: --dry-run, --find-lr.
bool OnlyAsks(const Args& args);

// What the flags say of the run. A resumed one goes on as its file `model` began.
absl::StatusOr<TrainOptions> ReadTrainOptions(const Args& args, const Model& model);

// The command that goes on where this one was stopped; `without` this flag, if it has it. A model
// that was `made` for its data goes on to the epochs that were chosen for it.
std::string ResumeCommand(const Args& args, const std::optional<MadeTraining>& made,
                          const std::string& without = "");

}  // namespace onward

#endif  // ONWARD_CLI_TRAIN_FLAGS_H_

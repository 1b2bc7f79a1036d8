// SPDX-License-Identifier: Apache-2.0
// From the flags of `onward train` to what its loop needs.
#ifndef ONWARD_CLI_BEGIN_TRAINING_H_
#define ONWARD_CLI_BEGIN_TRAINING_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "cli/args.h"
#include "cli/open_data.h"
#include "data/dataset.h"
#include "environment/environment.h"
#include "trainer/make/make_model.h"
#include "trainer/run/options.h"
#include "training_info/step.h"

namespace onward {

struct BegunTraining {
  std::unique_ptr<TrainingModel> training;
  std::shared_ptr<const Dataset> data, eval;  // eval may be null
  TrainOptions options;
  std::optional<MadeTraining> made;  // the model was made for the data
};

// The model, made trainable where it is not, on the data that `specs` name. Notes and warnings
// go to standard error unless --quiet; `tells`: otherwise none do.
absl::StatusOr<BegunTraining> BeginTraining(const Args& args, const TrainingSpecs& specs,
                                            const Environment& environment, bool tells = true);

}  // namespace onward

#endif  // ONWARD_CLI_BEGIN_TRAINING_H_

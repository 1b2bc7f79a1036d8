// SPDX-License-Identifier: Apache-2.0
// What is said before the first step: what was chosen, and what it will take.
#ifndef ONWARD_TRAINER_RUN_FACTS_H_
#define ONWARD_TRAINER_RUN_FACTS_H_

#include <string>

#include "absl/status/status.h"
#include "trainer/run/prepared_run.h"

namespace onward {

// Feeds of the first batch, as far as the data set has one.
absl::StatusOr<TensorMap> FirstFeeds(const PreparedRun& prepared, int64_t batch);

// Fills prepared->facts; the step is compiled for it, so that what does not fit is seen now.
// `evaluated` describes the data for evaluation.
absl::Status GatherFacts(TrainingModel* model, const TrainOptions& options,
                         const std::string& evaluated, PreparedRun* prepared);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_FACTS_H_

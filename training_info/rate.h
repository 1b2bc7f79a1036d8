// SPDX-License-Identifier: Apache-2.0
// The learning rate of a trainable file, after it was written: what the file says of it, and how
// it is changed. MakeTrainable calls the rate of a step `learning_rate`.
#ifndef ONWARD_TRAINING_INFO_RATE_H_
#define ONWARD_TRAINING_INFO_RATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"
#include "optimizers/schedule.h"
#include "training_info/recipe.h"
#include "training_info/step.h"

namespace onward {

inline constexpr char kMetaOptimizer[] = "onward.optimizer";  // what --optimizer takes
inline constexpr char kMetaSchedule[] = "onward.schedule";    // what --schedule takes

// The output of the algorithm, and the variable of type double that it is multiplied with where
// there is one. A step leaves the variable as it is; who trains sets it.
inline constexpr char kRateOutput[] = "learning_rate";
inline constexpr char kRateFactor[] = "onward_rate_factor";

struct RateRecipe {
  OptimizerChoice optimizer;
  ScheduleSpec schedule;
};
void StoreRate(const RateRecipe& recipe, Model* model);
// An error where the file does not say.
absl::StatusOr<RateRecipe> StoredRate(const Model& model);

// Multiplies the rate by a new variable that is 1; nothing to do where it is there.
absl::Status AddRateFactor(const Environment& environment, Model* model);

// Another base rate or schedule for a file that says what it has; groups keep their ratio to it.
// reduce_on_plateau brings its factor.
absl::Status ReplaceRate(double base_rate, const ScheduleSpec& schedule,
                         const Environment& environment, Model* model);

bool HasRateFactor(const TrainingModel& model);
// The present factor; 1 where there is none.
double RateFactor(const TrainingModel& model);
// Of a model that has one.
void SetRateFactor(double factor, TrainingModel* model);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_RATE_H_

// SPDX-License-Identifier: Apache-2.0
// Which learning rate to begin with: the rate grows from step to step, and the loss tells when it
// is too large.
#ifndef ONWARD_TRAINER_RUN_FIND_RATE_H_
#define ONWARD_TRAINER_RUN_FIND_RATE_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "trainer/run/options.h"
#include "training_info/step.h"

namespace onward {

struct RateTrial {
  double rate = 0, loss = 0, smoothed = 0;
};

struct RateSearch {
  std::vector<RateTrial> curve;  // rates ascending, to where the loss left for good
  RateTrial least;               // of the smoothed losses
  double suggested = 0;
};

// Makes the rate of a trainable model what SetRateFactor says.
absl::Status PrepareForSearch(const Environment& environment, Model* model);

// For a model that was prepared so. It has learned from the trials: it is for nothing else
// afterwards.
absl::StatusOr<RateSearch> FindRate(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                    TrainOptions options, const std::atomic<bool>* cancel);

// A third into the longest descent of the curve, as fastai's "valley" has it; losses smoothed,
// at least one.
double SuggestRate(const std::vector<RateTrial>& curve);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_FIND_RATE_H_

// SPDX-License-Identifier: Apache-2.0
// Training on one batch over and over: what can learn at all learns that by heart.
#ifndef ONWARD_TRAINER_DOCTOR_ONE_BATCH_H_
#define ONWARD_TRAINER_DOCTOR_ONE_BATCH_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/session.h"
#include "trainer/report/page/report.h"
#include "training_info/step.h"

namespace onward {

struct Trial {
  double rate = kNotMeasured;       // where the file tells it
  std::vector<double> losses = {};  // step by step
  std::string broke = "";           // why it ended early; "" if it did not

  double first() const { return losses.empty() ? kNotMeasured : losses.front(); }
  // The mean of the last fifth.
  double last() const;
  // By which part of itself the loss has fallen.
  double Progress() const;
  bool Diverged() const;
};

// Makes the rate of a trainable model constant, and such that SetRateFactor changes it. False,
// and the model as it was, where the file does not say what its rate is.
bool MakeRateAdjustable(const Environment& environment, Model* model);

class OneBatch {
 public:
  // Each trial begins with the values that the model has now.
  OneBatch(TrainingModel* model, TensorMap feeds, std::string loss, int64_t steps);

  // With so many times the file's rate, which has to be adjustable unless that is 1. The model
  // has the values of the trial afterwards.
  absl::StatusOr<Trial> Try(double factor, const std::atomic<bool>* cancel);

 private:
  void Restore();

  TrainingModel* model_;
  const TensorMap feeds_;
  const std::string loss_;
  const int64_t steps_;
  const RandomState random_;
  const double factor_, rate_;  // as the file has them; the rate may be NaN
  Variables start_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_DOCTOR_ONE_BATCH_H_

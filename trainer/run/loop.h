// SPDX-License-Identifier: Apache-2.0
// A fine-tuning run: batches, steps, evaluation, checkpoints. The .onnx file is the whole
// checkpoint.
#ifndef ONWARD_TRAINER_RUN_LOOP_H_
#define ONWARD_TRAINER_RUN_LOOP_H_

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "trainer/run/listener.h"
#include "trainer/run/options.h"
#include "training_info/step.h"

namespace onward {

// Trains `model`: its variables move on, unless OnNan::kBack made the run go back. `eval` and
// `listener` may be null. `cancel` stops between two kernels; the state of the last whole step is
// saved then too. A step whose loss is not finite ends the run with an error after saving the last
// good state (OnNan says otherwise). A run that fails before its first step writes nothing, and one
// that fails before its first checkpoint leaves the result of another run that it was going to
// replace.
absl::StatusOr<TrainResult> Train(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                  std::shared_ptr<const Dataset> eval, const TrainOptions& options,
                                  RunListener* listener, const std::atomic<bool>* cancel);

// All that Train checks before the first step, and more of the data; then tries two steps with
// the first examples, to see how long one takes. The model has learned from them: it is for
// nothing else afterwards. `listener` would listen to the run; here it is told nothing.
absl::StatusOr<RunFacts> DryRun(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                std::shared_ptr<const Dataset> eval, TrainOptions options,
                                const RunListener& listener);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_LOOP_H_

// SPDX-License-Identifier: Apache-2.0
// A fine-tuning run: batches, steps, evaluation, checkpoints. The .onnx file is the whole
// checkpoint.
#ifndef ONWARD_TRAINER_RUN_LOOP_H_
#define ONWARD_TRAINER_RUN_LOOP_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "data/batch.h"
#include "trainer/run/listener.h"
#include "training_info/step.h"

namespace onward {

// Metadata that a checkpoint carries beside the standard's own fields.
inline constexpr char kMetaSteps[] = "onward.steps";
inline constexpr char kMetaEpoch[] = "onward.data_epoch";
inline constexpr char kMetaIndex[] = "onward.data_index";
inline constexpr char kMetaDataSeed[] = "onward.data_seed";
inline constexpr char kMetaBatch[] = "onward.batch";
inline constexpr char kMetaShuffle[] = "onward.shuffle";  // 0: examples in their order

struct TrainOptions {
  std::string output;  // where checkpoints go
  WriteOptions write;  // and how
  int64_t steps = 0;   // in all, resumed ones included; 0: epochs decide
  int64_t epochs = 1;
  int64_t batch = 64;
  uint64_t seed = 0;
  bool shuffle = true;
  // A checkpoint is written after every epoch (unless the last one was so recent that
  // writing would take more than a twentieth of the time), after so many steps where that
  // is above 0, and where this many seconds have passed without one.
  int64_t save_every = 0;
  double save_seconds = 600;
  int64_t eval_every = 0;               // steps between evaluations; 0: after each epoch
  bool resumed = false;                 // goes on where the model's metadata say it stopped
  std::vector<ReportSetting> settings;  // RunFacts
};

// Trains `model` (its variables move on). `eval` and `listener` may be null. `cancel` stops
// between two kernels; the state of the last whole step is saved then too. A
// step whose loss is not finite ends the run with an error after saving the
// last good state. A run that fails before its first step writes nothing, and
// one that fails before its first checkpoint leaves the result of another run
// that it was going to replace.
absl::StatusOr<TrainResult> Train(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                  std::shared_ptr<const Dataset> eval, const TrainOptions& options,
                                  RunListener* listener, const std::atomic<bool>* cancel);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_LOOP_H_

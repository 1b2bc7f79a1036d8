// SPDX-License-Identifier: Apache-2.0
// The batches of a run as its model is fed them. While an accelerator works on a step, the batch
// behind it is read and sent on its way; where the run stands is told by the steps that are done,
// whatever has been read.
#ifndef ONWARD_TRAINER_RUN_AHEAD_H_
#define ONWARD_TRAINER_RUN_AHEAD_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "data/batch.h"
#include "trainer/run/feeding.h"
#include "training_info/step.h"

namespace onward {

class BatchesAhead {
 public:
  // Both outlive this; nobody else reads from the source.
  BatchesAhead(BatchSource* source, const Feeding* feeding)
      : source_(*source), feeding_(*feeding), position_(source->position()) {}

  // Makes the next batch the present one.
  absl::Status Next();
  const Batch& batch() const { return batches_[turn_].batch; }
  const TensorMap& feeds() const { return batches_[turn_].feeds; }

  // During a step on the present batch: reads the one behind it, for a step of `model` that gives
  // the outputs `wanted`. Whatever is wrong with it is said when it is its turn.
  void ReadAhead(TrainingModel* model, const std::vector<std::string>& wanted);

  // The present batch counts as taken.
  void Done() { position_ = batches_[turn_].after; }
  // Behind the last batch that does.
  const BatchPosition& position() const { return position_; }
  // Goes on from there; what was read ahead is dropped.
  absl::Status SetPosition(const BatchPosition& position);

 private:
  struct Taken {
    Batch batch;
    TensorMap feeds;
    BatchPosition after;
  };
  absl::Status Take(Taken* taken);

  BatchSource& source_;
  const Feeding& feeding_;
  BatchPosition position_;
  Taken batches_[2];  // the present one, and the other
  int turn_ = 0;
  bool ahead_ = false;  // the other is the next one
};

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_AHEAD_H_

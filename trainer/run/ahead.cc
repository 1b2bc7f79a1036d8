// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/ahead.h"

#include <utility>

#include "core/base/status.h"

namespace onward {

absl::Status BatchesAhead::Take(Taken* taken) {
  taken->feeds.clear();
  ONWARD_RETURN_IF_ERROR(source_.Next(&taken->batch));
  taken->after = source_.position();
  ONWARD_ASSIGN_OR_RETURN(taken->feeds, feeding_.Feeds(taken->batch.tensors));
  return absl::OkStatus();
}

absl::Status BatchesAhead::Next() {
  if (!std::exchange(ahead_, false)) return Take(&batches_[turn_]);
  turn_ = 1 - turn_;
  return absl::OkStatus();
}

void BatchesAhead::ReadAhead(TrainingModel* model, const std::vector<std::string>& wanted) {
  Taken& next = batches_[1 - turn_];
  const BatchPosition before = source_.position();
  ahead_ = Take(&next).ok();
  if (ahead_) {
    // What is not sent now is sent by its step.
    model->Stage(next.feeds, wanted).IgnoreError();
  } else {
    source_.SetPosition(before).IgnoreError();
  }
}

absl::Status BatchesAhead::SetPosition(const BatchPosition& position) {
  ahead_ = false;
  position_ = position;
  return source_.SetPosition(position);
}

}  // namespace onward

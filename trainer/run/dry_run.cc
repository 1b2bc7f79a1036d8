// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"
#include "trainer/run/checkpoints.h"
#include "trainer/run/facts.h"
#include "trainer/run/loop.h"
#include "trainer/run/prepared_run.h"

namespace onward {

absl::StatusOr<RunFacts> DryRun(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                std::shared_ptr<const Dataset> eval, TrainOptions options,
                                const RunListener& listener) {
  options.check_all_data = true;
  ONWARD_ASSIGN_OR_RETURN(PreparedRun prepared,
                          PrepareRun(model, std::move(data), std::move(eval), listener, options));
  ONWARD_ASSIGN_OR_RETURN(const TensorMap feeds, FirstFeeds(prepared, options.batch));
  // The first step also finds its memory.
  for (int i = 0; i < 2; ++i) {
    const double begin = SteadySeconds();
    const absl::Status status = model->Step(feeds, prepared.wanted).status();
    // A run that skips such batches is not timed by one.
    if (absl::IsOutOfRange(status) && options.on_nan == OnNan::kSkip) break;
    ONWARD_RETURN_IF_ERROR(status);
    prepared.facts.step_seconds = SteadySeconds() - begin;
  }
  return std::move(prepared.facts);
}

}  // namespace onward

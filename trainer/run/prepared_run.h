// SPDX-License-Identifier: Apache-2.0
// What a run needs before its first step: data that fits the model, and what is known of both.
#ifndef ONWARD_TRAINER_RUN_PREPARED_RUN_H_
#define ONWARD_TRAINER_RUN_PREPARED_RUN_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/batch.h"
#include "trainer/run/evaluate.h"
#include "trainer/run/feeding.h"
#include "trainer/run/judging.h"
#include "trainer/run/listener.h"
#include "trainer/run/norms.h"
#include "trainer/run/options.h"
#include "trainer/run/watch.h"
#include "training_info/rate.h"
#include "training_info/step.h"

namespace onward {

struct PreparedRun {
  std::shared_ptr<const Dataset> data;  // labels are numbers of the model's outputs
  LossParts losses;                     // as the step computes them; maybe no parts
  Judging judging;                      // of the main output
  std::vector<std::string> wanted;      // outputs of the step that are looked at
  std::vector<std::string> classes;     // what the file calls its classes; none: nothing
  int64_t data_classes = 0;
  std::optional<BatchSource> source;  // where the run goes on
  std::optional<Feeding> feeding;
  std::unique_ptr<Evaluator> evaluator;  // null: there is nothing to evaluate on
  Metric metric = Metric::kLoss;         // by which evaluations are compared
  std::optional<Plateau> plateau;        // where the schedule asks for it
  std::optional<Patience> patience;      // where the options do
  std::unique_ptr<NormMeter> norms;      // where a listener wants details
  std::string data_fingerprint, run_fingerprint;
  RunFacts facts;
};

// Everything that can be checked beforehand is. `eval` may be null; `listener` is asked what it
// wants, and told nothing.
absl::StatusOr<PreparedRun> PrepareRun(TrainingModel* model, std::shared_ptr<const Dataset> data,
                                       std::shared_ptr<const Dataset> eval,
                                       const RunListener& listener, const TrainOptions& options);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_PREPARED_RUN_H_

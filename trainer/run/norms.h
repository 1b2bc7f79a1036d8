// SPDX-License-Identifier: Apache-2.0
// How long the weights of a model are, and the gradients that train them. Measured beside the
// step, by a graph of its own that assigns nothing: a run gives the same bits with and without.
#ifndef ONWARD_TRAINER_RUN_NORMS_H_
#define ONWARD_TRAINER_RUN_NORMS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/session.h"
#include "trainer/report/page/report.h"
#include "training_info/step.h"

namespace onward {

class NormMeter {
 public:
  // Of the first entry. Gradients are outputs of its Gradient nodes, or values named W__grad, as
  // `make-trainable --gradient expanded` has them.
  explicit NormMeter(const TrainingModel& model);

  // The plan that a measurement with feeds like these follows; null where the gradients cannot be
  // told.
  absl::StatusOr<const Plan*> Prepare(const TensorMap& feeds, const TrainingModel& model);

  // Of every variable that has a gradient, in the order of their names; none where the gradients
  // cannot be told. `feeds` are those of a step.
  absl::StatusOr<std::vector<LayerNorm>> Measure(const TensorMap& feeds, TrainingModel* model);

 private:
  struct Layer {
    std::string variable, gradient;  // a value of the graph
    std::string norm;                // and its length
  };
  absl::Status Open(const TrainingModel& model);
  // Those of `feeds` that the graph reads.
  TensorMap Relevant(const TensorMap& feeds) const;

  std::vector<Layer> layers_;
  std::vector<std::string> inputs_;
  std::unique_ptr<Session> session_;  // from the first use on
};

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_NORMS_H_

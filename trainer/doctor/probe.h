// SPDX-License-Identifier: Apache-2.0
// What batches look like inside a model: the numbers that its layers read, which units speak,
// and how large the gradients are. Nothing is trained.
#ifndef ONWARD_TRAINER_DOCTOR_PROBE_H_
#define ONWARD_TRAINER_DOCTOR_PROBE_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/session.h"
#include "trainer/doctor/landmarks.h"
#include "trainer/doctor/spread.h"
#include "training_info/step.h"

namespace onward {

struct ReadNumbers {
  LayerRead read;
  Spread numbers = {}, made = {};
  std::vector<Spread> columns = {};  // where what is read has the shape [N, columns]
};

struct UnitActivity {
  std::string node;
  std::vector<double> largest = {};  // |value| of each unit, over all examples and places
};

struct WeightGradient {
  std::string weight;
  // At least two axes, and not only added: a bias before a normalisation and one of an attention's
  // keys have no gradient by nature, of whatever shape they are.
  bool is_matrix = false;
  double squares = 0;  // sum of squares, the mean over batches
  int64_t elements = 0;
  double norm() const;
  double rms() const;
};

struct Probe {
  int64_t batches = 0;
  Spread losses;
  std::vector<ReadNumbers> reads;
  std::vector<UnitActivity> units;
  std::vector<WeightGradient> gradients;  // in the order of the forward pass
  std::set<std::string> unread;           // trained weights that the loss does not depend on
  Tensor output;                          // what the loss compares, of the first batch
};

struct ProbeTargets {
  std::string loss;    // a value of the training graph
  std::string output;  // likewise, may be ""
  std::set<std::string> labels;
  std::set<std::string> weights;  // TrainedWeights
};

class Prober {
 public:
  // Keeps the pointer.
  static absl::StatusOr<Prober> Create(TrainingModel* model, const ProbeTargets& targets);

  Probe Begin() const;
  // Adds what a batch shows with the present values of the model.
  absl::Status Look(const TensorMap& feeds, Probe* probe) const;

 private:
  Prober() = default;
  absl::Status Watch(const ProbeTargets& targets, Graph graph);

  TrainingModel* model_ = nullptr;
  std::string loss_, output_;
  std::vector<LayerRead> reads_;
  std::vector<UnitLayer> units_;
  std::vector<std::string> weights_;
  std::set<std::string> unread_, added_;
  // Values that the session computes for each unit layer and each weight.
  std::vector<std::string> largest_, squares_;
  std::unique_ptr<Session> session_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_DOCTOR_PROBE_H_

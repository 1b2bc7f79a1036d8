// SPDX-License-Identifier: Apache-2.0
// Loss and accuracy (or error) of an inference graph over a data set.
#ifndef ONWARD_TRAINER_RUN_EVALUATE_H_
#define ONWARD_TRAINER_RUN_EVALUATE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"
#include "data/dataset.h"
#include "environment/environment.h"
#include "losses/loss.h"
#include "trainer/report/metrics.h"
#include "trainer/report/report.h"
#include "trainer/run/feeding.h"

namespace onward {

struct EvaluateOptions {
  std::string output;                // empty: the graph's first
  std::optional<LossSpec> loss;      // nullopt: DefaultLoss
  std::vector<std::string> classes;  // what the model's file calls them; empty: nothing
  int64_t batch = 256;
  absl::flat_hash_set<std::string> variables;  // initializers that change
  int wrong_examples = 0;                      // how many to keep for the report
  // CompileOptions::looked_at.
  std::function<void(const void* data, size_t bytes)> looked_at;
};

struct Evaluation {
  int64_t examples = 0;
  double loss = kNotMeasured;
  double accuracy = kNotMeasured;
  double mae = kNotMeasured, rmse = kNotMeasured;
  std::optional<ConfusionMatrix> confusion;
  std::vector<WrongExample> wrong;
  // Predictions that were judged, one or more for each example, and the wrong ones.
  int64_t judged = 0, wrong_total = 0;
};

class Evaluator {
 public:
  // `graph` is the canonical inference graph. The environment has to outlive the result.
  static absl::StatusOr<std::unique_ptr<Evaluator>> Create(Graph graph,
                                                           std::shared_ptr<const Dataset> data,
                                                           const EvaluateOptions& options,
                                                           const Environment& environment);
  absl::StatusOr<Evaluation> Run(Variables* variables, const std::atomic<bool>* cancel = nullptr);
  // What the user should know about labels and classes; "" if nothing.
  const std::string& note() const { return note_; }

 private:
  Evaluator() = default;
  void KeepWrong(const Predictions& predictions, const Tensor& labels, const Tensor& images,
                 Evaluation* e) const;

  std::shared_ptr<const Dataset> data_;
  EvaluateOptions options_;
  std::string label_, note_;
  LossSpec loss_spec_;
  std::string loss_;
  bool fixed_batch_ = false;
  std::optional<Feeding> feeding_;
  std::unique_ptr<Session> session_;
};

// The loss that goes with a model and labels of so many classes (0: they are numbers):
// cross entropy of logits or of what the last operator makes of them, binary where the
// model has one score for two classes; mse for numbers.
LossSpec DefaultLoss(const Graph& graph, const std::string& output, int64_t classes);
// The same with what labels of the data tell: with one for each of several positions the
// classes may be the last axis, and where their number differs some are passed over.
LossSpec DefaultLoss(const Graph& graph, const std::string& output, const Dataset& data);

// The loss that a trainable model says it is trained with, if it does.
std::optional<LossSpec> StoredLoss(const Model& model);

// The label that such a loss passes over, if there is one.
std::optional<int64_t> IgnoredLabel(const LossSpec& loss);

// Whether the labels of such a loss are probabilities of classes.
bool TakesProbabilities(const LossSpec& loss);

// Whether such a loss judges classes, and how the scores it takes are read.
bool JudgesClasses(const LossSpec& loss);
Scoring ScoringOf(const LossSpec& loss);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_EVALUATE_H_

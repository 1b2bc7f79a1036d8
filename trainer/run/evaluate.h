// SPDX-License-Identifier: Apache-2.0
// Losses and accuracy (or error) of a model over a data set.
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
#include "trainer/report/page/report.h"
#include "trainer/run/feeding.h"
#include "trainer/run/judging.h"

namespace onward {

struct EvaluateOptions {
  std::string output;                          // of a loss that names none; empty: DefaultOutput
  std::optional<LossParts> losses;             // that the graph holds already (LossGraph)
  std::vector<LossTerm> terms;                 // otherwise to be added; none: DefaultLoss
  std::vector<std::string> classes;            // what the model's file calls them; empty: nothing
  int64_t batch = 0;                           // 0: ExamplesAtOnce
  absl::flat_hash_set<std::string> variables;  // initializers that change
  int wrong_examples = 0;                      // how many to keep for the report
  // CompileOptions::looked_at.
  std::function<void(const void* data, size_t bytes)> looked_at;
};

struct Evaluation {
  int64_t examples = 0;
  double loss = kNotMeasured;  // the sum of all, with their weights
  // Of the main output: the first that has classes, else the first that is compared.
  double accuracy = kNotMeasured;
  double mae = kNotMeasured, rmse = kNotMeasured, r2 = kNotMeasured;
  double perplexity = kNotMeasured;  // of sequences
  std::optional<ConfusionMatrix> confusion;
  std::optional<Calibration> calibration;
  std::vector<NumberPair> pairs;    // some of the numbers
  std::vector<WrongExample> wrong;  // the most confident first
  // Predictions that were judged, one or more for each example, and the wrong ones.
  int64_t judged = 0, wrong_total = 0;
  // Each loss by itself; none where the data has no labels.
  std::vector<PartEvaluation> parts;
};

// The figure of an evaluation that decides.
enum class Metric { kLoss, kAccuracy, kRmse, kMae };

std::vector<std::string> MetricNames();  // in the order of the values
std::string MetricName(Metric metric);
bool HigherIsBetter(Metric metric);
double MetricOf(Metric metric, const Evaluation& evaluation);

class Evaluator {
 public:
  // `graph` is a canonical inference graph. The environment has to outlive the result.
  static absl::StatusOr<std::unique_ptr<Evaluator>> Create(Graph graph,
                                                           std::shared_ptr<const Dataset> data,
                                                           const EvaluateOptions& options,
                                                           const Environment& environment);
  absl::StatusOr<Evaluation> Run(Variables* variables, const std::atomic<bool>* cancel = nullptr);
  // An error where evaluations will not have such a figure.
  absl::Status CheckMeasures(Metric metric) const;
  // What the user should know about labels and classes; "" if nothing.
  const std::string& note() const { return note_; }

 private:
  Evaluator() = default;
  absl::Status PrepareLosses(const Environment& environment, Graph* graph);
  absl::Status AlignLabels(const Graph& graph);
  void ChooseMain();
  std::vector<std::string> Wanted() const;
  // `first`: the position of the first of these examples.
  void KeepWrong(const Judge::Answers& answers, const Tensor& inputs, int64_t first,
                 Evaluation* e) const;

  std::shared_ptr<const Dataset> data_;
  EvaluateOptions options_;
  LossParts losses_;  // none where the data has no labels for them
  std::vector<Judging> judgings_;
  size_t main_ = 0;
  std::string note_;
  bool fixed_batch_ = false;
  std::optional<Feeding> feeding_;
  std::unique_ptr<Session> session_;
};

// The graph to evaluate a trainable model by: its inference graph, with the losses that it says
// it is trained with (else with none), which EvaluateOptions get.
absl::StatusOr<Graph> EvaluationGraph(const Model& model, const TrainingSpec& spec,
                                      const Environment& environment, EvaluateOptions* options);

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_EVALUATE_H_

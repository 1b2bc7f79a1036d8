// SPDX-License-Identifier: Apache-2.0
// How the answers of a model are judged beside its losses: by the share of right classes, or by
// the error of numbers.
#ifndef ONWARD_TRAINER_RUN_JUDGING_H_
#define ONWARD_TRAINER_RUN_JUDGING_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/runtime/session.h"
#include "data/dataset.h"
#include "losses/loss.h"
#include "trainer/report/numbers/metrics.h"
#include "trainer/report/page/report.h"
#include "training_info/loss_parts.h"

namespace onward {

// The loss that goes with a model and labels of so many classes (0: they are numbers):
// cross entropy of logits or of what the last operator makes of them, binary where the
// model has one score for two classes; mse for numbers.
LossSpec DefaultLoss(const Graph& graph, const std::string& output, int64_t classes);
// The same for the labels of a data set, whose shape also tells where the classes are, and that
// some are passed over where their number differs.
LossSpec DefaultLoss(const Graph& graph, const std::string& output, const Dataset& data);

// The loss that a trainable model says it is trained with, if it does; the first of several.
std::optional<LossSpec> StoredLoss(const Model& model);

// Where a loss over classes does not say on which axis they are, and labels of this shape fit
// only if it is the last one: says so in the loss, and returns true.
bool InferClassAxis(const ValueType* output, const Shape& label, LossSpec* loss);

// The field of the labels; null where there is none.
const FieldInfo* LabelField(const std::vector<FieldInfo>& fields);

// The label that such a loss passes over, if there is one.
std::optional<int64_t> IgnoredLabel(const LossSpec& loss);

// Whether the labels of such a loss are probabilities of classes.
bool TakesProbabilities(const LossSpec& loss);

// Whether such a loss judges classes, and how the scores it takes are read.
bool JudgesClasses(const LossSpec& loss);
Scoring ScoringOf(const LossSpec& loss);

enum class JudgedBy { kClasses, kNumbers, kLossAlone };

// How the output of one loss is compared with its label.
struct Judging {
  JudgedBy by = JudgedBy::kLossAlone;
  std::string output, label;  // a value and an input of the graph
  Scoring scoring = {};
  std::optional<int64_t> ignored = std::nullopt;
  // A plain cross entropy over the positions of sequences: its exponential is the perplexity.
  bool sequence = false;
};
// By the loss where it is known by its name, else by the types of output and label.
Judging JudgingOf(const LossPart& part, const Graph& graph);

// One loss of an evaluation.
struct PartEvaluation {
  std::string name;            // "0.1*l1@mask"
  std::string output;          // of the model: "mask"
  double loss = kNotMeasured;  // before its weight
  double accuracy = kNotMeasured;
  double mae = kNotMeasured, rmse = kNotMeasured, r2 = kNotMeasured;
  double perplexity = kNotMeasured;
  // Predictions that were judged, one or more for each example, and the wrong ones.
  int64_t judged = 0, wrong_total = 0;
  std::optional<ConfusionMatrix> confusion = std::nullopt;
  std::optional<Calibration> calibration = std::nullopt;
  std::vector<NumberPair> pairs = {};
};

// Judges batch after batch.
class Judge {
 public:
  // `classes`: at least so many are told apart.
  Judge(Judging judging, int64_t classes) : judging_(std::move(judging)), classes_(classes) {}

  const Judging& judging() const { return judging_; }
  // The predictions, where classes are judged, with the class of each.
  struct Answers {
    Predictions predictions;
    Tensor actual;
  };
  absl::StatusOr<std::optional<Answers>> Add(const TensorMap& values, const TensorMap& feeds);
  void Fill(PartEvaluation* evaluation) const;

 private:
  Judging judging_;
  int64_t classes_;
  std::optional<ClassificationMetrics> classification_;
  RegressionMetrics regression_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_JUDGING_H_

// SPDX-License-Identifier: Apache-2.0
// What a run is measured by. Sums are in double and in the order of the calls,
// so the same batches give the same figures.
#ifndef ONWARD_TRAINER_REPORT_NUMBERS_METRICS_H_
#define ONWARD_TRAINER_REPORT_NUMBERS_METRICS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"
#include "trainer/report/numbers/calibration.h"
#include "trainer/report/numbers/value_pairs.h"

namespace onward {

// A weighted mean: of batch losses, weighted by batch size.
class RunningMean {
 public:
  void Add(double value, double weight = 1);
  // NaN before the first value.
  double mean() const;
  double weight() const { return weight_; }
  bool empty() const { return weight_ == 0; }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

// An exponential mean without the pull towards its start: the k-th value of a
// series x is sum(decay^i x[k-i]) / sum(decay^i). Values that are not finite are
// passed over.
class SmoothedMean {
 public:
  explicit SmoothedMean(double decay) : decay_(decay) {}
  void Add(double value);
  double mean() const;

 private:
  double decay_;
  double sum_ = 0;
  double weight_ = 0;
};

// Of the figures of single steps that are called smoothed, wherever they are shown.
inline constexpr double kStepDecay = 0.98;

// What a model's scores say.
struct Predictions {
  std::vector<int64_t> classes;
  std::vector<float> confidence;  // probability of that class
};

enum class ScoreKind {
  kAuto,  // rows that are probabilities are taken as such, others as logits
  kLogits,
  kProbabilities,
};

// How scores are to be read.
struct Scoring {
  ScoreKind kind = ScoreKind::kAuto;
  bool classes_last = false;  // [N, ..., C] instead of [N, C, ...]
  bool binary = false;        // every score is that of a yes, whatever the shape
  bool soft_labels = false;   // labels are probabilities, shaped like the scores
};

// Scores [N, C, ...] give one class per example and trailing position, the
// lowest index winning ties. With C = 1 or scores [N] there are two classes and
// the score is the second's; kAuto then means logits.
absl::StatusOr<Predictions> Predict(const Tensor& scores, const Scoring& scoring = {});

// The probabilities that scores [N, C] stand for, as floats [N, C]; with C = 1 or scores [N]
// those of two classes. An error for other shapes.
absl::StatusOr<Tensor> Probabilities(const Tensor& scores, const Scoring& scoring = {});

// How many classes such scores tell apart.
int64_t ClassesOf(const Shape& scores, const Scoring& scoring);

// The class numbers that labels stand for: where scores are those of a yes, labels above
// a half are 1, others 0; of probabilities the largest, or -1 where all are 0; else they are
// class numbers themselves.
absl::StatusOr<Tensor> ClassLabels(const Tensor& labels, const Scoring& scoring);

// Counts by actual and predicted class.
class ConfusionMatrix {
 public:
  // An error for fewer than 1 or more than 4096 classes.
  static absl::StatusOr<ConfusionMatrix> Create(int64_t classes);

  // An error for classes outside the matrix.
  absl::Status Add(int64_t actual, int64_t predicted, int64_t count = 1);

  int64_t classes() const { return classes_; }
  int64_t count(int64_t actual, int64_t predicted) const {
    return counts_[actual * classes_ + predicted];
  }
  int64_t total() const { return total_; }
  int64_t actual(int64_t c) const;     // examples of class c
  int64_t predicted(int64_t c) const;  // examples taken for class c
  double accuracy() const;             // NaN while empty, as are the following
  double precision(int64_t c) const;
  double recall(int64_t c) const;
  double f1(int64_t c) const;
  double macro_f1() const;  // mean over the classes that occur

 private:
  explicit ConfusionMatrix(int64_t classes) : classes_(classes), counts_(classes * classes, 0) {}

  int64_t classes_ = 0;
  int64_t total_ = 0;
  std::vector<int64_t> counts_;
};

// The share of right answers, and the confusion matrix where it is not too large.
class ClassificationMetrics {
 public:
  // Labels equal to `ignore` and negative labels do not count.
  explicit ClassificationMetrics(int64_t classes, std::optional<int64_t> ignore = std::nullopt);

  // `labels` holds one class per prediction.
  absl::Status Add(const Predictions& predictions, const Tensor& labels);

  double accuracy() const;  // NaN while empty
  int64_t correct() const { return correct_; }
  int64_t total() const { return total_; }
  const std::optional<ConfusionMatrix>& confusion() const { return confusion_; }
  const Calibration& calibration() const { return calibration_; }

 private:
  std::optional<int64_t> ignore_;
  std::optional<ConfusionMatrix> confusion_;
  Calibration calibration_;
  int64_t correct_ = 0;
  int64_t total_ = 0;
};

class RegressionMetrics {
 public:
  // Tensors of any floating or integer type with the same number of elements.
  absl::Status Add(const Tensor& predictions, const Tensor& targets);

  int64_t total() const { return total_; }
  double mae() const;   // mean |p - t|
  double rmse() const;  // sqrt(mean (p - t)^2)
  double r2() const;    // 1 - sum (p - t)^2 / sum (t - mean t)^2; NaN where all t are the same
  const std::vector<NumberPair>& pairs() const { return sample_.pairs(); }

 private:
  PairSample sample_;
  int64_t total_ = 0;
  double absolute_ = 0;
  double squared_ = 0;
  // Welford's running mean and sum of squared deviations of the targets.
  double target_mean_ = 0;
  double target_spread_ = 0;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_NUMBERS_METRICS_H_

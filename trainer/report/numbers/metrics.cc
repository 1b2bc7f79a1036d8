// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/numbers/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMostClasses = 4096;

double Ratio(double a, double b) { return b == 0 ? kNan : a / b; }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

int ClassAxis(const Shape& scores, const Scoring& scoring) {
  return scoring.classes_last ? scores.rank() - 1 : 1;
}

int64_t ScoresOfPrediction(const Shape& scores, const Scoring& scoring) {
  return scoring.binary || scores.rank() < 2 ? 1 : scores[ClassAxis(scores, scoring)];
}

// One class per row of C scores at `stride`.
struct Row {
  const std::vector<double>& scores;
  int64_t begin, stride, count;
  double operator[](int64_t c) const { return scores[begin + c * stride]; }
};

bool AreProbabilities(const Row& row) {
  double sum = 0;
  for (int64_t c = 0; c < row.count; ++c) {
    if (!(row[c] >= 0)) return false;
    sum += row[c];
  }
  return std::fabs(sum - 1) < 1e-3;
}

int64_t Best(const Row& row) {
  int64_t best = 0;
  for (int64_t c = 1; c < row.count; ++c) {
    // A NaN never wins against a number.
    if (row[c] > row[best] || (std::isnan(row[best]) && !std::isnan(row[c]))) best = c;
  }
  return best;
}

bool AreLogits(const Row& row, ScoreKind kind) {
  return kind == ScoreKind::kLogits || (kind == ScoreKind::kAuto && !AreProbabilities(row));
}

// What exp(score - highest) has to be divided by.
double SoftmaxSum(const Row& row, double highest) {
  double sum = 0;
  for (int64_t c = 0; c < row.count; ++c) sum += std::exp(row[c] - highest);
  return sum;
}

void PredictRow(const Row& row, ScoreKind kind, Predictions* out) {
  const int64_t best = Best(row);
  const double confidence = AreLogits(row, kind) ? 1 / SoftmaxSum(row, row[best]) : row[best];
  out->classes.push_back(best);
  out->confidence.push_back(static_cast<float>(confidence));
}

double ProbabilityOfYes(double score, ScoreKind kind) {
  return kind == ScoreKind::kProbabilities ? score : Sigmoid(score);
}

void PredictBinary(double score, ScoreKind kind, Predictions* out) {
  const double p = ProbabilityOfYes(score, kind);
  out->classes.push_back(p > 0.5 ? 1 : 0);
  out->confidence.push_back(static_cast<float>(p > 0.5 ? p : 1 - p));
}

}  // namespace

void RunningMean::Add(double value, double weight) {
  sum_ += value * weight;
  weight_ += weight;
}

double RunningMean::mean() const { return Ratio(sum_, weight_); }

void SmoothedMean::Add(double value) {
  if (!std::isfinite(value)) return;
  sum_ = sum_ * decay_ + value;
  weight_ = weight_ * decay_ + 1;
}

double SmoothedMean::mean() const { return Ratio(sum_, weight_); }

int64_t ClassesOf(const Shape& scores, const Scoring& scoring) {
  const int64_t classes = ScoresOfPrediction(scores, scoring);
  return classes == 1 ? 2 : classes;
}

absl::StatusOr<Predictions> Predict(const Tensor& scores, const Scoring& scoring) {
  const Shape& shape = scores.shape();
  if (shape.rank() < 1) return absl::InvalidArgumentError("scores have no axis for the examples");
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(scores));
  Predictions out;
  const int axis = ClassAxis(shape, scoring);
  const int64_t classes = ScoresOfPrediction(shape, scoring);
  if (classes == 1) {
    for (double v : values) PredictBinary(v, scoring.kind, &out);
    return out;
  }
  if (classes < 1) {
    return absl::InvalidArgumentError(absl::StrCat("scores of shape ", shape.ToString()));
  }
  const int64_t inner = shape.elements(axis + 1, shape.rank());
  for (int64_t n = 0; n < shape.elements(0, axis); ++n) {
    for (int64_t i = 0; i < inner; ++i) {
      PredictRow({values, n * classes * inner + i, inner, classes}, scoring.kind, &out);
    }
  }
  return out;
}

absl::StatusOr<Tensor> Probabilities(const Tensor& scores, const Scoring& scoring) {
  const Shape& shape = scores.shape();
  const int64_t rows = shape.rank() < 1 ? 0 : shape[0];
  const int64_t classes = rows == 0 ? 0 : scores.elements() / rows;
  const bool one_score = scoring.binary || classes == 1;
  if (classes < 1 || (one_score && classes != 1) ||
      (!one_score && shape[ClassAxis(shape, scoring)] != classes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected one row of scores for each example, got shape ", shape.ToString()));
  }
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(scores));
  Tensor out(DType::kFloat, {rows, std::max<int64_t>(2, classes)});
  float* to = out.data<float>();
  for (int64_t n = 0; n < rows; ++n) {
    if (one_score) {
      const double p = ProbabilityOfYes(values[n], scoring.kind);
      *to++ = static_cast<float>(1 - p);
      *to++ = static_cast<float>(p);
      continue;
    }
    const Row row{values, n * classes, 1, classes};
    const bool logits = AreLogits(row, scoring.kind);
    const double highest = row[Best(row)], sum = logits ? SoftmaxSum(row, highest) : 1;
    for (int64_t c = 0; c < classes; ++c) {
      *to++ = static_cast<float>(logits ? std::exp(row[c] - highest) / sum : row[c]);
    }
  }
  return out;
}

absl::StatusOr<ConfusionMatrix> ConfusionMatrix::Create(int64_t classes) {
  if (classes < 1 || classes > kMostClasses) {
    return absl::InvalidArgumentError(
        absl::StrCat("a confusion matrix of ", classes, " classes; expected 1 to ", kMostClasses));
  }
  return ConfusionMatrix(classes);
}

absl::Status ConfusionMatrix::Add(int64_t actual, int64_t predicted, int64_t count) {
  if (actual < 0 || actual >= classes_ || predicted < 0 || predicted >= classes_) {
    return absl::InvalidArgumentError(absl::StrCat("label ", actual, " or prediction ", predicted,
                                                   " is outside the ", classes_, " classes"));
  }
  counts_[actual * classes_ + predicted] += count;
  total_ += count;
  return absl::OkStatus();
}

int64_t ConfusionMatrix::actual(int64_t c) const {
  int64_t n = 0;
  for (int64_t p = 0; p < classes_; ++p) n += count(c, p);
  return n;
}

int64_t ConfusionMatrix::predicted(int64_t c) const {
  int64_t n = 0;
  for (int64_t a = 0; a < classes_; ++a) n += count(a, c);
  return n;
}

double ConfusionMatrix::accuracy() const {
  int64_t right = 0;
  for (int64_t c = 0; c < classes_; ++c) right += count(c, c);
  return Ratio(static_cast<double>(right), static_cast<double>(total_));
}

double ConfusionMatrix::precision(int64_t c) const {
  return Ratio(static_cast<double>(count(c, c)), static_cast<double>(predicted(c)));
}

double ConfusionMatrix::recall(int64_t c) const {
  return Ratio(static_cast<double>(count(c, c)), static_cast<double>(actual(c)));
}

double ConfusionMatrix::f1(int64_t c) const {
  return Ratio(2.0 * static_cast<double>(count(c, c)),
               static_cast<double>(actual(c) + predicted(c)));
}

double ConfusionMatrix::macro_f1() const {
  RunningMean mean;
  for (int64_t c = 0; c < classes_; ++c) {
    if (actual(c) + predicted(c) > 0) mean.Add(f1(c));
  }
  return mean.mean();
}

ClassificationMetrics::ClassificationMetrics(int64_t classes, std::optional<int64_t> ignore)
    : ignore_(ignore) {
  auto confusion = ConfusionMatrix::Create(classes);
  if (confusion.ok()) confusion_ = *std::move(confusion);
}

absl::StatusOr<Tensor> ClassLabels(const Tensor& labels, const Scoring& scoring) {
  if (scoring.soft_labels) {
    Scoring probabilities = scoring;
    probabilities.kind = ScoreKind::kProbabilities;
    ONWARD_ASSIGN_OR_RETURN(const Predictions likely, Predict(labels, probabilities));
    Tensor classes(DType::kInt64, {static_cast<int64_t>(likely.classes.size())});
    for (size_t i = 0; i < likely.classes.size(); ++i) {
      classes.data<int64_t>()[i] = likely.confidence[i] > 0 ? likely.classes[i] : -1;
    }
    return classes;
  }
  if (!scoring.binary) return labels;
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(labels));
  Tensor classes(DType::kInt64, labels.shape());
  for (size_t i = 0; i < values.size(); ++i) classes.data<int64_t>()[i] = values[i] > 0.5 ? 1 : 0;
  return classes;
}

absl::Status ClassificationMetrics::Add(const Predictions& predictions, const Tensor& labels) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> actual, ToInts(labels));
  if (actual.size() != predictions.classes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(predictions.classes.size(),
                                                   " predictions, but labels of shape ",
                                                   labels.shape().ToString()));
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] < 0 || (ignore_ && actual[i] == *ignore_)) continue;
    if (confusion_) ONWARD_RETURN_IF_ERROR(confusion_->Add(actual[i], predictions.classes[i]));
    const bool right = actual[i] == predictions.classes[i];
    calibration_.Add(predictions.confidence[i], right);
    correct_ += right;
    ++total_;
  }
  return absl::OkStatus();
}

double ClassificationMetrics::accuracy() const {
  return Ratio(static_cast<double>(correct_), static_cast<double>(total_));
}

absl::Status RegressionMetrics::Add(const Tensor& predictions, const Tensor& targets) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> p, ToDoubles(predictions));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> t, ToDoubles(targets));
  if (p.size() != t.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("predictions of shape ", predictions.shape().ToString(),
                     " against targets of shape ", targets.shape().ToString()));
  }
  for (size_t i = 0; i < p.size(); ++i) {
    const double error = p[i] - t[i];
    sample_.Add(t[i], p[i]);
    absolute_ += std::fabs(error);
    squared_ += error * error;
    ++total_;
    const double delta = t[i] - target_mean_;
    target_mean_ += delta / static_cast<double>(total_);
    target_spread_ += delta * (t[i] - target_mean_);
  }
  return absl::OkStatus();
}

double RegressionMetrics::mae() const { return Ratio(absolute_, static_cast<double>(total_)); }
double RegressionMetrics::rmse() const {
  return std::sqrt(Ratio(squared_, static_cast<double>(total_)));
}
double RegressionMetrics::r2() const { return 1 - Ratio(squared_, target_spread_); }

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// What a model says of each example of a data set.
#ifndef ONWARD_TRAINER_RUN_PREDICT_H_
#define ONWARD_TRAINER_RUN_PREDICT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/runtime/session.h"
#include "data/dataset.h"
#include "environment/environment.h"
#include "losses/loss.h"
#include "trainer/report/numbers/metrics.h"
#include "trainer/run/feeding.h"

namespace onward {

struct PredictOptions {
  std::string output;                // empty: DefaultOutput
  std::optional<LossSpec> loss;      // what the model was trained with, where that is known
  std::vector<std::string> classes;  // what the model's file calls them; empty: nothing
  std::optional<bool> classifies;    // whether scores are those of classes; nullopt: found out
  int64_t batch = 0;                 // 0: ExamplesAtOnce
  std::function<void(const void* data, size_t bytes)> looked_at;  // CompileOptions::looked_at
};

// One example: probabilities of the classes, or values.
struct PredictedRow {
  int64_t example = 0;
  absl::Span<const float> values;
  std::string actual;  // what the data says itself: "" where it has no labels
};

class Predictor {
 public:
  // `graph` is the canonical inference graph. The environment has to outlive the result.
  static absl::StatusOr<std::unique_ptr<Predictor>> Create(Graph graph,
                                                           std::shared_ptr<const Dataset> data,
                                                           const PredictOptions& options,
                                                           const Environment& environment);

  // Whether values are probabilities of classes, and what a class is called.
  bool classifies() const { return classifies_; }
  std::string ClassName(size_t c) const;
  bool has_labels() const { return label_ >= 0; }
  // What the user should know about labels; "" if nothing.
  const std::string& note() const { return note_; }

  // All examples in order, one batch in memory at a time.
  absl::Status Run(absl::FunctionRef<absl::Status(const PredictedRow&)> take,
                   const std::atomic<bool>* cancel);

 private:
  Predictor() = default;
  absl::StatusOr<Tensor> Values(const Tensor& scores) const;
  absl::StatusOr<std::vector<std::string>> Actual(const std::vector<Tensor>& batch) const;

  std::shared_ptr<const Dataset> data_;
  PredictOptions options_;
  Scoring scoring_;
  bool classifies_ = false, fixed_batch_ = false;
  int label_ = -1;  // field of the labels
  std::string note_;
  std::optional<Feeding> feeding_;
  std::unique_ptr<Session> session_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_PREDICT_H_

// SPDX-License-Identifier: Apache-2.0
// What happens in a run, told to whoever listens: progress, log, report. The loop knows none
// of them.
#ifndef ONWARD_TRAINER_RUN_LISTENER_H_
#define ONWARD_TRAINER_RUN_LISTENER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trainer/report/page/report.h"
#include "trainer/run/evaluate.h"

namespace onward {

// All that is known before the first step.
struct RunFacts {
  std::string model;    // the file that is trained
  std::string output;   // where checkpoints go
  std::string command;  // that the user typed; "" where there was none
  bool resumed = false;
  int64_t first_step = 0;  // steps done before this run
  int64_t total_steps = 0;
  int64_t steps_per_epoch = 0;
  int64_t batch = 0;
  int64_t examples = 0;
  Metric metric = Metric::kLoss;  // by which evaluations are compared
  // Weights that learn, statistics that are only averaged, and weights that stay; the numbers in
  // the first and the last.
  int64_t trained = 0, statistics = 0, frozen = 0;
  int64_t trained_numbers = 0, frozen_numbers = 0;
  std::vector<std::string> trained_names = {};  // of the first that learn
  int64_t memory_bytes = 0;                     // of variables and a step, the data apart
  double step_seconds = kNotMeasured;           // where a step was tried
  std::vector<std::string> class_names = {};    // by class; none: numbers, or not known
  // Examples and what augmentation makes of them; where a listener wants details.
  std::optional<Picture> augmentation = std::nullopt;
  std::vector<ReportSetting> settings = {};  // what was chosen, in the order to be shown
  std::vector<std::string> notes = {};       // what the user should know, in sentences
  std::vector<std::string> warnings = {};    // what the user should look at
  std::vector<ReportNote> told = {};         // what the user has read already
};

// One of several losses, before its weight.
struct LossValue {
  std::string name;  // of the scalar in the file: "loss_mask"
  double value = kNotMeasured;
};

// After a step. Figures that there are none of are NaN (kNotMeasured).
struct StepEvent {
  int64_t step = 0;  // counted from 1
  int64_t epoch = 0;
  int64_t examples = 0;  // in its batch
  double loss = kNotMeasured, accuracy = kNotMeasured;
  double smoothed_loss = kNotMeasured, smoothed_accuracy = kNotMeasured;
  std::vector<LossValue> parts = {};  // where `loss` is the sum of several
  double learning_rate = kNotMeasured;
  double seconds = 0;  // since the run began
};

struct EvaluationEvent {
  int64_t step = 0;
  int64_t epoch = 0;  // that has ended; 0: none has, just now
  const Evaluation& evaluation;
  const std::optional<Evaluation>& averages;  // the same of the weights' averages, where kept
  bool baseline = false;                      // of the model as it was before the first step
};

struct CheckpointEvent {
  int64_t step = 0;
  std::string path;
  double seconds = 0;  // that writing took
};

struct TrainResult {
  int64_t steps = 0;
  double loss = kNotMeasured, accuracy = kNotMeasured;  // of training, smoothed, at the end
  std::optional<Evaluation> evaluation;
  std::optional<Evaluation> averages;    // EvaluationEvent::averages
  std::optional<int64_t> skipped_steps;  // of this run, where overflows are left out (loss_scale.h)
  bool interrupted = false;
  bool saved = false;   // the output holds this run
  std::string stopped;  // why it ended before its last step, of its own accord; "": it did not
  bool out_of_patience = false;  // that is why
  int64_t skipped = 0;           // steps that were left out, those of resumed runs included
  double seconds = 0;
  double samples_per_second = 0;
  int64_t peak_bytes = 0;               // the most memory that the process had, so far
  std::vector<OperatorTime> operators;  // the slowest first; where a listener wants details
};

struct EndEvent {
  const TrainResult& result;
  const absl::Status& status;  // OK, cancelled, or what ended the run
};

// Events come in this order: a start, then steps, evaluations, checkpoints and notes as they
// happen, then one end, also where the run failed. What a listener returns from OnStart, OnStep
// and OnEvaluation ends the run.
class RunListener {
 public:
  virtual ~RunListener() = default;

  virtual absl::Status OnStart(const RunFacts&) { return absl::OkStatus(); }
  virtual absl::Status OnStep(const StepEvent&) { return absl::OkStatus(); }
  virtual absl::Status OnEvaluation(const EvaluationEvent&) { return absl::OkStatus(); }
  virtual void OnNorms(const ReportNorms&) {}
  virtual void OnCheckpoint(const CheckpointEvent&) {}
  virtual void OnNote(const ReportNote&) {}
  // How many steps the run makes, and how long one takes, once that is known.
  virtual void OnPace(int64_t /*steps*/, double /*step_seconds*/) {}
  virtual absl::Status OnEnd(const EndEvent&) { return absl::OkStatus(); }

  // How many wrong answers evaluations shall keep for it.
  virtual int wrong_examples() const { return 0; }
  // Whether it shows what the run itself has no use for: an evaluation before the first step,
  // norms of layers at evaluations, the time of operators. None of it changes a number of the run.
  virtual bool wants_details() const { return false; }
};

// Several as one: each event goes to all, in their order, until one fails; the end goes to all.
class Listeners : public RunListener {
 public:
  void Add(std::unique_ptr<RunListener> listener) { all_.push_back(std::move(listener)); }

  absl::Status OnStart(const RunFacts& facts) override;
  absl::Status OnStep(const StepEvent& step) override;
  absl::Status OnEvaluation(const EvaluationEvent& evaluation) override;
  void OnNorms(const ReportNorms& norms) override;
  void OnCheckpoint(const CheckpointEvent& checkpoint) override;
  void OnNote(const ReportNote& note) override;
  void OnPace(int64_t steps, double step_seconds) override;
  absl::Status OnEnd(const EndEvent& end) override;
  int wrong_examples() const override;
  bool wants_details() const override;

 private:
  std::vector<std::unique_ptr<RunListener>> all_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_RUN_LISTENER_H_

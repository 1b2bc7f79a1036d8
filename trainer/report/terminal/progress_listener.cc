// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "trainer/report/listeners.h"
#include "trainer/report/numbers/part_figures.h"
#include "trainer/report/terminal/statement.h"

namespace onward {
namespace {

class ShownProgress : public RunListener {
 public:
  ShownProgress(ProgressStyle style, ProgressTalk talk)
      : style_(style), talks_(talk == ProgressTalk::kAll) {}

  absl::Status OnStart(const RunFacts& facts) override {
    Progress::Options options;
    options.first_step = facts.first_step;
    options.total_steps = facts.total_steps;
    options.style = style_;
    progress_ = std::make_unique<Progress>(std::move(options));
    if (talks_) {
      for (const std::string& line : StatementLines(facts)) Say(line);
      for (const std::string& note : facts.notes) OnNote({note});
    }
    for (const std::string& text : facts.warnings) OnNote({text, true});
    return absl::OkStatus();
  }

  absl::Status OnStep(const StepEvent& s) override {
    progress_->Update(s.step, s.examples, s.smoothed_loss, s.smoothed_accuracy);
    loss_ = s.smoothed_loss;
    accuracy_ = s.smoothed_accuracy;
    return absl::OkStatus();
  }

  absl::Status OnEvaluation(const EvaluationEvent& event) override {
    if (!talks_) return absl::OkStatus();
    const std::string when = event.baseline    ? "before training"
                             : event.epoch > 0 ? absl::StrCat("epoch ", event.epoch)
                                               : absl::StrCat("step ", event.step);
    const std::string training = event.baseline ? "" : TrainingFigures(loss_, accuracy_);
    Say(absl::StrCat(when, ": ", training.empty() ? "" : absl::StrCat(training, "; "),
                     "evaluation ", ShortFigures(event.evaluation),
                     event.averages.has_value()
                         ? absl::StrCat("; averages: ", ShortFigures(*event.averages))
                         : ""));
    return absl::OkStatus();
  }

  void OnNote(const ReportNote& note) override { Say(NoteLine(note)); }

  void OnPace(int64_t steps, double step_seconds) override { Say(TimeLine(steps, step_seconds)); }

  absl::Status OnEnd(const EndEvent&) override {
    if (progress_ != nullptr) progress_->Finish();
    return absl::OkStatus();
  }

 private:
  void Say(const std::string& line) {
    if (progress_ != nullptr) progress_->Say(line);
  }

  ProgressStyle style_;
  bool talks_;
  double loss_ = kNotMeasured, accuracy_ = kNotMeasured;  // smoothed
  std::unique_ptr<Progress> progress_;                    // null before the start
};

}  // namespace

std::unique_ptr<RunListener> ProgressListener(ProgressStyle style, ProgressTalk talk) {
  return std::make_unique<ShownProgress>(style, talk);
}

}  // namespace onward

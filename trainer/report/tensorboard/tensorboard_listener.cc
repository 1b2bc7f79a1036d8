// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/status.h"
#include "trainer/report/listeners.h"
#include "trainer/report/tensorboard/event_file.h"

namespace onward {
namespace {

using Scalars = std::vector<std::pair<std::string, double>>;

void AddScalar(const std::string& tag, double value, Scalars* scalars) {
  if (!std::isnan(value)) scalars->emplace_back(tag, value);
}

Scalars FiguresUnder(const std::string& folder, const Evaluation& e) {
  Scalars scalars;
  AddScalar(folder + "loss", e.loss, &scalars);
  AddScalar(folder + "accuracy", e.accuracy, &scalars);
  AddScalar(folder + "perplexity", e.perplexity, &scalars);
  AddScalar(folder + "rmse", e.rmse, &scalars);
  AddScalar(folder + "mae", e.mae, &scalars);
  AddScalar(folder + "r2", e.r2, &scalars);
  return scalars;
}

// A table in Markdown.
std::string SettingsText(const std::vector<ReportSetting>& settings) {
  std::string out = "| setting | value |\n|---|---|\n";
  for (const ReportSetting& s : settings) {
    const auto cell = [](const std::string& text) {
      return absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}});
    };
    absl::StrAppend(&out, "| ", cell(s.name), " | ", cell(s.value), " |\n");
  }
  return out;
}

class TensorBoard : public RunListener {
 public:
  explicit TensorBoard(std::string folder) : folder_(std::move(folder)) {}

  absl::Status OnStart(const RunFacts& facts) override {
    ONWARD_ASSIGN_OR_RETURN(EventFile file, EventFile::Create(folder_));
    file_.emplace(std::move(file));
    step_ = facts.first_step;
    // Steps that a killed run made after its last checkpoint are made again.
    if (facts.resumed) ONWARD_RETURN_IF_ERROR(file_->AddRestart(facts.first_step + 1));
    if (!facts.command.empty()) {
      ONWARD_RETURN_IF_ERROR(
          file_->AddText(facts.first_step, "command", absl::StrCat("    ", facts.command)));
    }
    if (facts.settings.empty()) return absl::OkStatus();
    return file_->AddText(facts.first_step, "settings", SettingsText(facts.settings));
  }

  absl::Status OnStep(const StepEvent& s) override {
    // Numbers that were not finite have sent the run back (--on-nan back).
    if (s.step <= step_) ONWARD_RETURN_IF_ERROR(file_->AddRestart(s.step));
    step_ = s.step;
    Scalars scalars;
    AddScalar("training/loss", s.loss, &scalars);
    for (const LossValue& part : s.parts) {
      AddScalar(absl::StrCat("training/", part.name), part.value, &scalars);
    }
    AddScalar("training/accuracy", s.accuracy, &scalars);
    AddScalar("training/learning_rate", s.learning_rate, &scalars);
    return file_->AddScalars(s.step, scalars);
  }

  absl::Status OnEvaluation(const EvaluationEvent& event) override {
    const Evaluation& e = event.evaluation;
    Scalars scalars = FiguresUnder("evaluation/", e);
    if (event.averages.has_value()) {
      for (auto& figure : FiguresUnder("averages/", *event.averages)) {
        scalars.push_back(std::move(figure));
      }
    }
    if (e.calibration.has_value()) {
      AddScalar("evaluation/calibration_error", e.calibration->error(), &scalars);
    }
    return file_->AddScalars(event.step, scalars);
  }

  void OnNorms(const ReportNorms& norms) override {
    Scalars scalars;
    for (const LayerNorm& layer : norms.layers) {
      AddScalar(absl::StrCat("weights/", layer.name), layer.weight, &scalars);
      AddScalar(absl::StrCat("gradients/", layer.name), layer.gradient, &scalars);
    }
    // The next step tells of a file that cannot be written.
    file_->AddScalars(norms.step, scalars).IgnoreError();
  }

  bool wants_details() const override { return true; }

 private:
  std::string folder_;
  std::optional<EventFile> file_;  // from the start on
  int64_t step_ = 0;
};

}  // namespace

std::unique_ptr<RunListener> TensorBoardListener(std::string folder) {
  return std::make_unique<TensorBoard>(std::move(folder));
}

}  // namespace onward

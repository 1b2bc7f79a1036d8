// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "core/base/status.h"
#include "trainer/report/jsonl.h"
#include "trainer/report/listeners.h"
#include "trainer/report/part_figures.h"

namespace onward {
namespace {

class LogFile : public RunListener {
 public:
  explicit LogFile(std::string path) : path_(std::move(path)) {}

  absl::Status OnStart(const RunFacts& facts) override {
    ONWARD_ASSIGN_OR_RETURN(JsonlFile file, JsonlFile::Open(path_, facts.resumed));
    file_.emplace(std::move(file));
    return absl::OkStatus();
  }

  absl::Status OnStep(const StepEvent& s) override {
    JsonWriter w;
    w.BeginObject().Field("step", s.step).Field("epoch", s.epoch).Field("loss", s.loss);
    for (const LossValue& part : s.parts) w.Field(part.name, part.value);
    if (!std::isnan(s.accuracy)) w.Field("accuracy", s.accuracy);
    if (!std::isnan(s.learning_rate)) w.Field("learning_rate", s.learning_rate);
    return file_->Append(w.Field("seconds", s.seconds).EndObject());
  }

  absl::Status OnEvaluation(const EvaluationEvent& event) override {
    JsonWriter w;
    w.BeginObject().Field("step", event.step);
    WriteFigures("eval_", event.evaluation, &w);
    if (event.averages.has_value()) WriteFigures("ema_eval_", *event.averages, &w);
    return file_->Append(w.Field("examples", event.evaluation.examples).EndObject());
  }

 private:
  std::string path_;
  std::optional<JsonlFile> file_;  // from the start on
};

}  // namespace

std::unique_ptr<RunListener> LogListener(std::string path) {
  return std::make_unique<LogFile>(std::move(path));
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "core/base/status.h"
#include "trainer/report/listeners.h"
#include "trainer/report/log/jsonl.h"
#include "trainer/report/numbers/part_figures.h"
#include "trainer/report/page/confusion_chart.h"

namespace onward {
namespace {

JsonWriter& Figure(JsonWriter& w, const char* key, double value) {
  return std::isnan(value) ? w : w.Field(key, value);
}

// What the report shows of single answers.
void WriteAnswers(const Evaluation& e, JsonWriter* w) {
  if (e.confusion.has_value() && e.confusion->classes() <= kMostDrawnClasses) {
    const int64_t n = e.confusion->classes();
    w->Key("confusion").BeginObject().Field("classes", n).Key("counts").BeginArray();
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t p = 0; p < n; ++p) {
        const int64_t count = e.confusion->count(a, p);
        if (count > 0) w->Values(std::vector<int64_t>{a, p, count});
      }
    }
    w->EndArray().EndObject();
  }
  if (e.calibration.has_value()) {
    w->Key("calibration").BeginArray();
    for (const Calibration::Bin& bin : e.calibration->bins()) {
      w->BeginArray().Value(bin.count).Value(bin.right).Value(bin.confidence).EndArray();
    }
    w->EndArray();
  }
  if (!e.wrong.empty()) {
    w->Key("wrong").BeginArray();
    for (const WrongExample& wrong : e.wrong) {
      w->BeginObject().Field("example", wrong.example).Field("predicted", wrong.predicted);
      w->Field("actual", wrong.actual).Field("confidence", wrong.confidence).EndObject();
    }
    w->EndArray();
  }
  if (!e.pairs.empty()) {
    w->Key("pairs").BeginArray();
    for (const NumberPair& pair : e.pairs) {
      w->BeginArray().Value(pair.actual).Value(pair.predicted).EndArray();
    }
    w->EndArray();
  }
}

class LogFile : public RunListener {
 public:
  explicit LogFile(std::string path) : path_(std::move(path)) {}

  absl::Status OnStart(const RunFacts& facts) override {
    ONWARD_ASSIGN_OR_RETURN(JsonlFile file, JsonlFile::Open(path_, facts.resumed));
    file_.emplace(std::move(file));
    facts_ = facts;
    return absl::OkStatus();
  }

  absl::Status OnStep(const StepEvent& s) override {
    ONWARD_RETURN_IF_ERROR(WriteFacts());
    JsonWriter w;
    w.BeginObject().Field("step", s.step).Field("epoch", s.epoch).Field("loss", s.loss);
    for (const LossValue& part : s.parts) w.Field(part.name, part.value);
    Figure(w, "accuracy", s.accuracy);
    Figure(w, "learning_rate", s.learning_rate);
    return file_->Append(w.Field("seconds", s.seconds).EndObject());
  }

  absl::Status OnEvaluation(const EvaluationEvent& event) override {
    ONWARD_RETURN_IF_ERROR(WriteFacts());
    const Evaluation& e = event.evaluation;
    JsonWriter w;
    w.BeginObject().Field("step", event.step);
    if (event.baseline) w.Field("baseline", true);
    if (event.epoch > 0) w.Field("epochs_done", event.epoch);
    WriteFigures("eval_", e, &w);
    if (event.averages.has_value()) WriteFigures("ema_eval_", *event.averages, &w);
    if (!event.baseline) last_ = e;
    return file_->Append(w.Field("wrong", e.wrong_total).Field("examples", e.examples).EndObject());
  }

  void OnNote(const ReportNote& note) override {
    // The next line tells of a file that cannot be written.
    if (!file_.has_value() || !WriteFacts().ok()) return;
    JsonWriter w;
    w.BeginObject().Field("step", note.step).Field(note.warning ? "warning" : "note", note.text);
    file_->Append(w.EndObject()).IgnoreError();
  }

  void OnNorms(const ReportNorms& norms) override {
    JsonWriter w;
    w.BeginObject().Field("step", norms.step).Key("norms").BeginArray();
    for (const LayerNorm& layer : norms.layers) {
      w.BeginObject().Field("name", layer.name).Field("numbers", layer.numbers);
      w.Field("weight", layer.weight).Field("gradient", layer.gradient).EndObject();
    }
    // The next line tells of a file that cannot be written.
    file_->Append(w.EndArray().EndObject()).IgnoreError();
  }

  absl::Status OnEnd(const EndEvent& end) override {
    const TrainResult& r = end.result;
    const bool failed = !end.status.ok() && !r.interrupted;
    // A run that did not get as far as a step has nothing to tell, but why.
    if (!file_.has_value() || (facts_.has_value() && !failed)) return absl::OkStatus();
    ONWARD_RETURN_IF_ERROR(WriteFacts());
    JsonWriter w;
    w.BeginObject().Field("step", r.steps).Key("end").BeginObject();
    w.Field("seconds", r.seconds).Field("examples_per_second", r.samples_per_second);
    w.Field("peak_bytes", r.peak_bytes).Field("interrupted", r.interrupted);
    if (!r.stopped.empty()) w.Field("stopped", r.stopped);
    if (r.skipped > 0) w.Field("skipped", r.skipped);
    if (r.skipped_steps.has_value()) w.Field("skipped_steps", *r.skipped_steps);
    if (failed) w.Field("error", end.status.message());
    w.Key("operators").BeginArray();
    for (const OperatorTime& t : r.operators) {
      w.BeginObject().Field("op", t.op).Field("ms", t.milliseconds).Field("calls", t.calls);
      w.EndObject();
    }
    w.EndArray();
    if (last_.has_value()) WriteAnswers(*last_, &w);
    return file_->Append(w.EndObject().EndObject());
  }

 private:
  // Before the first line of a run: a file with nothing in it has no step.
  absl::Status WriteFacts() {
    if (!facts_.has_value()) return absl::OkStatus();
    const RunFacts facts = *std::exchange(facts_, std::nullopt);
    JsonWriter w;
    w.BeginObject().Field("step", facts.first_step).Key("run").BeginObject();
    w.Field("model", facts.model).Field("output", facts.output).Field("command", facts.command);
    w.Field("steps", facts.total_steps).Field("batch", facts.batch);
    w.Field("examples", facts.examples).Field("metric", MetricName(facts.metric));
    w.Key("classes").Values(facts.class_names).Key("settings").BeginArray();
    for (const ReportSetting& s : facts.settings)
      w.BeginArray().Value(s.name).Value(s.value).EndArray();
    w.EndArray();
    std::vector<std::string> notes, warnings;
    for (const ReportNote& told : facts.told) {
      (told.warning ? warnings : notes).push_back(told.text);
    }
    notes.insert(notes.end(), facts.notes.begin(), facts.notes.end());
    warnings.insert(warnings.end(), facts.warnings.begin(), facts.warnings.end());
    w.Key("notes").Values(notes).Key("warnings").Values(warnings);
    return file_->Append(w.EndObject().EndObject());
  }

  std::string path_;
  std::optional<JsonlFile> file_;   // from the start on
  std::optional<RunFacts> facts_;   // until they are written
  std::optional<Evaluation> last_;  // whose answers the last line holds, not every line
};

}  // namespace

std::unique_ptr<RunListener> LogListener(std::string path) {
  return std::make_unique<LogFile>(std::move(path));
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/log/run_log.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/json.h"
#include "core/base/status.h"

namespace onward {
namespace {

// What a member holds, or this where it is missing or of another kind.
double NumberAt(const Json& object, absl::string_view key, double otherwise = kNotMeasured) {
  const Json* value = object.Find(key);
  return value != nullptr && value->is(Json::Kind::kNumber) ? value->number() : otherwise;
}

int64_t IntAt(const Json& object, absl::string_view key, int64_t otherwise = 0) {
  const double value = NumberAt(object, key, static_cast<double>(otherwise));
  return std::fabs(value) < 9e18 ? static_cast<int64_t>(value) : otherwise;
}

std::string TextAt(const Json& object, absl::string_view key) {
  const Json* value = object.Find(key);
  return value == nullptr ? "" : value->text();
}

bool TruthAt(const Json& object, absl::string_view key) {
  const Json* value = object.Find(key);
  return value != nullptr && value->truth();
}

const std::vector<Json>& ItemsAt(const Json& object, absl::string_view key) {
  static const std::vector<Json>* const none = new std::vector<Json>;
  const Json* value = object.Find(key);
  return value == nullptr ? *none : value->items();
}

RunFacts FactsOf(const Json& line, const std::string& path) {
  RunFacts facts;
  facts.first_step = IntAt(line, "step");
  facts.resumed = facts.first_step > 0;
  facts.output = path;
  const Json* run = line.Find("run");
  if (run == nullptr) return facts;
  facts.model = TextAt(*run, "model");
  facts.output = TextAt(*run, "output");
  facts.command = TextAt(*run, "command");
  facts.total_steps = IntAt(*run, "steps");
  facts.batch = IntAt(*run, "batch");
  facts.examples = IntAt(*run, "examples");
  const std::vector<std::string> metrics = MetricNames();
  const auto metric = std::find(metrics.begin(), metrics.end(), TextAt(*run, "metric"));
  if (metric != metrics.end()) facts.metric = static_cast<Metric>(metric - metrics.begin());
  for (const Json& name : ItemsAt(*run, "classes")) facts.class_names.push_back(name.text());
  for (const Json& note : ItemsAt(*run, "notes")) facts.notes.push_back(note.text());
  for (const Json& text : ItemsAt(*run, "warnings")) facts.warnings.push_back(text.text());
  for (const Json& pair : ItemsAt(*run, "settings")) {
    const std::vector<Json>& words = pair.items();
    if (words.size() == 2) facts.settings.push_back({words[0].text(), words[1].text()});
  }
  return facts;
}

StepEvent StepOf(const Json& line) {
  StepEvent step;
  step.step = IntAt(line, "step");
  step.epoch = IntAt(line, "epoch");
  step.loss = NumberAt(line, "loss");
  step.accuracy = NumberAt(line, "accuracy");
  step.learning_rate = NumberAt(line, "learning_rate");
  step.seconds = NumberAt(line, "seconds", 0);
  return step;
}

// The figures whose names begin like this.
Evaluation EvaluationOf(const Json& line, const std::string& prefix) {
  Evaluation e;
  e.examples = IntAt(line, "examples");
  e.loss = NumberAt(line, prefix + "loss");
  e.accuracy = NumberAt(line, prefix + "accuracy");
  e.perplexity = NumberAt(line, prefix + "perplexity");
  e.rmse = NumberAt(line, prefix + "rmse");
  e.mae = NumberAt(line, prefix + "mae");
  e.r2 = NumberAt(line, prefix + "r2");
  e.wrong_total = IntAt(line, "wrong");
  return e;
}

ReportNorms NormsOf(const Json& line) {
  ReportNorms norms{IntAt(line, "step"), {}};
  for (const Json& layer : ItemsAt(line, "norms")) {
    norms.layers.push_back({TextAt(layer, "name"), IntAt(layer, "numbers"),
                            NumberAt(layer, "weight"), NumberAt(layer, "gradient")});
  }
  return norms;
}

double ItemOf(const Json& list, size_t i) {
  const std::vector<Json>& items = list.items();
  return i < items.size() && items[i].is(Json::Kind::kNumber) ? items[i].number() : kNotMeasured;
}

int64_t CountOf(const Json& list, size_t i) {
  const double v = ItemOf(list, i);
  return v > 0 && v < 9e18 ? static_cast<int64_t>(v) : 0;
}

// What the last line says of the answers of the last evaluation.
absl::Status ReadAnswers(const Json& end, Evaluation* e) {
  if (const Json* confusion = end.Find("confusion")) {
    ONWARD_ASSIGN_OR_RETURN(e->confusion, ConfusionMatrix::Create(IntAt(*confusion, "classes")));
    for (const Json& c : ItemsAt(*confusion, "counts")) {
      ONWARD_RETURN_IF_ERROR(e->confusion->Add(CountOf(c, 0), CountOf(c, 1), CountOf(c, 2)));
    }
  }
  const std::vector<Json>& bins = ItemsAt(end, "calibration");
  if (bins.size() == Calibration::kBins) {
    Calibration::Bins read;
    for (size_t i = 0; i < bins.size(); ++i) {
      read[i] = {CountOf(bins[i], 0), CountOf(bins[i], 1), ItemOf(bins[i], 2)};
    }
    e->calibration = Calibration(read);
  }
  for (const Json& wrong : ItemsAt(end, "wrong")) {
    e->wrong.push_back({{},
                        TextAt(wrong, "predicted"),
                        TextAt(wrong, "actual"),
                        NumberAt(wrong, "confidence"),
                        IntAt(wrong, "example", -1)});
  }
  for (const Json& pair : ItemsAt(end, "pairs")) {
    e->pairs.push_back({ItemOf(pair, 0), ItemOf(pair, 1)});
  }
  return absl::OkStatus();
}

TrainResult ResultOf(const Json& line) {
  TrainResult result;
  result.steps = IntAt(line, "step");
  const Json& end = *line.Find("end");
  result.seconds = NumberAt(end, "seconds", 0);
  result.samples_per_second = NumberAt(end, "examples_per_second", 0);
  result.peak_bytes = IntAt(end, "peak_bytes");
  result.interrupted = TruthAt(end, "interrupted");
  result.stopped = TextAt(end, "stopped");
  result.skipped = IntAt(end, "skipped");
  if (end.Find("skipped_steps") != nullptr) result.skipped_steps = IntAt(end, "skipped_steps");
  for (const Json& t : ItemsAt(end, "operators")) {
    result.operators.push_back({TextAt(t, "op"), NumberAt(t, "ms", 0), IntAt(t, "calls")});
  }
  return result;
}

class Replay {
 public:
  Replay(const std::string& path, RunListener* listener) : path_(path), listener_(listener) {}

  absl::Status Tell(const Json& line) {
    if (line.Find("step") == nullptr) return absl::InvalidArgumentError("has no \"step\"");
    if (line.Find("run") != nullptr || !started_) {
      started_ = true;
      ONWARD_RETURN_IF_ERROR(Flush());
      RunFacts facts = FactsOf(line, path_);
      // Lines of steps come after theirs, so the run began before the first one.
      if (line.Find("run") == nullptr)
        facts.first_step = std::max<int64_t>(facts.first_step - 1, 0);
      ONWARD_RETURN_IF_ERROR(listener_->OnStart(facts));
    }
    if (line.Find("end") != nullptr) return End(line);
    if (line.Find("norms") != nullptr) listener_->OnNorms(NormsOf(line));
    for (const char* kind : {"note", "warning"}) {
      if (line.Find(kind) == nullptr) continue;
      listener_->OnNote({TextAt(line, kind), kind[0] == 'w', IntAt(line, "step")});
    }
    if (line.Find("eval_loss") != nullptr) return Evaluated(line);
    return line.Find("loss") != nullptr ? listener_->OnStep(StepOf(line)) : absl::OkStatus();
  }

  // Evaluations are told once it is known whether the end says more of them.
  absl::Status Flush() {
    if (!held_.has_value()) return absl::OkStatus();
    const Held held = *std::exchange(held_, std::nullopt);
    return listener_->OnEvaluation(
        {held.step, held.epoch, held.evaluation, held.averages, held.baseline});
  }

  bool started() const { return started_; }

 private:
  struct Held {
    int64_t step, epoch;
    bool baseline;
    Evaluation evaluation;
    std::optional<Evaluation> averages;
  };

  absl::Status Evaluated(const Json& line) {
    ONWARD_RETURN_IF_ERROR(Flush());
    held_ = {IntAt(line, "step"), IntAt(line, "epochs_done"), TruthAt(line, "baseline"),
             EvaluationOf(line, "eval_"), std::nullopt};
    if (line.Find("ema_eval_loss") != nullptr) held_->averages = EvaluationOf(line, "ema_eval_");
    return absl::OkStatus();
  }

  absl::Status End(const Json& line) {
    if (held_.has_value()) {
      ONWARD_RETURN_IF_ERROR(ReadAnswers(*line.Find("end"), &held_->evaluation));
    }
    ONWARD_RETURN_IF_ERROR(Flush());
    const TrainResult result = ResultOf(line);
    const std::string error = TextAt(*line.Find("end"), "error");
    const absl::Status status = error.empty() ? absl::OkStatus() : absl::UnknownError(error);
    return listener_->OnEnd({result, status});
  }

  const std::string& path_;
  RunListener* listener_;
  bool started_ = false;
  std::optional<Held> held_;
};

}  // namespace

absl::Status ReplayLog(const std::string& path, RunListener* listener) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return absl::NotFoundError(
        absl::StrCat("'", path, "': cannot be read: ", std::strerror(errno)));
  }
  Replay replay(path, listener);
  int64_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    // A line without its end is one that is being written.
    if (in.eof()) break;
    const absl::StatusOr<Json> line = ParseJson(text);
    if (!line.ok() && !replay.started()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "', line ", number,
                       ": is no JSON; expected a log that `onward train --log` writes"));
    }
    const absl::Status told = line.ok() ? replay.Tell(*line) : line.status();
    if (!told.ok()) {
      return absl::Status(told.code(), absl::StrCat("'", path, "', line ", number, ": ",
                                                    std::string(told.message())));
    }
  }
  if (!replay.started()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': no line of a run; expected what `onward train --log` writes"));
  }
  return replay.Flush();
}

}  // namespace onward

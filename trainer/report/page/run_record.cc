// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/page/run_record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/size_text.h"
#include "trainer/report/page/html.h"
#include "trainer/report/page/report_sections.h"
#include "trainer/report/terminal/progress.h"

namespace onward {
// Steps that are made again count once.
void RunRecord::ForgetAfter(int64_t step) {
  const auto later = [&](const auto& record) { return record.step > step; };
  std::erase_if(data_.steps, later);
  std::erase_if(data_.evals, later);
  std::erase_if(data_.norms, later);
}

absl::Status RunRecord::OnStart(const RunFacts& facts) {
  // A log holds a run and those that resumed it, each of which begins where the file was saved.
  ForgetAfter(facts.first_step);
  std::erase_if(said_, [&](const ReportNote& note) { return note.step > facts.first_step; });
  facts_ = facts;
  error_.clear();
  step_ = facts.first_step;
  ended_ = false;
  data_.title = facts.output;
  data_.command = facts.command;
  data_.settings = facts.settings;
  data_.class_names = facts.class_names;
  data_.augmentation = facts.augmentation;
  return absl::OkStatus();
}

absl::Status RunRecord::OnStep(const StepEvent& s) {
  // Numbers that were not finite have sent the run back (--on-nan back).
  if (s.step <= step_) ForgetAfter(s.step - 1);
  data_.steps.push_back({s.step, s.loss, s.accuracy, s.learning_rate});
  step_ = s.step;
  seconds_ = s.seconds;
  return absl::OkStatus();
}

absl::Status RunRecord::OnEvaluation(const EvaluationEvent& event) {
  const Evaluation& e = event.evaluation;
  const bool classes = !std::isnan(e.accuracy);
  const auto metric = [&](const Evaluation& of) { return classes ? of.accuracy : of.rmse; };
  ReportEval& shown = data_.evals.emplace_back(ReportEval{
      event.step, e.loss, metric(e), event.epoch, event.baseline, MetricOf(facts_.metric, e)});
  averages_ = event.averages;
  if (averages_.has_value()) {
    shown.averages_loss = averages_->loss;
    shown.averages_metric = metric(*averages_);
  }
  if (!classes) {
    data_.metric_name = "RMSE";
    data_.metric_is_share = false;
  }
  data_.perplexity = !std::isnan(e.perplexity);
  (event.baseline ? baseline_ : last_) = e;
  return absl::OkStatus();
}

absl::Status RunRecord::OnEnd(const EndEvent& end) {
  ended_ = true;
  result_ = end.result;
  // The record has it already, with less to copy.
  result_.evaluation.reset();
  result_.averages.reset();
  error_ = end.status.ok() || result_.interrupted ? "" : std::string(end.status.message());
  return absl::OkStatus();
}

std::string RunRecord::WhyEarly() const {
  if (!ended_) return "";
  const std::string at = step_ == facts_.first_step ? " before the first step was done"
                                                    : absl::StrCat(" at step ", WithCommas(step_));
  if (!error_.empty()) return absl::StrCat("Failed", at, ": ", error_);
  if (!result_.stopped.empty()) return absl::StrCat("Stopped", at, ": ", result_.stopped);
  return result_.interrupted ? absl::StrCat("Interrupted", at) : "";
}

std::optional<size_t> RunRecord::Best() const {
  std::optional<size_t> best;
  for (size_t i = 0; i < data_.evals.size(); ++i) {
    const ReportEval& e = data_.evals[i];
    if (e.baseline || std::isnan(e.chosen)) continue;
    const double so_far = best.has_value() ? data_.evals[*best].chosen : kNotMeasured;
    const bool better = HigherIsBetter(facts_.metric) ? e.chosen > so_far : e.chosen < so_far;
    if (!best.has_value() || better) best = i;
  }
  return best;
}

// Figures of the last evaluation, each with what it was before training.
void RunRecord::AddEvaluation(const Evaluation& e, ReportData* data) const {
  std::string examples = absl::StrCat(WithCommas(e.examples), " test examples");
  const auto add = [&](const char* label, double Evaluation::*figure, bool share) {
    if (std::isnan(e.*figure)) return;
    const auto text = [&](double v) {
      return share ? absl::StrFormat("%.2f %%", 100 * v) : FourDigits(v);
    };
    std::vector<std::string> notes;
    if (!examples.empty()) notes.push_back(std::exchange(examples, ""));
    if (baseline_.has_value() && !std::isnan((*baseline_).*figure)) {
      notes.push_back(absl::StrCat("before training ", text((*baseline_).*figure)));
    }
    data->figures.push_back({label, text(e.*figure), absl::StrJoin(notes, "; ")});
  };
  add("Accuracy", &Evaluation::accuracy, true);
  add("RMSE", &Evaluation::rmse, false);
  add("MAE", &Evaluation::mae, false);
  add("R2", &Evaluation::r2, false);
  add("Perplexity", &Evaluation::perplexity, false);
  add("Evaluation loss", &Evaluation::loss, false);
}

void RunRecord::AddAverages(ReportData* data) const {
  if (!averages_.has_value()) return;
  const Evaluation& e = *averages_;
  const auto add = [&](const char* label, const std::string& value) {
    data->figures.push_back({label, value, "export --ema"});
  };
  if (!std::isnan(e.accuracy)) {
    add("Accuracy of averages", absl::StrFormat("%.2f %%", 100 * e.accuracy));
  } else if (!std::isnan(e.rmse)) {
    add("RMSE of averages", FourDigits(e.rmse));
  }
  add("Loss of averages", FourDigits(e.loss));
}

void RunRecord::AddSkipped(ReportData* data) const {
  if (result_.skipped > 0) {
    data->figures.push_back(
        {"Skipped steps", WithCommas(result_.skipped), "their numbers were not finite"});
  }
  if (result_.skipped_steps.value_or(0) > 0) {
    data->figures.push_back({"Overflowed steps", WithCommas(*result_.skipped_steps),
                             "left out, the loss scaled by less"});
  }
}

void RunRecord::AddFigures(ReportData* data) const {
  if (last_.has_value()) AddEvaluation(*last_, data);
  AddAverages(data);
  if (data->best.has_value()) {
    const ReportEval& best = data_.evals[*data->best];
    const std::string value = facts_.metric == Metric::kAccuracy
                                  ? absl::StrFormat("%.2f %%", 100 * best.chosen)
                                  : FourDigits(best.chosen);
    data->figures.push_back(
        {"Best epoch", best.epoch > 0 ? absl::StrCat(best.epoch) : absl::StrCat("step ", best.step),
         absl::StrCat(MetricName(facts_.metric), " ", value,
                      best.epoch > 0 ? absl::StrCat(", step ", best.step) : "")});
  }
  if (!data_.steps.empty()) {
    data->figures.push_back(
        {"Training loss", FourDigits(SmoothedLosses(data_.steps).back().y), "smoothed"});
  }
  data->figures.push_back(
      {"Steps", WithCommas(step_),
       step_ < facts_.total_steps ? absl::StrCat("of ", WithCommas(facts_.total_steps)) : ""});
  AddSkipped(data);
}

void RunRecord::AddTiming(ReportData* data) const {
  const double seconds = ended_ ? result_.seconds : seconds_;
  if (seconds > 0) data->timing.push_back({"Time", FormatSeconds(seconds)});
  if (!ended_) return;
  if (result_.samples_per_second > 0) {
    data->timing.push_back(
        {"Throughput", absl::StrFormat("%.0f examples/s", result_.samples_per_second)});
  }
  if (result_.peak_bytes > 0) {
    data->timing.push_back({"Peak memory", SizeText(result_.peak_bytes)});
  }
}

void RunRecord::AddNotes(ReportData* data) const {
  data->notes = facts_.told;
  for (const std::string& note : facts_.notes) data->notes.push_back({note});
  for (const std::string& text : facts_.warnings) data->notes.push_back({text, true});
  data->notes.insert(data->notes.end(), said_.begin(), said_.end());
}

ReportData RunRecord::Data() const {
  ReportData data = data_;
  data.running = !ended_;
  data.best = Best();
  data.early = WhyEarly();
  data.subtitle = absl::StrCat(WithCommas(step_), " steps, batch ", facts_.batch,
                               !ended_              ? ", running"
                               : data.early.empty() ? ""
                                                    : ", ended early");
  AddFigures(&data);
  AddTiming(&data);
  AddNotes(&data);
  data.operators = result_.operators;
  if (!last_.has_value()) return data;
  data.confusion = last_->confusion;
  data.calibration = last_->calibration;
  data.pairs = last_->pairs;
  data.wrong = last_->wrong;
  data.wrong_total = last_->wrong_total;
  return data;
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/atomic_file.h"
#include "data/sha256.h"
#include "trainer/report/listeners.h"

namespace onward {
namespace {

constexpr int kWrongExamples = 48;

class Report : public RunListener {
 public:
  explicit Report(std::string path) : path_(std::move(path)) {}

  absl::Status OnStart(const RunFacts& facts) override {
    batch_ = facts.batch;
    output_ = facts.output;
    data_.title = facts.output;
    data_.settings = facts.settings;
    data_.class_names = facts.class_names;
    return absl::OkStatus();
  }

  absl::Status OnStep(const StepEvent& s) override {
    data_.steps.push_back({s.step, s.loss, s.accuracy, s.learning_rate});
    return absl::OkStatus();
  }

  absl::Status OnEvaluation(const EvaluationEvent& event) override {
    const Evaluation& e = event.evaluation;
    data_.evals.push_back({event.step, e.loss, std::isnan(e.accuracy) ? e.rmse : e.accuracy});
    return absl::OkStatus();
  }

  absl::Status OnEnd(const EndEvent& end) override {
    const TrainResult& result = end.result;
    if (!result.saved) return absl::OkStatus();
    data_.subtitle = absl::StrCat(result.steps, " steps, batch ", batch_);
    if (result.evaluation.has_value()) ShowEvaluation(*result.evaluation);
    if (result.averages.has_value()) ShowAverages(*result.averages);
    if (result.skipped_steps.value_or(0) > 0) {
      data_.figures.push_back(
          {"Skipped steps", absl::StrCat(*result.skipped_steps), "they overflowed"});
    }
    data_.figures.push_back({"Training loss", absl::StrFormat("%.4f", result.loss), "smoothed"});
    data_.figures.push_back({"Steps", absl::StrCat(result.steps), ""});
    data_.timing = {{"Time", FormatSeconds(result.seconds)},
                    {"Throughput", absl::StrFormat("%.0f examples/s", result.samples_per_second)}};
    ReportFile file{"checkpoint", output_, "", -1};
    if (auto sum = Sha256OfFile(output_); sum.ok()) file.sha256 = *sum;
    data_.files = {file};
    data_.next = {
        {"Export the plain inference model",
         absl::StrCat("onward export ", output_, " -o model.onnx")},
        {"Continue training",
         absl::StrCat("onward train ", output_, " --resume --data SPEC --steps N -o ", output_)}};
    return WriteFileAtomically(path_, RenderReport(data_));
  }

  int wrong_examples() const override { return kWrongExamples; }

 private:
  void ShowEvaluation(const Evaluation& e) {
    const std::string examples = absl::StrCat(e.examples, " test examples");
    if (std::isnan(e.accuracy)) {
      data_.figures.push_back({"RMSE", absl::StrFormat("%.4g", e.rmse), examples});
      data_.metric_name = "RMSE";
      data_.metric_is_share = false;
    } else {
      data_.figures.push_back({"Accuracy", absl::StrFormat("%.2f %%", 100 * e.accuracy), examples});
    }
    data_.figures.push_back({"Test loss", absl::StrFormat("%.4f", e.loss), ""});
    data_.confusion = e.confusion;
    data_.wrong = e.wrong;
    data_.wrong_total = e.wrong_total;
  }

  void ShowAverages(const Evaluation& e) {
    const bool classes = !std::isnan(e.accuracy);
    data_.figures.push_back(
        {classes ? "Accuracy of averages" : "RMSE of averages",
         classes ? absl::StrFormat("%.2f %%", 100 * e.accuracy) : absl::StrFormat("%.4g", e.rmse),
         "export --ema"});
  }

  std::string path_, output_;
  int64_t batch_ = 0;
  ReportData data_;
};

}  // namespace

std::unique_ptr<RunListener> ReportListener(std::string path) {
  return std::make_unique<Report>(std::move(path));
}

}  // namespace onward

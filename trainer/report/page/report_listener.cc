// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "data/sha256.h"
#include "trainer/report/listeners.h"
#include "trainer/report/page/run_record.h"

namespace onward {
namespace {

constexpr int kWrongExamples = 48;

class Report : public RunRecord {
 public:
  Report(std::string path, bool watch) : path_(std::move(path)), watch_(watch) {}

  absl::Status OnStart(const RunFacts& facts) override {
    output_ = facts.output;
    return RunRecord::OnStart(facts);
  }

  absl::Status OnEvaluation(const EvaluationEvent& event) override {
    ONWARD_RETURN_IF_ERROR(RunRecord::OnEvaluation(event));
    Refresh();
    return absl::OkStatus();
  }

  void OnCheckpoint(const CheckpointEvent&) override { Refresh(); }

  absl::Status OnEnd(const EndEvent& end) override {
    ONWARD_RETURN_IF_ERROR(RunRecord::OnEnd(end));
    // A run that was stopped before its first step has nothing to show, but a page that was there
    // to be watched must not say that it goes on.
    if (output_.empty() || !(end.result.saved || written_ || failed())) return absl::OkStatus();
    ReportData data = Data();
    if (end.result.saved) AddFiles(&data);
    return WriteFileAtomically(path_, RenderReport(data));
  }

  int wrong_examples() const override { return kWrongExamples; }
  bool wants_details() const override { return true; }

 private:
  // A page that cannot be written now is no reason to end the run; the last one is written anew.
  void Refresh() {
    if (watch_) written_ |= WriteFileAtomically(path_, RenderReport(Data())).ok();
  }

  void AddFiles(ReportData* data) const {
    ReportFile file{"checkpoint", output_, "", -1};
    if (auto sum = Sha256OfFile(output_); sum.ok()) file.sha256 = *sum;
    data->files = {file};
    data->next = {
        {"Export the plain inference model",
         absl::StrCat("onward export ", output_, " -o model.onnx")},
        {"Continue training",
         absl::StrCat("onward train ", output_, " --resume --data SPEC --steps N -o ", output_)}};
  }

  std::string path_, output_;  // output_: from the start on
  bool watch_, written_ = false;
};

}  // namespace

std::unique_ptr<RunListener> ReportListener(std::string path, bool watch) {
  return std::make_unique<Report>(std::move(path), watch);
}

}  // namespace onward

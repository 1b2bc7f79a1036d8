// SPDX-License-Identifier: Apache-2.0
// What a run told, as the report shows it. A run that goes on and one that is read from its log
// (run_log.h) give the same page.
#ifndef ONWARD_TRAINER_REPORT_PAGE_RUN_RECORD_H_
#define ONWARD_TRAINER_REPORT_PAGE_RUN_RECORD_H_

#include <optional>
#include <string>

#include "trainer/run/listener.h"

namespace onward {

class RunRecord : public RunListener {
 public:
  absl::Status OnStart(const RunFacts& facts) override;
  absl::Status OnStep(const StepEvent& step) override;
  absl::Status OnEvaluation(const EvaluationEvent& event) override;
  void OnNorms(const ReportNorms& norms) override { data_.norms.push_back(norms); }
  void OnNote(const ReportNote& note) override { said_.push_back(note); }
  absl::Status OnEnd(const EndEvent& end) override;

  // As far as the run has come.
  ReportData Data() const;
  bool ended() const { return ended_; }
  bool failed() const { return !error_.empty(); }

 private:
  void ForgetAfter(int64_t step);
  std::optional<size_t> Best() const;
  std::string WhyEarly() const;
  void AddEvaluation(const Evaluation& e, ReportData* data) const;
  void AddAverages(ReportData* data) const;
  void AddSkipped(ReportData* data) const;
  void AddFigures(ReportData* data) const;
  void AddTiming(ReportData* data) const;
  void AddNotes(ReportData* data) const;

  RunFacts facts_;
  ReportData data_;
  std::vector<ReportNote> said_;  // since the run began
  std::optional<Evaluation> last_, baseline_, averages_;
  int64_t step_ = 0;
  double seconds_ = 0;
  bool ended_ = false;
  // Once it has ended.
  TrainResult result_;
  std::string error_;
};

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_PAGE_RUN_RECORD_H_

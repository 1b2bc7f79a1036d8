// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/listener.h"

#include <algorithm>

#include "core/base/status.h"

namespace onward {

absl::Status Listeners::OnStart(const RunFacts& facts) {
  for (const auto& listener : all_) ONWARD_RETURN_IF_ERROR(listener->OnStart(facts));
  return absl::OkStatus();
}

absl::Status Listeners::OnStep(const StepEvent& step) {
  for (const auto& listener : all_) ONWARD_RETURN_IF_ERROR(listener->OnStep(step));
  return absl::OkStatus();
}

absl::Status Listeners::OnEvaluation(const EvaluationEvent& evaluation) {
  for (const auto& listener : all_) ONWARD_RETURN_IF_ERROR(listener->OnEvaluation(evaluation));
  return absl::OkStatus();
}

void Listeners::OnNorms(const ReportNorms& norms) {
  for (const auto& listener : all_) listener->OnNorms(norms);
}

void Listeners::OnCheckpoint(const CheckpointEvent& checkpoint) {
  for (const auto& listener : all_) listener->OnCheckpoint(checkpoint);
}

void Listeners::OnNote(const ReportNote& note) {
  for (const auto& listener : all_) listener->OnNote(note);
}

void Listeners::OnPace(int64_t steps, double step_seconds) {
  for (const auto& listener : all_) listener->OnPace(steps, step_seconds);
}

absl::Status Listeners::OnEnd(const EndEvent& end) {
  absl::Status first;
  for (const auto& listener : all_) first.Update(listener->OnEnd(end));
  return first;
}

int Listeners::wrong_examples() const {
  int most = 0;
  for (const auto& listener : all_) most = std::max(most, listener->wrong_examples());
  return most;
}

bool Listeners::wants_details() const {
  return std::any_of(all_.begin(), all_.end(), [](const auto& l) { return l->wants_details(); });
}

}  // namespace onward

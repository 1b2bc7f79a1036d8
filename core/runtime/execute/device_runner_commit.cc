// SPDX-License-Identifier: Apache-2.0
// Phase two on accelerators: what is due is looked at, and assigned as a whole.
#include <cstring>
#include <utility>

#include "core/base/status.h"
#include "core/runtime/execute/device_runner.h"
#include "core/runtime/execute/guards.h"

namespace onward {
namespace {

// Recordings of phase two that are kept: each condition doubles what can be due together.
constexpr size_t kMostCommits = 4;

}  // namespace

absl::Status DeviceRunner::QueueChecks() {
  const auto at = [&](const Word& word) {
    return accelerators_.header_there(word.device)->bad + word.index;
  };
  const auto look = [&](const Word& word, int id) {
    if (word.device == kHost) return absl::OkStatus();
    return accelerators_.stream(word.device).FlagInfinite(tensors_[id], at(word));
  };
  for (size_t i = 0; i < values_.size(); ++i) {
    ONWARD_RETURN_IF_ERROR(look(values_[i], plan_->finite[i]));
  }
  for (size_t i = 0; i < copies_.size(); ++i) {
    if (!CopyIsDue(i)) continue;
    ONWARD_RETURN_IF_ERROR(look(copies_[i], plan_->copies[i].from));
  }
  for (size_t i = 0; i < commit_.size(); ++i) {
    if (outputs_[i].device == kHost || !due_[i]) continue;
    ONWARD_RETURN_IF_ERROR(
        commit_[i].step->kernel.flag_infinite(CallOf(commit_[i], 0), at(outputs_[i])));
  }
  for (int d = 1; d <= static_cast<int>(plan_->accelerators.size()); ++d) {
    if (!checks_on_[d]) continue;
    RunHeader* const there = accelerators_.header_there(d);
    Stream& stream = accelerators_.stream(d);
    ONWARD_RETURN_IF_ERROR(stream.SetStop(there->bad, words_, queues().fault(d), &there->stop));
    if (CommitsBehindFaults()) ONWARD_RETURN_IF_ERROR(queues().QueueFault(d));
    ONWARD_RETURN_IF_ERROR(
        stream.CopyPinnedOut(&accelerators_.header(d), there, accelerators_.header_bytes()));
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::QueueAssignments() {
  for (size_t i = 0; i < commit_.size(); ++i) {
    const BoundStep& b = commit_[i];
    if (b.step->device == kHost || !due_[i]) continue;
    KernelCall call = CallOf(b, 0);
    call.stop = &accelerators_.header_there(b.step->device)->stop;
    ONWARD_RETURN_IF_ERROR(b.step->kernel.run(call));
  }
  for (size_t i = 0; i < plan_->copies.size(); ++i) {
    const Tensor& from = tensors_[plan_->copies[i].from];
    if (from.place() == kHost || !CopyIsDue(i)) continue;
    ONWARD_RETURN_IF_ERROR(accelerators_.stream(from.place())
                               .CopyUnless(&accelerators_.header_there(from.place())->stop,
                                           tensors_[homes_[i]].raw(), from.raw(), from.bytes()));
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::FindDue() {
  for (size_t i = 0; i < due_.size(); ++i) {
    const size_t steps = commit_.size();
    const PlanGuard& guard = i < steps ? commit_[i].step->guard : plan_->copies[i - steps].guard;
    ONWARD_ASSIGN_OR_RETURN(due_[i], Holds(*plan_, tensors_, guard));
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::CheckUpdates() {
  ONWARD_RETURN_IF_ERROR(FindDue());
  for (int d = 1; d <= static_cast<int>(plan_->accelerators.size()); ++d) {
    if (!checks_on_[d]) continue;
    queues().Queued(d, false);
    if (begun_[d]) continue;
    ONWARD_RETURN_IF_ERROR(Wait());
    std::memset(static_cast<void*>(&accelerators_.header(d)), 0, accelerators_.header_bytes());
    queues().Queued(d, false);
    ONWARD_RETURN_IF_ERROR(QueueHeader(d));
  }
  ONWARD_RETURN_IF_ERROR(QueueChecks());
  return Wait();
}

absl::Status DeviceRunner::Assign() {
  if (recorded_->commits.size() >= kMostCommits && !recorded_->commits.contains(due_)) {
    recorded_->commits.clear();
  }
  // Variables live on the first accelerator.
  queues().Queued(1, false);
  ONWARD_RETURN_IF_ERROR(Replay(1, &recorded_->commits[due_], [&] { return QueueAssignments(); }));
  return Wait();
}

bool DeviceRunner::IsBad(const Word& word) const {
  return word.device != kHost && accelerators_.header(word.device).bad[word.index] != 0;
}

bool DeviceRunner::BadOutput(size_t step, size_t o) const {
  return IsBad({outputs_[step].device, outputs_[step].index + static_cast<int>(o)});
}

bool DeviceRunner::AnyBad() const {
  for (int d = 1; d <= static_cast<int>(plan_->accelerators.size()); ++d) {
    if (checks_on_[d] && accelerators_.header(d).stop != 0) return true;
  }
  return false;
}

}  // namespace onward

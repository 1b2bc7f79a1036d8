// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a plan that has accelerators: stretch by stretch, each queued as a whole from a
// recording that is made when a plan runs for the second time (the first run finds what libraries
// set up when they are first called, and a plan that runs once is not recorded). Used by the
// executor alone.
#ifndef ONWARD_CORE_RUNTIME_EXECUTE_DEVICE_RUNNER_H_
#define ONWARD_CORE_RUNTIME_EXECUTE_DEVICE_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/runtime/devices/accelerators.h"
#include "core/runtime/devices/feed_copies.h"
#include "core/runtime/execute/bound_step.h"
#include "core/runtime/execute/executor.h"

namespace onward {

class DeviceRunner {
 public:
  // All of it outlives the runner; `tensors` are those of the plan's values.
  DeviceRunner(std::shared_ptr<const Plan> plan, std::vector<BoundStep>* compute,
               std::vector<BoundStep>* commit, std::vector<Tensor>* tensors);

  // Gets memory, once, and points tensors and steps at it.
  absl::Status Open();
  Queues& queues() { return accelerators_.queues(); }

  // Phase one; the host's steps [begin, end) are on_host(begin, end)'s to run. With it, where the
  // plan says so, phase two on the accelerators: it has happened if nothing is Bad below. Waits
  // only if something comes to the host.
  absl::Status Run(const RunOptions& options,
                   absl::FunctionRef<absl::Status(size_t begin, size_t end)> on_host);
  // Phase two in two parts, where the plan does not say so: looks at what would be assigned on
  // accelerators, and assigns it as a whole. Both wait.
  absl::Status CheckUpdates();
  absl::Status Assign();
  // Begins to copy what the feeds of a later run are given, by PlanFeed::position.
  absl::Status Stage(absl::Span<const Value* const> inputs);
  // Until all that is queued is done, and what has come to the host is where it belongs.
  absl::Status Wait();
  // After an error: nothing is in work any more.
  void GiveUp();

  // What was found not to be finite on accelerators, of what is due: value i of Plan::finite, copy
  // i of Plan::copies, output o of a step of the commit phase.
  bool BadValue(size_t i) const { return IsBad(values_[i]); }
  bool BadCopy(size_t i) const { return IsBad(copies_[i]); }
  bool BadOutput(size_t step, size_t o) const;
  bool AnyBad() const;

 private:
  // A word of RunHeader::bad on a device; what the host looks at has none.
  struct Word {
    int device = kHost;
    int index = -1;
  };
  Word NewWord(int device);
  bool IsBad(const Word& word) const;
  bool UsesHeader(int device) const;
  // Whether the stretch that assigns brings what its kernels have told to the host itself, before
  // it assigns anything: no call that can fail may be left between there and the end of the step.
  bool CommitsBehindFaults() const;
  // Whether the pinned memory is in the hands of work that was not waited for.
  bool InFlight() { return queued_at_ == queues().waits(); }

  absl::Status RunStretch(size_t number, const RunOptions& options);
  // Puts what the host has into pinned memory.
  absl::Status PutIn(const Stretch& stretch, bool first, const RunOptions& options);
  absl::Status QueueHeader(int device);
  absl::Status QueueSteps(const Stretch& stretch, bool first);
  absl::Status QueueStep(const BoundStep& bound);
  absl::Status RunOneByOne(const Stretch& stretch, bool first, const RunOptions& options);
  absl::Status QueueChecks();
  absl::Status QueueAssignments();
  // Queues what `queue` queues as a whole; made into a recording if it is none yet.
  absl::Status Replay(int device, std::unique_ptr<Recording>* recording,
                      absl::FunctionRef<absl::Status()> queue);
  KernelCall CallOf(const BoundStep& bound, uint32_t number) const;
  // Of what may lie elsewhere in the next run.
  std::vector<const void*> Addresses() const;
  // Asks the conditions of phase two, which phase one has computed.
  absl::Status FindDue();
  bool CopyIsDue(size_t i) const { return due_[commit_.size() + i]; }

  std::shared_ptr<const Plan> plan_;
  std::vector<BoundStep>& compute_;
  std::vector<BoundStep>& commit_;
  std::vector<Tensor>& tensors_;
  bool open_ = false;
  int words_ = 0;
  std::vector<bool> checks_on_;                  // by device
  std::vector<bool> begun_;                      // by device: it has had a stretch in this run
  std::vector<bool> due_;                        // in this run: steps of phase two, then copies
  std::vector<Word> values_, copies_, outputs_;  // the last: of output 0 of each commit step
  std::vector<int> homes_;                       // of Plan::copies: the variable's value, or -1
  std::vector<bool> may_fault_;                  // by stretch
  std::vector<FeedCopies> feeds_;                // by device
  mutable Accelerators accelerators_;
  std::vector<const BoundStep*> arriving_;  // copies to the host that are queued
  int64_t queued_at_ = -1;                  // Queues::waits() when something was
  Recorded* recorded_ = nullptr;            // of this run
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_EXECUTE_DEVICE_RUNNER_H_

// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/execute/device_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/status.h"
#include "core/graph/random.h"
#include "core/runtime/execute/guards.h"

namespace onward {
namespace {

bool CopiesToHost(const Plan& plan, const PlanStep& step) {
  return step.transfer && step.device != kHost && plan.values[step.outputs[0]].device == kHost;
}

bool CopiesFromHost(const Plan& plan, const PlanStep& step) {
  return step.transfer && step.device != kHost && plan.values[step.inputs[0]].device == kHost;
}

}  // namespace

DeviceRunner::DeviceRunner(std::shared_ptr<const Plan> plan, std::vector<BoundStep>* compute,
                           std::vector<BoundStep>* commit, std::vector<Tensor>* tensors)
    : plan_(std::move(plan)),
      compute_(*compute),
      commit_(*commit),
      tensors_(*tensors),
      checks_on_(plan_->accelerators.size() + 1, false),
      begun_(plan_->accelerators.size() + 1, false),
      due_(plan_->commit.size() + plan_->copies.size(), true),
      accelerators_(plan_) {
  const auto check = [&](int id) {
    const PlanValue& v = plan_->values[id];
    return IsFloating(v.dtype) ? NewWord(v.device) : Word{};
  };
  for (const int id : plan_->finite) values_.push_back(check(id));
  for (const PlanCopy& copy : plan_->copies) {
    copies_.push_back(check(copy.from));
    checks_on_[plan_->values[copy.from].device] = true;  // it heeds what others find, at least
    homes_.push_back(plan_->HomeOf(copy.variable));
  }
  for (const BoundStep& b : commit_) {
    outputs_.push_back(NewWord(b.step->device));
    if (b.step->device != kHost) words_ += static_cast<int>(b.outputs.size()) - 1;
  }
  for (const Stretch& stretch : plan_->stretches) {
    may_fault_.push_back(std::any_of(
        plan_->compute.begin() + stretch.begin, plan_->compute.begin() + stretch.end,
        [&](const PlanStep& s) { return s.device != kHost && s.kernel.fault != nullptr; }));
  }
  for (int d = 1; d <= static_cast<int>(plan_->accelerators.size()); ++d) {
    feeds_.emplace_back(*plan_, d);
  }
}

DeviceRunner::Word DeviceRunner::NewWord(int device) {
  if (device == kHost) return {};
  checks_on_[device] = true;
  return {device, words_++};
}

absl::Status DeviceRunner::Open() {
  if (open_) return absl::OkStatus();
  if (!accelerators_.open()) ONWARD_RETURN_IF_ERROR(accelerators_.Open(words_));
  for (FeedCopies& feeds : feeds_) ONWARD_RETURN_IF_ERROR(feeds.Open(&queues()));
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const PlanValue& v = plan_->values[i];
    const PlanValue& root = plan_->values[v.root];
    if (v.device == kHost) continue;
    if (root.storage == PlanValue::Storage::kArena) {
      tensors_[i].Rebind(accelerators_.arena(v.device) + root.offset);
    } else if (root.storage == PlanValue::Storage::kConstant) {
      tensors_[i].Rebind(accelerators_.constant(v.root));
    }
  }
  for (std::vector<BoundStep>* steps : {&compute_, &commit_}) {
    for (BoundStep& b : *steps) {
      if (b.step->device == kHost) continue;
      b.workspace = accelerators_.arena(b.step->device) + b.step->workspace_offset;
    }
  }
  open_ = true;
  return absl::OkStatus();
}

std::vector<const void*> DeviceRunner::Addresses() const {
  std::vector<const void*> addresses;
  for (const auto& [name, id] : plan_->variables) {
    if (plan_->values[id].device != kHost) addresses.push_back(tensors_[id].raw());
  }
  for (const PlanFeed& feed : plan_->feeds) {
    if (plan_->values[feed.id].device != kHost) addresses.push_back(tensors_[feed.id].raw());
  }
  return addresses;
}

bool DeviceRunner::CommitsBehindFaults() const {
  return plan_->commits_in_stretch && absl::c_linear_search(may_fault_, true);
}

bool DeviceRunner::UsesHeader(int device) const {
  return checks_on_[device] || absl::c_any_of(plan_->compute, [&](const PlanStep& step) {
           return step.device == device && IsRandom(step.node);
         });
}

absl::Status DeviceRunner::Run(const RunOptions& options,
                               absl::FunctionRef<absl::Status(size_t begin, size_t end)> on_host) {
  ONWARD_ASSIGN_OR_RETURN(recorded_, accelerators_.RecordedFor(Addresses()));
  begun_.assign(begun_.size(), false);
  std::vector<bool> ran(plan_->stretches.size(), false);
  bool told = options.meanwhile == nullptr || plan_->rest != nullptr;
  const auto meanwhile = [&] {
    if (told || !InFlight()) return;
    told = true;
    options.meanwhile();
  };
  for (size_t s = 0; s < plan_->stretches.size(); ++s) {
    const Stretch& stretch = plan_->stretches[s];
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("stopped");
    }
    if (!stretch.guard.always()) meanwhile();
    // What was profiled has been waited for, but is not yet where it belongs.
    const bool pending = InFlight() || !arriving_.empty() || queues().may_fault();
    if (s > 0 && pending) ONWARD_RETURN_IF_ERROR(Wait());
    ONWARD_ASSIGN_OR_RETURN(ran[s], Holds(*plan_, tensors_, stretch.guard));
    if (!ran[s]) continue;
    ONWARD_RETURN_IF_ERROR(stretch.device == kHost ? on_host(stretch.begin, stretch.end)
                                                   : RunStretch(s, options));
  }
  for (size_t s = 0; s < ran.size(); ++s) recorded_->ran[s] = recorded_->ran[s] || ran[s];
  meanwhile();
  return arriving_.empty() && !plan_->commits_in_stretch ? absl::OkStatus() : Wait();
}

absl::Status DeviceRunner::RunStretch(size_t number, const RunOptions& options) {
  const Stretch& stretch = plan_->stretches[number];
  const int device = stretch.device;
  const bool first = !begun_[device];
  begun_[device] = true;
  // Guards decide which of their stretches comes first and brings the header: it is not recorded.
  const bool whole = recorded_->ran[number] && (stretch.guard.always() || !first);
  const bool commits = plan_->commits_in_stretch && number + 1 == plan_->stretches.size();
  ONWARD_RETURN_IF_ERROR(PutIn(stretch, first, options));
  queues().Queued(device, may_fault_[number]);
  queued_at_ = queues().waits();
  if (options.on_step) {
    ONWARD_RETURN_IF_ERROR(RunOneByOne(stretch, first, options));
  } else if (!whole) {
    ONWARD_RETURN_IF_ERROR(QueueSteps(stretch, first));
  } else {
    ONWARD_RETURN_IF_ERROR(Replay(device, &recorded_->stretches[number], [&]() -> absl::Status {
      ONWARD_RETURN_IF_ERROR(QueueSteps(stretch, first));
      if (!commits) return absl::OkStatus();
      ONWARD_RETURN_IF_ERROR(QueueChecks());
      return QueueAssignments();
    }));
  }
  for (int s = stretch.begin; s < stretch.end; ++s) {
    if (CopiesToHost(*plan_, *compute_[s].step)) arriving_.push_back(&compute_[s]);
  }
  if (!commits) return absl::OkStatus();
  if (!whole || options.on_step) {
    queues().Queued(device, may_fault_[number]);
    queued_at_ = queues().waits();
    ONWARD_RETURN_IF_ERROR(Replay(device, &recorded_->commits[due_], [&]() -> absl::Status {
      ONWARD_RETURN_IF_ERROR(QueueChecks());
      return QueueAssignments();
    }));
  }
  if (CommitsBehindFaults()) queues().FaultComes(device);
  return absl::OkStatus();
}

absl::Status DeviceRunner::PutIn(const Stretch& stretch, bool first, const RunOptions& options) {
  const int device = stretch.device;
  FeedCopies& feeds = feeds_[device - 1];
  const bool header = first && UsesHeader(device);
  const bool pinned = header || (first && !feeds.empty()) ||
                      std::any_of(compute_.begin() + stretch.begin, compute_.begin() + stretch.end,
                                  [](const BoundStep& b) { return b.step->transfer; });
  if (pinned && InFlight()) ONWARD_RETURN_IF_ERROR(Wait());
  if (header) {
    RunHeader& there = accelerators_.header(device);
    std::memset(static_cast<void*>(&there), 0, accelerators_.header_bytes());
    there.random = options.random;
  }
  if (first) {
    std::vector<const void*> hosts;
    std::vector<void*> to;
    for (const BoundStep& b : compute_) {
      if (b.step->device != device || !plan_->CopiesFeed(*b.step)) continue;
      hosts.push_back(b.inputs[0]->raw());
      to.push_back(b.outputs[0]->raw());
    }
    ONWARD_RETURN_IF_ERROR(feeds.Put(hosts, to));
  }
  for (int s = stretch.begin; s < stretch.end; ++s) {
    const BoundStep& b = compute_[s];
    if (!CopiesFromHost(*plan_, *b.step) || plan_->CopiesFeed(*b.step)) continue;
    if (b.inputs[0]->bytes() == 0) continue;
    std::memcpy(accelerators_.slots() + b.step->slot, b.inputs[0]->raw(), b.inputs[0]->bytes());
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::QueueHeader(int device) {
  return accelerators_.stream(device).CopyPinnedIn(accelerators_.header_there(device),
                                                   &accelerators_.header(device),
                                                   accelerators_.header_bytes());
}

absl::Status DeviceRunner::QueueSteps(const Stretch& stretch, bool first) {
  if (first && UsesHeader(stretch.device)) ONWARD_RETURN_IF_ERROR(QueueHeader(stretch.device));
  for (int s = stretch.begin; s < stretch.end; ++s) {
    ONWARD_RETURN_IF_ERROR(QueueStep(compute_[s]));
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::QueueStep(const BoundStep& b) {
  const PlanStep& step = *b.step;
  if (!step.transfer) {
    const auto number = static_cast<uint32_t>(&b - compute_.data());
    return step.kernel.run(CallOf(b, accelerators_.first_step() + number));
  }
  if (plan_->CopiesFeed(step)) return absl::OkStatus();
  Stream& stream = accelerators_.stream(step.device);
  char* const slot = accelerators_.slots() + step.slot;
  const size_t bytes = b.outputs[0]->bytes();
  if (CopiesFromHost(*plan_, step)) return stream.CopyPinnedIn(b.outputs[0]->raw(), slot, bytes);
  if (CopiesToHost(*plan_, step)) return stream.CopyPinnedOut(slot, b.inputs[0]->raw(), bytes);
  return stream.Copy(b.outputs[0]->raw(), b.inputs[0]->raw(), bytes);
}

absl::Status DeviceRunner::RunOneByOne(const Stretch& stretch, bool first,
                                       const RunOptions& options) {
  if (first && UsesHeader(stretch.device)) ONWARD_RETURN_IF_ERROR(QueueHeader(stretch.device));
  for (int s = stretch.begin; s < stretch.end; ++s) {
    const auto start = std::chrono::steady_clock::now();
    queues().Queued(stretch.device, compute_[s].step->kernel.fault != nullptr);
    ONWARD_RETURN_IF_ERROR(QueueStep(compute_[s]));
    ONWARD_RETURN_IF_ERROR(queues().Wait());
    const auto spent = std::chrono::steady_clock::now() - start;
    options.on_step(*compute_[s].step,
                    std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::Replay(int device, std::unique_ptr<Recording>* recording,
                                  absl::FunctionRef<absl::Status()> queue) {
  Stream& stream = accelerators_.stream(device);
  if (*recording == nullptr) {
    ONWARD_RETURN_IF_ERROR(stream.BeginRecording());
    const absl::Status queued = queue();
    auto made = stream.EndRecording(queued.ok());
    ONWARD_RETURN_IF_ERROR(queued);
    ONWARD_ASSIGN_OR_RETURN(*recording, std::move(made));
  }
  return stream.Replay(**recording);
}

KernelCall DeviceRunner::CallOf(const BoundStep& b, uint32_t number) const {
  const int device = b.step->device;
  KernelCall call{b.inputs, b.outputs,     b.workspace,
                  {},       b.notes.get(), accelerators_.stream(device).native()};
  call.random_there = &accelerators_.header_there(device)->random;
  call.fault = accelerators_.queues().fault(device);
  call.step = number;
  return call;
}

absl::Status DeviceRunner::Stage(absl::Span<const Value* const> inputs) {
  if (!open_) return absl::OkStatus();
  for (FeedCopies& feeds : feeds_) {
    std::vector<const void*> hosts;
    for (const int id : feeds.values()) {
      const PlanFeed& feed = *absl::c_find_if(
          plan_->feeds, [&](const PlanFeed& f) { return f.id == plan_->values[id].root; });
      const Value* value = inputs[feed.position];
      const Tensor* tensor = value == nullptr ? nullptr : value->tensor();
      const PlanValue& v = plan_->values[feed.id];
      if (tensor == nullptr || tensor->dtype() != v.dtype || tensor->shape() != *v.shape) {
        return absl::OkStatus();
      }
      hosts.push_back(tensor->raw());
    }
    ONWARD_RETURN_IF_ERROR(feeds.Stage(hosts));
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::Wait() {
  const absl::Status status = queues().Wait();
  queued_at_ = -1;
  if (status.ok()) {
    for (const BoundStep* b : arriving_) {
      if (b->outputs[0]->bytes() == 0) continue;
      std::memcpy(b->outputs[0]->raw(), accelerators_.slots() + b->step->slot,
                  b->outputs[0]->bytes());
    }
  }
  arriving_.clear();
  return status;
}

void DeviceRunner::GiveUp() {
  queues().Settle();
  queues().Wait().IgnoreError();
  queued_at_ = -1;
  arriving_.clear();
}

}  // namespace onward

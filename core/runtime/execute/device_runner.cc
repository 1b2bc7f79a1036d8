// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/execute/device_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/status.h"
#include "core/graph/random.h"

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

bool DeviceRunner::IsFirstOf(size_t stretch) const {
  const int device = plan_->stretches[stretch].device;
  return std::none_of(plan_->stretches.begin(), plan_->stretches.begin() + stretch,
                      [&](const Stretch& before) { return before.device == device; });
}

bool DeviceRunner::UsesHeader(int device) const {
  return checks_on_[device] || absl::c_any_of(plan_->compute, [&](const PlanStep& step) {
           return step.device == device && IsRandom(step.node);
         });
}

absl::Status DeviceRunner::Run(
    const RunOptions& options,
    absl::FunctionRef<absl::Status(size_t begin, size_t end)> on_host) {
  ONWARD_ASSIGN_OR_RETURN(recorded_, accelerators_.RecordedFor(Addresses()));
  for (size_t s = 0; s < plan_->stretches.size(); ++s) {
    const Stretch& stretch = plan_->stretches[s];
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("stopped");
    }
    if (s > 0 && (InFlight() || queues().may_fault())) ONWARD_RETURN_IF_ERROR(Wait());
    ONWARD_RETURN_IF_ERROR(stretch.device == kHost ? on_host(stretch.begin, stretch.end)
                                                   : RunStretch(s, options));
  }
  ++recorded_->runs;
  if (options.meanwhile && plan_->rest == nullptr && InFlight()) options.meanwhile();
  return arriving_.empty() && !plan_->commits_in_stretch ? absl::OkStatus() : Wait();
}

absl::Status DeviceRunner::RunStretch(size_t number, const RunOptions& options) {
  const Stretch& stretch = plan_->stretches[number];
  const int device = stretch.device;
  const bool first = IsFirstOf(number);
  const bool commits = plan_->commits_in_stretch && number + 1 == plan_->stretches.size();
  ONWARD_RETURN_IF_ERROR(PutIn(stretch, first, options));
  queues().Queued(device, may_fault_[number]);
  queued_at_ = queues().waits();
  if (options.on_step) {
    ONWARD_RETURN_IF_ERROR(RunOneByOne(stretch, first, options));
  } else if (recorded_->runs == 0) {
    ONWARD_RETURN_IF_ERROR(QueueSteps(stretch, first));
  } else {
    const auto whole = [&]() -> absl::Status {
      ONWARD_RETURN_IF_ERROR(QueueSteps(stretch, first));
      if (!commits) return absl::OkStatus();
      ONWARD_RETURN_IF_ERROR(QueueChecks());
      return QueueAssignments();
    };
    ONWARD_RETURN_IF_ERROR(Replay(device, &recorded_->stretches[number], whole));
  }
  for (int s = stretch.begin; s < stretch.end; ++s) {
    if (CopiesToHost(*plan_, *compute_[s].step)) arriving_.push_back(&compute_[s]);
  }
  if (!commits || (recorded_->runs > 0 && !options.on_step)) return absl::OkStatus();
  queues().Queued(device, may_fault_[number]);
  queued_at_ = queues().waits();
  return Replay(device, &recorded_->commit, [&]() -> absl::Status {
    ONWARD_RETURN_IF_ERROR(QueueChecks());
    return QueueAssignments();
  });
}

absl::Status DeviceRunner::PutIn(const Stretch& stretch, bool first, const RunOptions& options) {
  const int device = stretch.device;
  FeedCopies& feeds = feeds_[device - 1];
  const bool header = first && UsesHeader(device);
  const bool pinned =
      header || (first && !feeds.empty()) ||
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
  KernelCall call{b.inputs, b.outputs, b.workspace, {}, b.notes.get(),
                  accelerators_.stream(device).native()};
  call.random_there = &accelerators_.header_there(device)->random;
  call.fault = accelerators_.queues().fault(device);
  call.step = number;
  return call;
}

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
    ONWARD_RETURN_IF_ERROR(look(copies_[i], plan_->copies[i].from));
  }
  for (size_t i = 0; i < commit_.size(); ++i) {
    if (outputs_[i].device == kHost) continue;
    ONWARD_RETURN_IF_ERROR(
        commit_[i].step->kernel.flag_infinite(CallOf(commit_[i], 0), at(outputs_[i])));
  }
  for (int d = 1; d <= static_cast<int>(plan_->accelerators.size()); ++d) {
    if (!checks_on_[d]) continue;
    RunHeader* const there = accelerators_.header_there(d);
    Stream& stream = accelerators_.stream(d);
    ONWARD_RETURN_IF_ERROR(stream.SetStop(there->bad, words_, queues().fault(d), &there->stop));
    ONWARD_RETURN_IF_ERROR(
        stream.CopyPinnedOut(&accelerators_.header(d), there, accelerators_.header_bytes()));
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::QueueAssignments() {
  for (const BoundStep& b : commit_) {
    if (b.step->device == kHost) continue;
    KernelCall call = CallOf(b, 0);
    call.stop = &accelerators_.header_there(b.step->device)->stop;
    ONWARD_RETURN_IF_ERROR(b.step->kernel.run(call));
  }
  for (size_t i = 0; i < plan_->copies.size(); ++i) {
    const Tensor& from = tensors_[plan_->copies[i].from];
    if (from.place() == kHost) continue;
    ONWARD_RETURN_IF_ERROR(accelerators_.stream(from.place())
                               .CopyUnless(&accelerators_.header_there(from.place())->stop,
                                           tensors_[homes_[i]].raw(), from.raw(), from.bytes()));
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::CheckUpdates() {
  for (int d = 1; d <= static_cast<int>(plan_->accelerators.size()); ++d) {
    if (!checks_on_[d]) continue;
    queues().Queued(d, false);
    const bool begun = absl::c_any_of(plan_->stretches,
                                      [&](const Stretch& stretch) { return stretch.device == d; });
    if (begun) continue;
    ONWARD_RETURN_IF_ERROR(Wait());
    std::memset(static_cast<void*>(&accelerators_.header(d)), 0, accelerators_.header_bytes());
    queues().Queued(d, false);
    ONWARD_RETURN_IF_ERROR(QueueHeader(d));
  }
  ONWARD_RETURN_IF_ERROR(QueueChecks());
  return Wait();
}

absl::Status DeviceRunner::Assign() {
  // Variables live on the first accelerator.
  queues().Queued(1, false);
  ONWARD_RETURN_IF_ERROR(Replay(1, &recorded_->commit, [&] { return QueueAssignments(); }));
  return Wait();
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

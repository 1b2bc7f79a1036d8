// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/queues.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {

Queues::Queues(std::vector<const Device*> accelerators) {
  for (const Device* device : accelerators) {
    held_.emplace_back();
    held_.back().device = device;
  }
}

absl::Status Queues::Open() {
  if (open_) return absl::OkStatus();
  for (Held& held : held_) {
    ONWARD_ASSIGN_OR_RETURN(held.compute, held.device->MakeStream());
    ONWARD_ASSIGN_OR_RETURN(held.feeding, held.device->MakeStream());
  }
  open_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<void>> Queues::Constant(const Tensor& host, int d) {
  const auto key = std::make_pair(d, host.raw());
  if (const auto it = constants_.find(key); it != constants_.end()) {
    std::shared_ptr<void> memory = it->second.memory.lock();
    if (memory != nullptr && it->second.host.bytes() == host.bytes()) return memory;
  }
  std::erase_if(constants_, [](const auto& entry) { return entry.second.memory.expired(); });
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, device(d).Allocate(host.bytes()));
  ONWARD_RETURN_IF_ERROR(compute(d).CopyIn(memory.get(), host.raw(), host.bytes()));
  Queued(d, false);
  if (host.owned()) constants_[key] = {host, memory};
  return memory;
}

absl::StatusOr<Tensor> Queues::New(DType dtype, const Shape& shape, int d) {
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<void> memory,
                          device(d).Allocate(TensorBytes(dtype, shape)));
  void* const data = memory.get();
  return Tensor(dtype, shape, data, std::move(memory), d);
}

absl::StatusOr<Tensor> Queues::CopyTo(const Tensor& tensor, int d) {
  ONWARD_ASSIGN_OR_RETURN(Tensor copy, New(tensor.dtype(), tensor.shape(), d));
  ONWARD_RETURN_IF_ERROR(Copy(tensor, &copy));
  return copy;
}

absl::Status Queues::Copy(const Tensor& from, Tensor* to) {
  const int d = to->place() == kHost ? from.place() : to->place();
  Queued(d, false);
  if (to->place() == kHost) {
    ONWARD_RETURN_IF_ERROR(compute(d).CopyOut(to->raw(), from.raw(), from.bytes()));
    return Wait();
  }
  if (from.place() == kHost) return compute(d).CopyIn(to->raw(), from.raw(), from.bytes());
  CheckInvariant(from.place() == to->place(), "devices copy through the host");
  return compute(d).Copy(to->raw(), from.raw(), from.bytes());
}

absl::StatusOr<Tensor> Queues::Fetch(const Tensor& tensor) {
  if (tensor.place() == kHost) return tensor;
  Tensor host(tensor.dtype(), tensor.shape());
  ONWARD_RETURN_IF_ERROR(Copy(tensor, &host));
  return host;
}

absl::Status Queues::OpenFault(Held& held) {
  if (held.fault != nullptr) return absl::OkStatus();
  ONWARD_ASSIGN_OR_RETURN(held.pinned_fault, held.device->AllocateHost(sizeof(Fault)));
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<void> fault, held.device->Allocate(sizeof(Fault)));
  const Fault none;
  ONWARD_RETURN_IF_ERROR(held.compute->CopyIn(fault.get(), &none, sizeof(Fault)));
  held.fault = std::move(fault);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> Queues::NumberSteps(const std::shared_ptr<const Plan>& plan) {
  for (Held& held : held_) ONWARD_RETURN_IF_ERROR(OpenFault(held));
  std::erase_if(numbered_, [](const Numbered& n) { return n.plan.expired(); });
  numbered_.push_back({next_number_, plan});
  next_number_ += static_cast<uint32_t>(plan->compute.size());
  return numbered_.back().first;
}

void Queues::Queued(int d, bool may_fault) {
  held_[d - 1].busy = true;
  held_[d - 1].may_fault |= may_fault;
}

absl::Status Queues::QueueFault(int d) {
  const Held& held = held_[d - 1];
  return held.compute->CopyPinnedOut(held.pinned_fault.get(), held.fault.get(), sizeof(Fault));
}

void Queues::FaultComes(int d) {
  held_[d - 1].may_fault = false;
  held_[d - 1].fault_comes = true;
}

bool Queues::may_fault() const {
  return std::any_of(held_.begin(), held_.end(), [](const Held& held) { return held.may_fault; });
}

absl::Status Queues::Wait() {
  absl::Status status = std::exchange(failed_, absl::OkStatus());
  bool waited = false;
  for (size_t i = 0; i < held_.size(); ++i) {
    Held& held = held_[i];
    if (!held.busy) continue;
    waited = true;
    held.busy = false;
    const bool may_fault = std::exchange(held.may_fault, false);
    const bool fault_comes = std::exchange(held.fault_comes, false);
    const absl::Status copied = may_fault ? QueueFault(static_cast<int>(i) + 1) : absl::OkStatus();
    status.Update(held.compute->Synchronize());
    status.Update(copied);
    if ((may_fault || fault_comes) && status.ok()) status.Update(TellFault(held));
  }
  if (waited) ++waits_;
  return status;
}

void Queues::Settle() {
  for (Held& held : held_) {
    for (Stream* stream : {held.compute.get(), held.feeding.get()}) {
      if (stream != nullptr) failed_.Update(stream->Synchronize());
    }
  }
}

absl::Status Queues::TellFault(Held& held) {
  Fault fault;
  std::memcpy(&fault, held.pinned_fault.get(), sizeof(Fault));
  if (fault.step == 0) return absl::OkStatus();
  const Fault none;
  ONWARD_RETURN_IF_ERROR(held.compute->CopyIn(held.fault.get(), &none, sizeof(Fault)));
  held.busy = true;
  return Described(fault);
}

absl::Status Queues::Described(const Fault& fault) const {
  const std::string what = absl::StrCat(fault.value, " at position ", fault.position,
                                        " is outside [", fault.low, ", ", fault.high, ")");
  for (auto it = numbered_.rbegin(); it != numbered_.rend(); ++it) {
    if (it->first > fault.step) continue;
    const std::shared_ptr<const Plan> plan = it->plan.lock();
    if (plan == nullptr || fault.step - it->first >= plan->compute.size()) break;
    const PlanStep& step = plan->compute[fault.step - it->first];
    return NodeError(step.node, absl::StrCat(step.kernel.fault, " ", what));
  }
  return absl::InvalidArgumentError(what);
}

}  // namespace onward

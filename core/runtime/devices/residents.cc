// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/residents.h"

#include <set>

#include "core/base/status.h"

namespace onward {

absl::StatusOr<Stream*> Residents::StreamOf(const Device& device) {
  std::unique_ptr<Stream>& stream = streams_[&device];
  if (stream == nullptr) {
    ONWARD_ASSIGN_OR_RETURN(stream, device.MakeStream());
  }
  return stream.get();
}

absl::StatusOr<void*> Residents::Place(const std::string& name, const Tensor& host, int d,
                                       Queues* queues) {
  const Device& device = queues->device(d);
  Held& held = held_[name];
  CheckInvariant(!held.newer || held.device == &device, "a variable has one home");
  if (held.device != &device) held = {};
  if (held.there) return held.memory.get();
  if (held.memory == nullptr) {
    ONWARD_ASSIGN_OR_RETURN(held.memory, device.Allocate(host.bytes()));
    held.device = &device;
  }
  ONWARD_RETURN_IF_ERROR(queues->compute(d).CopyIn(held.memory.get(), host.raw(), host.bytes()));
  queues->Queued(d, false);
  held.there = true;
  return held.memory.get();
}

void Residents::WroteHere(const std::string& name) {
  const auto it = held_.find(name);
  if (it != held_.end()) it->second.there = it->second.newer = false;
}

void Residents::Forget() {
  for (auto& [name, held] : held_) held.there = held.newer = false;
}

absl::Status Residents::Fetch(absl::btree_map<std::string, Tensor>* variables) {
  std::set<Stream*> used;
  const auto copy = [&](const std::string& name, const Held& held) -> absl::Status {
    Tensor& host = variables->at(name);
    ONWARD_ASSIGN_OR_RETURN(Stream* const stream, StreamOf(*held.device));
    used.insert(stream);
    return stream->CopyOut(host.raw(), held.memory.get(), host.bytes());
  };
  absl::Status status;
  for (const auto& [name, held] : held_) {
    if (held.newer && status.ok()) status = copy(name, held);
  }
  // Also after an error: what is on its way arrives before the host's tensors may go.
  for (Stream* stream : used) status.Update(stream->Synchronize());
  ONWARD_RETURN_IF_ERROR(status);
  for (auto& [name, held] : held_) held.newer = false;
  return absl::OkStatus();
}

}  // namespace onward

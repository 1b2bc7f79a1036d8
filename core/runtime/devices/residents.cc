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

absl::StatusOr<void*> Residents::Place(const std::string& name, const Tensor& host,
                                       const Device& device) {
  auto it = held_.find(name);
  if (it != held_.end() && it->second.device == &device) return it->second.memory.get();
  CheckInvariant(it == held_.end() || !it->second.newer, "a variable has one home");
  ONWARD_ASSIGN_OR_RETURN(Stream* const stream, StreamOf(device));
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, device.Allocate(host.bytes()));
  ONWARD_RETURN_IF_ERROR(stream->CopyIn(memory.get(), host.raw(), host.bytes()));
  ONWARD_RETURN_IF_ERROR(stream->Synchronize());
  held_[name] = {&device, memory, false};
  return memory.get();
}

void Residents::Wrote(const std::string& name) { held_.at(name).newer = true; }

absl::Status Residents::Fetch(absl::btree_map<std::string, Tensor>* variables) {
  std::set<Stream*> used;
  for (auto& [name, held] : held_) {
    if (!held.newer) continue;
    Tensor& host = variables->at(name);
    ONWARD_ASSIGN_OR_RETURN(Stream* const stream, StreamOf(*held.device));
    ONWARD_RETURN_IF_ERROR(stream->CopyOut(host.raw(), held.memory.get(), host.bytes()));
    used.insert(stream);
  }
  for (Stream* stream : used) ONWARD_RETURN_IF_ERROR(stream->Synchronize());
  for (auto& [name, held] : held_) held.newer = false;
  return absl::OkStatus();
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/accelerators.h"

#include <utility>

#include "core/base/status.h"

namespace onward {

Accelerators::~Accelerators() { WaitForAll().IgnoreError(); }

absl::Status Accelerators::Open() {
  std::vector<Held> held(plan_.accelerators.size());
  for (size_t d = 0; d < held.size(); ++d) {
    ONWARD_ASSIGN_OR_RETURN(held[d].stream, plan_.accelerators[d]->MakeStream());
    ONWARD_ASSIGN_OR_RETURN(held[d].arena,
                            plan_.accelerators[d]->Allocate(plan_.accelerator_bytes[d]));
  }
  std::vector<std::shared_ptr<void>> constants(plan_.values.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    const PlanValue& v = plan_.values[i];
    if (v.device == kHost || v.storage != PlanValue::Storage::kConstant) continue;
    const Tensor& host = v.constant;
    ONWARD_ASSIGN_OR_RETURN(constants[i], plan_.DeviceOf(v.device).Allocate(host.bytes()));
    ONWARD_RETURN_IF_ERROR(
        held[v.device - 1].stream->CopyIn(constants[i].get(), host.raw(), host.bytes()));
  }
  held_ = std::move(held);
  constants_ = std::move(constants);
  open_ = true;
  return absl::OkStatus();
}

absl::Status Accelerators::Copy(const Tensor& from, int from_device, Tensor* to, int to_device) {
  if (to_device == kHost) {
    held_[from_device - 1].copies_to_host = true;
    return stream(from_device).CopyOut(to->raw(), from.raw(), to->bytes());
  }
  if (from_device == kHost) {
    ONWARD_RETURN_IF_ERROR(WaitForHost());
    return stream(to_device).CopyIn(to->raw(), from.raw(), to->bytes());
  }
  CheckInvariant(from_device == to_device, "accelerators copy through the host");
  return stream(to_device).Copy(to->raw(), from.raw(), to->bytes());
}

absl::Status Accelerators::Begin() {
  for (size_t d = 0; d < held_.size(); ++d) {
    const absl::Status begun = held_[d].stream->Begin();
    if (begun.ok()) continue;
    while (d-- > 0) held_[d].stream->End(false).IgnoreError();
    return begun;
  }
  return absl::OkStatus();
}

// With several devices, the last one that fails comes too late for those before it.
absl::Status Accelerators::End(bool keep) {
  absl::Status ended;
  for (Held& held : held_) ended.Update(held.stream->End(keep && ended.ok()));
  return ended;
}

absl::Status Accelerators::WaitForHost() {
  for (Held& held : held_) {
    if (!held.copies_to_host) continue;
    ONWARD_RETURN_IF_ERROR(held.stream->Synchronize());
    held.copies_to_host = false;
  }
  return absl::OkStatus();
}

absl::Status Accelerators::WaitForAll() {
  for (Held& held : held_) {
    ONWARD_RETURN_IF_ERROR(held.stream->Synchronize());
    held.copies_to_host = false;
  }
  return absl::OkStatus();
}

}  // namespace onward

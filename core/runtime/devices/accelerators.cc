// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/accelerators.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/status.h"

namespace onward {
namespace {

// Loops carry values in two places by turns.
constexpr size_t kMostRecorded = 4;

}  // namespace

Accelerators::Accelerators(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)), queues_(plan_->queues) {}

Accelerators::~Accelerators() {
  if (open_) queues_->Settle();
}

absl::Status Accelerators::Open(int words) {
  words_ = static_cast<size_t>(words);
  ONWARD_RETURN_IF_ERROR(queues_->Open());
  std::vector<Held> held(plan_->accelerators.size());
  for (size_t d = 0; d < held.size(); ++d) {
    const Device& device = *plan_->accelerators[d];
    ONWARD_ASSIGN_OR_RETURN(held[d].arena, device.Allocate(plan_->accelerator_bytes[d]));
    ONWARD_ASSIGN_OR_RETURN(held[d].header, device.Allocate(header_bytes()));
    ONWARD_ASSIGN_OR_RETURN(held[d].pinned_header, device.AllocateHost(header_bytes()));
    std::memset(held[d].pinned_header.get(), 0, header_bytes());
  }
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<void> slots,
                          plan_->accelerators[0]->AllocateHost(plan_->slot_bytes));
  std::vector<std::shared_ptr<void>> constants(plan_->values.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    const PlanValue& v = plan_->values[i];
    if (v.device == kHost || v.storage != PlanValue::Storage::kConstant) continue;
    ONWARD_ASSIGN_OR_RETURN(constants[i], queues_->Constant(v.constant, v.device));
  }
  const bool may_fault =
      std::any_of(plan_->compute.begin(), plan_->compute.end(),
                  [](const PlanStep& s) { return s.device != kHost && s.kernel.fault != nullptr; });
  if (may_fault) {
    ONWARD_ASSIGN_OR_RETURN(first_step_, queues_->NumberSteps(plan_));
  }
  held_ = std::move(held);
  slots_ = std::move(slots);
  constants_ = std::move(constants);
  open_ = true;
  return absl::OkStatus();
}

absl::StatusOr<Recorded*> Accelerators::RecordedFor(std::vector<const void*> addresses) {
  auto found = std::find_if(recorded_.begin(), recorded_.end(),
                            [&](const auto& r) { return r->addresses == addresses; });
  if (found == recorded_.end()) {
    if (recorded_.size() >= kMostRecorded) {
      ONWARD_RETURN_IF_ERROR(queues_->Wait());  // it may be running
      recorded_.pop_back();
    }
    auto fresh = std::make_unique<Recorded>();
    fresh->addresses = std::move(addresses);
    fresh->ran.resize(plan_->stretches.size(), false);
    fresh->stretches.resize(plan_->stretches.size());
    recorded_.insert(recorded_.begin(), std::move(fresh));
  } else {
    std::rotate(recorded_.begin(), found, found + 1);
  }
  return recorded_.front().get();
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/feed_copies.h"

#include <cstring>

#include "core/base/status.h"

namespace onward {

FeedCopies::FeedCopies(const Plan& plan, int device) : device_(device), bytes_(plan.fed_bytes) {
  for (const PlanStep& step : plan.compute) {
    if (step.device != device || !plan.CopiesFeed(step)) continue;
    values_.push_back(step.inputs[0]);
    copies_.push_back({step.slot, plan.values[step.outputs[0]].bytes()});
  }
}

absl::Status FeedCopies::Open(Queues* queues) {
  queues_ = queues;
  if (empty()) return absl::OkStatus();
  for (std::shared_ptr<void>& pinned : pinned_) {
    ONWARD_ASSIGN_OR_RETURN(pinned, queues->device(device_).AllocateHost(bytes_));
  }
  return absl::OkStatus();
}

const char* FeedCopies::Fill(absl::Span<const void* const> hosts) {
  char* const pinned = static_cast<char*>(pinned_[turn_].get());
  turn_ = 1 - turn_;
  for (size_t i = 0; i < copies_.size(); ++i) {
    if (copies_[i].bytes > 0) std::memcpy(pinned + copies_[i].slot, hosts[i], copies_[i].bytes);
  }
  return pinned;
}

absl::Status FeedCopies::DropStaged() {
  if (staged_hosts_.empty()) return absl::OkStatus();
  staged_hosts_.clear();
  return feeding().Synchronize();
}

absl::Status FeedCopies::Put(absl::Span<const void* const> hosts, absl::Span<void* const> to) {
  if (empty()) return absl::OkStatus();
  queues_->Queued(device_, false);
  if (hosts == absl::MakeConstSpan(staged_hosts_)) {
    staged_hosts_.clear();
    ONWARD_RETURN_IF_ERROR(compute().WaitFor(feeding()));
    const char* const landed = static_cast<const char*>(landing_.get());
    for (size_t i = 0; i < copies_.size(); ++i) {
      ONWARD_RETURN_IF_ERROR(compute().Copy(to[i], landed + copies_[i].slot, copies_[i].bytes));
    }
    // What lands next does so behind these copies, and not behind all that follows them.
    return feeding().WaitFor(compute());
  }
  ONWARD_RETURN_IF_ERROR(DropStaged());
  const char* const pinned = Fill(hosts);
  for (size_t i = 0; i < copies_.size(); ++i) {
    ONWARD_RETURN_IF_ERROR(
        feeding().CopyPinnedIn(to[i], pinned + copies_[i].slot, copies_[i].bytes));
  }
  return compute().WaitFor(feeding());
}

absl::Status FeedCopies::Stage(absl::Span<const void* const> hosts) {
  if (empty()) return absl::OkStatus();
  ONWARD_RETURN_IF_ERROR(DropStaged());
  if (landing_ == nullptr) {
    ONWARD_ASSIGN_OR_RETURN(landing_, queues_->device(device_).Allocate(bytes_));
  }
  const char* const pinned = Fill(hosts);
  char* const landing = static_cast<char*>(landing_.get());
  for (size_t i = 0; i < copies_.size(); ++i) {
    ONWARD_RETURN_IF_ERROR(feeding().CopyPinnedIn(landing + copies_[i].slot,
                                                  pinned + copies_[i].slot, copies_[i].bytes));
  }
  staged_hosts_.assign(hosts.begin(), hosts.end());
  return absl::OkStatus();
}

}  // namespace onward

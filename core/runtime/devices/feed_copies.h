// SPDX-License-Identifier: Apache-2.0
// What a plan is fed, on its way from the host's tensors to an accelerator: through pinned memory,
// in a queue beside the one that computes. Two parts of that memory take turns, so that what the
// next run is fed can be put there while this one's is still being copied.
#ifndef ONWARD_CORE_RUNTIME_DEVICES_FEED_COPIES_H_
#define ONWARD_CORE_RUNTIME_DEVICES_FEED_COPIES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/runtime/devices/queues.h"
#include "core/runtime/plan/plan.h"

namespace onward {

class FeedCopies {
 public:
  // The transfers of the plan to this device that copy what is fed.
  FeedCopies(const Plan& plan, int device);

  bool empty() const { return copies_.empty(); }
  // The plan values that are copied.
  const std::vector<int>& values() const { return values_; }
  absl::Status Open(Queues* queues);

  // Both take the host's bytes of values(), which may change afterwards.
  // Queues their copies to `to`, before what is computed from now on.
  absl::Status Put(absl::Span<const void* const> hosts, absl::Span<void* const> to);
  // Begins to copy them, for a Put that is given the same addresses.
  absl::Status Stage(absl::Span<const void* const> hosts);

 private:
  struct Copy {
    size_t slot, bytes;
  };
  Stream& feeding() { return queues_->feeding(device_); }
  Stream& compute() { return queues_->compute(device_); }
  // The part of the pinned memory whose turn it is, filled.
  const char* Fill(absl::Span<const void* const> hosts);
  absl::Status DropStaged();

  const int device_;
  const size_t bytes_;
  std::vector<int> values_;
  std::vector<Copy> copies_;
  Queues* queues_ = nullptr;
  std::shared_ptr<void> pinned_[2];
  int turn_ = 0;
  std::shared_ptr<void> landing_;          // on the device, for what is staged
  std::vector<const void*> staged_hosts_;  // empty: nothing is
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_DEVICES_FEED_COPIES_H_

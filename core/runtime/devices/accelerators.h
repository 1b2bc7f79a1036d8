// SPDX-License-Identifier: Apache-2.0
// The memory and the queues that one executor has on the accelerators of its plan.
#ifndef ONWARD_CORE_RUNTIME_DEVICES_ACCELERATORS_H_
#define ONWARD_CORE_RUNTIME_DEVICES_ACCELERATORS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/device/device.h"
#include "core/runtime/plan/plan.h"

namespace onward {

class Accelerators {
 public:
  explicit Accelerators(const Plan& plan) : plan_(plan) {}
  ~Accelerators();  // waits for what is queued

  bool open() const { return open_; }
  // Allocates, and copies the constants in.
  absl::Status Open();

  char* arena(int device) { return static_cast<char*>(held_[device - 1].arena.get()); }
  void* constant(int value) { return constants_[value].get(); }
  Stream& stream(int device) { return *held_[device - 1].stream; }

  // Queues a copy from the memory of one device to that of another; one of them may be the host.
  absl::Status Copy(const Tensor& from, int from_device, Tensor* to, int to_device);
  // What is queued in between happens as a whole, or not at all (Stream).
  absl::Status Begin();
  absl::Status End(bool keep);
  // Waits until what was copied to the host is there.
  absl::Status WaitForHost();
  absl::Status WaitForAll();

 private:
  struct Held {
    std::unique_ptr<Stream> stream;
    std::shared_ptr<void> arena;
    bool copies_to_host = false;  // queued, and not waited for
  };
  const Plan& plan_;
  bool open_ = false;
  std::vector<Held> held_;
  std::vector<std::shared_ptr<void>> constants_;  // by value
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_DEVICES_ACCELERATORS_H_

// SPDX-License-Identifier: Apache-2.0
// The queues that a session has on its accelerators. All its executors use them, those of bodies
// and of what lies behind data too, so that what one leaves on a device the next one finds there.
#ifndef ONWARD_CORE_RUNTIME_DEVICES_QUEUES_H_
#define ONWARD_CORE_RUNTIME_DEVICES_QUEUES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device/device.h"
#include "core/runtime/plan/plan.h"

namespace onward {

class Queues {
 public:
  // Device d of plans is accelerators[d - 1].
  explicit Queues(std::vector<const Device*> accelerators);
  ~Queues() { Settle(); }

  const Device& device(int d) const { return *held_[d - 1].device; }
  // Makes the streams of all devices; from then on the following may be called.
  absl::Status Open();
  // Where plans are computed, and where what they are fed is copied meanwhile.
  Stream& compute(int d) { return *held_[d - 1].compute; }
  Stream& feeding(int d) { return *held_[d - 1].feeding; }

  // The memory of a constant on a device, copied there if nobody has it yet.
  absl::StatusOr<std::shared_ptr<void>> Constant(const Tensor& host, int d);
  // New memory, as it is or with the bytes of a tensor of the host or of this device.
  absl::StatusOr<Tensor> New(DType dtype, const Shape& shape, int d);
  absl::StatusOr<Tensor> CopyTo(const Tensor& tensor, int d);
  // Queues a copy into a tensor of the same size; at least one of them is on a device. Waits if the
  // other one is the host's.
  absl::Status Copy(const Tensor& from, Tensor* to);
  // The tensor on the host. Waits.
  absl::StatusOr<Tensor> Fetch(const Tensor& tensor);

  // For plans with kernels that may tell of faults: where those of a device do, and the number of
  // the plan's first step there. Null where no such plan was here yet.
  absl::StatusOr<uint32_t> NumberSteps(const std::shared_ptr<const Plan>& plan);
  Fault* fault(int d) { return static_cast<Fault*>(held_[d - 1].fault.get()); }

  // Something was queued for computing.
  void Queued(int d, bool may_fault);
  // Queues, or records, a copy to the host of what kernels of a device have told so far.
  absl::Status QueueFault(int d);
  // That copy is queued behind all that may have told: Wait need not make one, which could fail.
  void FaultComes(int d);
  // Whether kernels may have told of faults that nobody has looked for.
  bool may_fault() const;
  // How often everything that was queued was waited for.
  int64_t waits() const { return waits_; }
  // Waits for all that is queued. An error where a device fails, or where a kernel has found a
  // fault: it names the node.
  absl::Status Wait();
  // The same where nothing can be told of errors: the next Wait does.
  void Settle();

 private:
  struct Held {
    const Device* device = nullptr;
    std::unique_ptr<Stream> compute, feeding;
    std::shared_ptr<void> fault, pinned_fault;
    bool busy = false, may_fault = false, fault_comes = false;
  };
  struct Constants {
    Tensor host;  // so that nothing else comes to lie there
    std::weak_ptr<void> memory;
  };
  struct Numbered {
    uint32_t first;  // number of step 0
    std::weak_ptr<const Plan> plan;
  };
  static absl::Status OpenFault(Held& held);
  absl::Status TellFault(Held& held);
  absl::Status Described(const Fault& fault) const;

  std::vector<Held> held_;
  bool open_ = false;
  std::map<std::pair<int, const void*>, Constants> constants_;
  std::vector<Numbered> numbered_;  // ascending
  uint32_t next_number_ = 1;
  int64_t waits_ = 0;
  absl::Status failed_;  // what Settle has met
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_DEVICES_QUEUES_H_

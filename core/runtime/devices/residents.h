// SPDX-License-Identifier: Apache-2.0
// Variables that live in the memory of devices. The host's tensors are what they were when they
// were copied in, until Fetch brings them up to date.
#ifndef ONWARD_CORE_RUNTIME_DEVICES_RESIDENTS_H_
#define ONWARD_CORE_RUNTIME_DEVICES_RESIDENTS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device/device.h"
#include "core/runtime/devices/queues.h"

namespace onward {

class Residents {
 public:
  // The memory of a variable on device d of the queues. It is filled from the host's tensor, before
  // what is computed from now on, if the device does not have it; where it is does not change.
  absl::StatusOr<void*> Place(const std::string& name, const Tensor& host, int d, Queues* queues);
  // The device has newer values than the host, and the other way round.
  void WroteThere(const std::string& name) { held_.at(name).newer = true; }
  void WroteHere(const std::string& name);
  // Copies what devices have newer to the host's tensors.
  absl::Status Fetch(absl::btree_map<std::string, Tensor>* variables);
  // The host's tensors count again.
  void Forget();

 private:
  struct Held {
    const Device* device = nullptr;
    std::shared_ptr<void> memory;
    bool there = false;  // with the values that the host had
    bool newer = false;
  };
  absl::StatusOr<Stream*> StreamOf(const Device& device);

  std::map<const Device*, std::unique_ptr<Stream>> streams_;
  std::map<std::string, Held> held_;
};

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_DEVICES_RESIDENTS_H_

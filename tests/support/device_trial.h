// SPDX-License-Identifier: Apache-2.0
// One kernel of a device with memory of its own: inputs are copied there, results back.
#ifndef ONWARD_TESTS_SUPPORT_DEVICE_TRIAL_H_
#define ONWARD_TESTS_SUPPORT_DEVICE_TRIAL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/device.h"
#include "core/device/plugin.h"
#include "tests/support/kernel_trial.h"

namespace onward {

// The device of a plugin (core/device/plugin.h), which stays open.
absl::StatusOr<std::unique_ptr<const Device>> OpenDevice(const std::string& library,
                                                         const DeviceOptions& options);

// A copy in new memory of the device.
absl::StatusOr<Tensor> ToDevice(const Device& device, Stream& stream, const Tensor& tensor);
absl::StatusOr<Tensor> FromDevice(Stream& stream, const Tensor& tensor);
// New memory, whatever it holds.
absl::StatusOr<Tensor> NewOnDevice(const Device& device, DType dtype, const Shape& shape);

class DeviceTrial {
 public:
  DeviceTrial(const Device& device, Stream& stream, const KernelTable::Entry& entry,
              const KernelInputs& inputs);

  // Unimplemented: not this variant.
  const absl::Status& status() const { return kernel_.status(); }
  const Kernel& kernel() const { return *kernel_; }
  absl::StatusOr<std::vector<Tensor>> Run() { return Run(-1, -1); }
  // With an output in the memory of an input.
  absl::StatusOr<std::vector<Tensor>> Run(int output, int over_input);
  // The pairs that the kernel allows and whose sizes agree.
  std::vector<std::pair<int, int>> overwrites() const;

 private:
  const Device& device_;
  Stream& stream_;
  const KernelInputs& inputs_;
  absl::StatusOr<Kernel> kernel_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_DEVICE_TRIAL_H_

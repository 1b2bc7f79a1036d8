// SPDX-License-Identifier: Apache-2.0
// One NVIDIA GPU as a device of the runtime.
#ifndef ONWARD_CORE_CUDA_DEVICE_H_
#define ONWARD_CORE_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/device/device.h"
#include "core/device/plugin.h"

namespace onward::cuda {

// FailedPrecondition, saying what is missing, where there is no driver or no such GPU.
absl::StatusOr<std::unique_ptr<const Device>> MakeDevice(const DeviceOptions& options);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_DEVICE_H_

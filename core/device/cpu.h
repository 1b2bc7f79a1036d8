// SPDX-License-Identifier: Apache-2.0
// The CPU device; its kernel table is filled by core/ops.
#ifndef ONWARD_CORE_DEVICE_CPU_H_
#define ONWARD_CORE_DEVICE_CPU_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "core/device/device.h"

namespace onward {

struct CpuOptions {
  // Leave out convolution algorithms that trade accuracy for speed (Winograd).
  bool exact_convolutions = false;
  // How many bytes a run may use in all. Zero: three quarters of the machine's memory.
  size_t memory_limit = 0;
  // Adds kernels to those of core/ops; of one operator, these are tried last. May be empty.
  std::function<void(KernelTable&)> more_kernels = nullptr;
};

// Where the CPU lacks what kernels need, the device has none and Usable() says so.
std::unique_ptr<const Device> MakeCpuDevice(const CpuOptions& options);

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_CPU_H_

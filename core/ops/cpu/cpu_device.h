// SPDX-License-Identifier: Apache-2.0
// The device behind the door (cpu.cc): code of other rooms asks for MakeCpuDevice(options).
#ifndef ONWARD_CORE_OPS_CPU_CPU_DEVICE_H_
#define ONWARD_CORE_OPS_CPU_CPU_DEVICE_H_

#include <memory>

#include "core/base/cpu_features.h"
#include "core/device/cpu.h"
#include "core/device/device.h"

namespace onward {

// The device that serves such a CPU: one without kernels where they cannot run.
std::unique_ptr<const Device> MakeCpuDevice(const CpuFeatures& cpu, const CpuOptions& options);

// Only where CheckCpu says yes: its very construction may use AVX2.
std::unique_ptr<const Device> MakeKernelDevice(const CpuOptions& options);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_CPU_DEVICE_H_

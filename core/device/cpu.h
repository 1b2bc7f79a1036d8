// SPDX-License-Identifier: Apache-2.0
// The CPU device; its kernel table is filled by core/ops.
#ifndef ONWARD_CORE_DEVICE_CPU_H_
#define ONWARD_CORE_DEVICE_CPU_H_

#include "core/device/kernel.h"

namespace onward {

// Lives for the whole process.
const Device& CpuDevice();

// For plans compiled from now on: leave out convolution algorithms that trade
// accuracy for speed (Winograd). Off by default.
void UseExactConvolutions(bool exact);
bool ExactConvolutions();

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_CPU_H_

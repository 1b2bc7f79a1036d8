// SPDX-License-Identifier: Apache-2.0
// The CPU device; its kernel table is filled by core/ops.
#ifndef ONWARD_CORE_DEVICE_CPU_H_
#define ONWARD_CORE_DEVICE_CPU_H_

#include <cstddef>

#include "core/device/kernel.h"

namespace onward {

// Lives for the whole process. Where the CPU lacks what kernels need, it has none
// and Usable() says so.
const Device& CpuDevice();

// For plans compiled from now on: leave out convolution algorithms that trade
// accuracy for speed (Winograd). Off by default.
void UseExactConvolutions(bool exact);
bool ExactConvolutions();

// For plans compiled from now on: how many bytes a run may use in all. Zero, the
// default: three quarters of the machine's memory.
void SetMemoryLimit(size_t bytes);
size_t ChosenMemoryLimit();

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_CPU_H_

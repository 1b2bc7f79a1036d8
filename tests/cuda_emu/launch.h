// SPDX-License-Identifier: Apache-2.0
// Runs a kernel or a library's work on the device whose turn it is.
#pragma once

#include <functional>
#include <string>

namespace onward::cuda_emu {

// Called by queued tasks: opens the device's memory, does the work, and in strict mode tells by
// name who wrote around an allocation.
void RunOnDevice(const std::string& name, const std::function<void()>& work);

}  // namespace onward::cuda_emu

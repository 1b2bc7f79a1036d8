// SPDX-License-Identifier: Apache-2.0
// Reads the symbol table of the program or library that a kernel is in: the names of kernels for
// messages, and where static __shared__ arrays are.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace onward::cuda_emu {

// "void Add<float>(long, float const*, float*)", or the address where nothing is known.
const std::string& KernelName(const void* kernel);

struct SharedArray {
  char* data;  // the calling thread's
  size_t bytes;
};

// All static __shared__ arrays of the module that the kernel is in, by their addresses. They are
// the function-local thread_local variables there (see device.h). The same for all its kernels.
const std::vector<SharedArray>& SharedArrays(const void* kernel);

// One number per module, the same for all kernels in it.
const void* ModuleOf(const void* kernel);

}  // namespace onward::cuda_emu

// SPDX-License-Identifier: Apache-2.0
// Runs the threads of a kernel, one block after another, each thread until it waits for others.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <functional>

namespace onward::cuda_emu {

void RunKernel(const void* kernel, dim3 grid, dim3 block, size_t shared_bytes,
               const std::function<void()>& thread);

// "block (0, 0, 0), thread (3, 0, 0)" of what runs now; empty outside of kernels.
bool InsideKernel();
void DescribePlace(char* text, size_t bytes);

}  // namespace onward::cuda_emu

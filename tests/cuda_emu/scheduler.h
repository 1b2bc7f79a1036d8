// SPDX-License-Identifier: Apache-2.0
// Runs the threads of a kernel, one block after another, each thread until it waits for others.
#pragma once

#include <cstddef>

namespace onward::cuda_emu {

struct KernelCall;

void RunKernel(const KernelCall& call);

// "block (0, 0, 0), thread (3, 0, 0)" of what runs now; empty outside of kernels.
bool InsideKernel();
void DescribePlace(char* text, size_t bytes);

}  // namespace onward::cuda_emu

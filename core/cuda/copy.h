// SPDX-License-Identifier: Apache-2.0
// Kernels that copy input 0 to output 0, byte for byte.
#ifndef ONWARD_CORE_CUDA_COPY_H_
#define ONWARD_CORE_CUDA_COPY_H_

#include <cstddef>

#include "core/cuda/call.h"
#include "core/device/kernel.h"

namespace onward::cuda {

inline Kernel CopyKernel(size_t bytes) {
  Kernel kernel;
  kernel.infallible = true;
  kernel.run = [bytes](const KernelCall& call) {
    void* const to = call.outputs[0]->raw();
    const void* const from = call.inputs[0]->raw();
    if (bytes == 0 || to == from) return absl::OkStatus();
    return StatusOf(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, StreamOf(call)),
                    "cannot copy within the GPU");
  };
  return kernel;
}

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_COPY_H_

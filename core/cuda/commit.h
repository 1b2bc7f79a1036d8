// SPDX-License-Identifier: Apache-2.0
// What decides on the GPU whether a step's assignments happen, and copies that obey.
#ifndef ONWARD_CORE_CUDA_COMMIT_H_
#define ONWARD_CORE_CUDA_COMMIT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/device/run_state.h"

namespace onward::cuda {

// Floating-point numbers by how they are stored: finite if not all bits of the exponent are set.
struct FloatFormat {
  int bytes;
  uint64_t exponent;
};

// Sets *found to 1 if an element is infinite or NaN, and leaves it otherwise.
cudaError_t FindInfinite(const void* data, int64_t elements, FloatFormat format, uint32_t* found,
                         cudaStream_t stream);

// As Stream::SetStop and Stream::CopyUnless.
cudaError_t SetStop(const uint32_t* words, int count, const Fault* fault, uint32_t* stop,
                    cudaStream_t stream);
cudaError_t CopyUnless(const uint32_t* stop, void* to, const void* from, size_t bytes,
                       cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_COMMIT_H_

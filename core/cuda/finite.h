// SPDX-License-Identifier: Apache-2.0
// Whether numbers on the GPU are finite.
#ifndef ONWARD_CORE_CUDA_FINITE_H_
#define ONWARD_CORE_CUDA_FINITE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace onward::cuda {

// Floating-point numbers by how they are stored: finite if not all bits of the exponent are set.
struct FloatFormat {
  int bytes;
  uint64_t exponent;
};

// Sets *found to 1 if an element is infinite or NaN, and leaves it otherwise.
cudaError_t LaunchFindInfinite(const void* data, int64_t elements, FloatFormat format, int* found,
                               cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_FINITE_H_

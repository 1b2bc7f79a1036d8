// SPDX-License-Identifier: Apache-2.0
// From the bytes of an element to a type of that width.
#ifndef ONWARD_CORE_CUDA_MOVEMENT_WIDTH_H_
#define ONWARD_CORE_CUDA_MOVEMENT_WIDTH_H_

#include <cstdint>

#include "core/cuda/launch.h"

namespace onward::cuda {

// Calls f with a zero of the type.
template <typename F>
cudaError_t ForWidth(int bytes, const F& f) {
  switch (bytes) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    case 16: return f(uint4{});
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_MOVEMENT_WIDTH_H_

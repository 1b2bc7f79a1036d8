// SPDX-License-Identifier: Apache-2.0
// Where an element of a dense tensor is in each dimension, for device code.
#ifndef ONWARD_CORE_CUDA_POSITION_H_
#define ONWARD_CORE_CUDA_POSITION_H_

#include <cstdint>

#include "core/cuda/launch.h"

namespace onward::cuda {

template <int kMaxRank>
struct Position {
  int64_t index[kMaxRank];

  // `elements` of the whole tensor: divisions of 32 bits are much faster, where they will do.
  __device__ Position(const int64_t* dims, int rank, int64_t elements, int64_t element) {
    const bool small = elements <= UINT32_MAX;
#pragma unroll
    for (int d = kMaxRank - 1; d >= 0; --d) {
      index[d] = 0;
      if (d >= rank) continue;
      if (d == 0) {
        index[d] = element;
      } else if (small) {
        const uint32_t size = static_cast<uint32_t>(dims[d]);
        const uint32_t rest = static_cast<uint32_t>(element);
        index[d] = rest % size;
        element = rest / size;
      } else {
        index[d] = element % dims[d];
        element /= dims[d];
      }
    }
  }

  __device__ int64_t Offset(const int64_t* strides, int rank) const {
    int64_t offset = 0;
#pragma unroll
    for (int d = 0; d < kMaxRank; ++d) {
      if (d < rank) offset += index[d] * strides[d];
    }
    return offset;
  }
};

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_POSITION_H_

// SPDX-License-Identifier: Apache-2.0
// Grids for kernels that walk over independent elements:
//
//   for (int64_t i = FirstElement(); i < n; i += ElementStep()) ...
#ifndef ONWARD_CORE_CUDA_GRID_H_
#define ONWARD_CORE_CUDA_GRID_H_

#include <cstdint>

#include "core/cuda/launch.h"

namespace onward::cuda {

inline constexpr int kThreadsPerBlock = 256;
// More blocks than any GPU runs at a time; the rest is done by the loops.
inline constexpr int64_t kMaxBlocks = 4096;

// n > 0: a launch without blocks is an error.
inline Geometry LinearGrid(int64_t n, int threads = kThreadsPerBlock) {
  const int64_t whole_warps = (n + 31) / 32 * 32;
  const int64_t block = whole_warps < threads ? whole_warps : threads;
  const int64_t blocks = (n + block - 1) / block;
  return {dim3(static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks)),
          dim3(static_cast<unsigned>(block))};
}

__device__ inline int64_t FirstElement() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t ElementStep() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_GRID_H_

// SPDX-License-Identifier: Apache-2.0
// Positions in memory as a kernel's parameter.
#ifndef ONWARD_CORE_CUDA_STRIDED_H_
#define ONWARD_CORE_CUDA_STRIDED_H_

#include <cstdint>

namespace onward::cuda {

// Positions; position i counts the last dimension fastest.
struct StridedGrid {
  static constexpr int kMostDims = 8;
  int rank = 0;
  int64_t dims[kMostDims] = {};
  int64_t strides[kMostDims] = {};
};

// A tensor seen as [outer, n, inner].
struct AxisRows {
  int64_t outer = 1, n = 1, inner = 1;
};

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_STRIDED_H_

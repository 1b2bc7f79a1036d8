// SPDX-License-Identifier: Apache-2.0
// Copies of a strided view into dense memory, for elements of 1, 2, 4, 8 or 16 bytes: what
// Transpose, Slice, Expand, Tile, Concat and Split are.
#ifndef ONWARD_CORE_CUDA_MOVEMENT_STRIDED_H_
#define ONWARD_CORE_CUDA_MOVEMENT_STRIDED_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace onward::cuda {

inline constexpr int kMaxCopyRank = 8;

// The destination is dense and row-major in dims; the source is read at offset + sum of
// index * stride, in elements. Strides may be zero or negative.
struct StridedView {
  int64_t elements = 0;
  int64_t offset = 0;
  int rank = 0;
  int64_t dims[kMaxCopyRank] = {};
  int64_t strides[kMaxCopyRank] = {};
};

cudaError_t LaunchStridedCopy(const StridedView& view, int element_bytes, const void* from,
                              void* to, cudaStream_t stream);

// rows times `length` elements, each row `step` elements after the last.
struct Rows {
  int64_t rows, length, from_step, to_step;
};

cudaError_t LaunchCopyRows(const Rows& rows, int element_bytes, const void* from, void* to,
                           cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_MOVEMENT_STRIDED_H_

// SPDX-License-Identifier: Apache-2.0
// Elements that follow from where they are: one value, a diagonal, a triangle, a range.
#ifndef ONWARD_CORE_CUDA_MOVEMENT_FILL_H_
#define ONWARD_CORE_CUDA_MOVEMENT_FILL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace onward::cuda {

// One element, in the first of these bytes.
struct Element {
  uint64_t words[2] = {0, 0};
};

cudaError_t LaunchFill(int64_t elements, int element_bytes, const Element& value, void* to,
                       cudaStream_t stream);
// `value` where column - row = k, else 0.
cudaError_t LaunchEye(int64_t rows, int64_t columns, int64_t k, int element_bytes,
                      const Element& value, void* to, cudaStream_t stream);

// Matrices of which one triangle is kept: column - row >= k (upper) or <= k.
struct Triangle {
  int64_t elements, rows, columns;
  int64_t k;
  const int64_t* k_at;  // on the device; null: k is the one
  bool upper;
};
// `to` may be `from`.
cudaError_t LaunchTriangle(const Triangle& triangle, int element_bytes, const void* from, void* to,
                           cudaStream_t stream);

enum class RangeType { kFloat, kDouble, kHalf, kBFloat16, kInt16, kInt32, kInt64 };
// start + i * delta, in float, double or wrapping integers.
struct Range {
  int64_t elements;
  RangeType type;
  double start, delta;
  int64_t integer_start, integer_delta;
};
cudaError_t LaunchRange(const Range& range, void* to, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_MOVEMENT_FILL_H_

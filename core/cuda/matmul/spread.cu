// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/matmul/spread.h"
#include "core/cuda/types.cuh"

namespace onward::cuda {
namespace {

template <class T>
__global__ void Spread(const T* c, int64_t c_row, int64_t c_column, Compute<T> scale,
                       int64_t elements, int64_t n, T* y) {
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    const T value = c[at / n * c_row + at % n * c_column];
    y[at] = scale == Compute<T>(1) ? value : Write<T>(scale * Read(value));
  }
}

}  // namespace

cudaError_t SpreadAddend(DType dtype, const void* c, int64_t c_row, int64_t c_column, double scale,
                         int64_t m, int64_t n, void* y, cudaStream_t stream) {
  if (m * n == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(Spread<T>, LinearGrid(m * n), stream, static_cast<const T*>(c), c_row, c_column,
                  static_cast<Compute<T>>(scale), m * n, n, static_cast<T*>(y));
  });
}

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// The addend of Gemm, broadcast to the result.
#ifndef ONWARD_CORE_CUDA_MATMUL_SPREAD_H_
#define ONWARD_CORE_CUDA_MATMUL_SPREAD_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/base/dtype.h"

namespace onward::cuda {

// y[i, j] = scale * c[i * c_row + j * c_column] for the m rows and n columns of y.
cudaError_t SpreadAddend(DType dtype, const void* c, int64_t c_row, int64_t c_column, double scale,
                         int64_t m, int64_t n, void* y, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_MATMUL_SPREAD_H_

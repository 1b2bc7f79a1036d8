// SPDX-License-Identifier: Apache-2.0
// The pools on the device. A plane is one channel of one image; all results are one thread's or one
// block's work in a fixed order. cuDNN's pools are not used: they drop NaN and break ties their own
// way.
#ifndef ONWARD_CORE_CUDA_POOL_KERNELS_H_
#define ONWARD_CORE_CUDA_POOL_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/base/dtype.h"

namespace onward::cuda {

// One spatial axis; a missing one has size 1 everywhere.
struct PoolAxis {
  int in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
};

// No padding between or behind the members: kernels get these bytes as a parameter.
struct PoolShape {
  int64_t planes;
  PoolAxis axes[3];
  int count_pads;  // of an average
};

// y: the first largest element of each window, where NaN is larger than anything; its place in x
// goes to `indices`, with the positions of a plane counted by columns if asked. Either may be null.
cudaError_t MaxPool(DType dtype, const PoolShape& pool, const void* x, void* y, int64_t* indices,
                    bool column_major, cudaStream_t stream);
// dx: the sum of dy of the windows that an element won. `winners` has an int per element of dy.
cudaError_t MaxPoolGrad(DType dtype, const PoolShape& pool, const void* dy, const void* x, void* dx,
                        int* winners, cudaStream_t stream);
cudaError_t AveragePool(DType dtype, const PoolShape& pool, const void* x, void* y,
                        cudaStream_t stream);
cudaError_t AveragePoolGrad(DType dtype, const PoolShape& pool, const void* dy, void* dx,
                            cudaStream_t stream);
// y = (sum |x|^p)^(1/p)
cudaError_t LpPool(DType dtype, const PoolShape& pool, double p, const void* x, void* y,
                   cudaStream_t stream);

// One number per plane.
cudaError_t GlobalAveragePool(DType dtype, int64_t planes, int64_t positions, const void* x,
                              void* y, cudaStream_t stream);
cudaError_t GlobalMaxPool(DType dtype, int64_t planes, int64_t positions, const void* x, void* y,
                          cudaStream_t stream);
cudaError_t GlobalLpPool(DType dtype, int64_t planes, int64_t positions, double p, const void* x,
                         void* y, cudaStream_t stream);
// dx = dy / positions throughout the plane.
cudaError_t GlobalAveragePoolGrad(DType dtype, int64_t planes, int64_t positions, const void* dy,
                                  void* dx, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_POOL_KERNELS_H_

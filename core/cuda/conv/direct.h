// SPDX-License-Identifier: Apache-2.0
// Convolutions by own kernels, which take any pads: a thread per element of the result (forward,
// data) or a block per element (weights). They serve what cuDNN does not, and depthwise
// convolutions, where an element needs a few products only.
#ifndef ONWARD_CORE_CUDA_CONV_DIRECT_H_
#define ONWARD_CORE_CUDA_CONV_DIRECT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/base/dtype.h"

namespace onward::cuda {

// One spatial axis; a missing one has size 1 everywhere.
struct ConvAxis {
  int in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
};

// x [batch, groups * in_channels, in...], w [groups * out_channels, in_channels, kernel...],
// y [batch, groups * out_channels, out...].
struct DirectConv {
  int64_t batch, groups, in_channels, out_channels;  // channels of a group
  ConvAxis axes[3];
};

// y = conv(x, w) + bias; bias may be null.
cudaError_t ConvForward(DType dtype, const DirectConv& conv, const void* x, const void* w,
                        const void* bias, void* y, cudaStream_t stream);
// dx = the gradient by x + bias (per channel of x, may be null).
cudaError_t ConvData(DType dtype, const DirectConv& conv, const void* dy, const void* w,
                     const void* bias, void* dx, cudaStream_t stream);
cudaError_t ConvWeights(DType dtype, const DirectConv& conv, const void* dy, const void* x,
                        void* dw, cudaStream_t stream);

// y [batch, channels, positions] = bias[channel].
cudaError_t FillChannels(DType dtype, const void* bias, int64_t batch, int64_t channels,
                         int64_t positions, void* y, cudaStream_t stream);
// sums[channel] = sum of y over batch and positions.
cudaError_t SumChannels(DType dtype, const void* y, int64_t batch, int64_t channels,
                        int64_t positions, void* sums, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_CONV_DIRECT_H_

// SPDX-License-Identifier: Apache-2.0
// Launches of the norm family: softmax and the normalisations, with their gradients.
#ifndef ONWARD_CORE_CUDA_NORM_NORM_H_
#define ONWARD_CORE_CUDA_NORM_NORM_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/cuda/strided.h"

namespace onward::cuda {

enum class SoftmaxKind { kSoftmax, kLogSoftmax, kHardmax };
cudaError_t Softmax(SoftmaxKind kind, DType dtype, const AxisRows& rows, const void* x, void* y,
                    cudaStream_t stream);
cudaError_t SoftmaxGrad(bool log, DType dtype, const AxisRows& rows, const void* dy, const void* y,
                        void* dx, cudaStream_t stream);
// y = x / norm along the axis; p is 1 or 2.
cudaError_t LpNorm(int p, DType dtype, const AxisRows& rows, const void* x, void* y,
                   cudaStream_t stream);

// A scale or bias that is broadcast to X: where element i of X, counted over all rows, finds its
// number. `per_element`: at i modulo the length of a row.
struct RowParameter {
  const void* data = nullptr;
  bool per_element = true;
  StridedGrid grid;
};

struct LayerNormCall {
  bool rms = false;
  int64_t rows = 0, length = 0;
  double epsilon = 0;
  DType dtype = DType::kFloat, stats_dtype = DType::kFloat;  // float or double
  const void* x = nullptr;
  RowParameter scale, bias;
  void* y = nullptr;
  void* mean = nullptr;
  void* inverse_deviation = nullptr;
};
cudaError_t LayerNorm(const LayerNormCall& call, cudaStream_t stream);

struct LayerNormGradCall {
  int64_t rows = 0, length = 0;
  double epsilon = 0;
  DType dtype = DType::kFloat;
  const void* dy = nullptr;
  const void* x = nullptr;
  const void* scale = nullptr;
  void* dx = nullptr;
  void* dscale = nullptr;
  void* dbias = nullptr;
};
size_t LayerNormGradWorkspace(int64_t rows, int64_t length);
cudaError_t LayerNormGrad(const LayerNormGradCall& call, void* workspace, cudaStream_t stream);

// Rows are groups of channels within an instance.
struct GroupNormCall {
  int64_t instances = 0, groups = 0, group_channels = 0, plane = 0;
  double epsilon = 0;
  DType dtype = DType::kFloat;
  const void* x = nullptr;
  const void* scale = nullptr;
  const void* bias = nullptr;
  void* y = nullptr;
};
cudaError_t GroupNorm(const GroupNormCall& call, cudaStream_t stream);

struct LrnCall {
  int64_t batch = 0, channels = 0, plane = 0, size = 1;
  double alpha = 0, beta = 0, bias = 0;
  DType dtype = DType::kFloat;
  const void* x = nullptr;
  void* y = nullptr;
};
cudaError_t Lrn(const LrnCall& call, cudaStream_t stream);

// X as [outer, channels, inner]; how the sums over a channel's pixels are dealt out is as in
// ReduceWork.
struct ChannelWork {
  int64_t outer = 1, channels = 1, inner = 1;
  int64_t pixels = 1;  // outer * inner
  int columns = 1, rows = 1;
  int64_t pieces = 1;

  void DealOut();
};

// One number per channel in a type of its own.
struct ChannelVector {
  const void* data = nullptr;
  DType dtype = DType::kFloat;
};

struct BatchNormCall {
  ChannelWork work;
  bool training = false;
  double epsilon = 0, momentum = 0;
  // What follows: z is added where it is there, then the result stays within bounds.
  bool bounded = false;
  double low = 0, high = 0;
  DType dtype = DType::kFloat;
  const void* x = nullptr;
  const void* z = nullptr;
  ChannelVector scale, bias, mean, var;
  void* y = nullptr;
  void* running_mean = nullptr;  // in the types of mean and var
  void* running_var = nullptr;
  void* table = nullptr;  // rows of means, factors, shifts
};
struct BatchNormGradCall {
  ChannelWork work;
  double epsilon = 0;
  // dY counts where the activation's input, worked out again by the table, lay within bounds.
  bool bounded = false;
  double low = 0, high = 0;
  const void* table = nullptr;
  DType dtype = DType::kFloat;
  const void* dy = nullptr;
  const void* x = nullptr;
  ChannelVector scale;
  void* dx = nullptr;
  void* dscale = nullptr;
  void* dbias = nullptr;
  DType dscale_dtype = DType::kFloat, dbias_dtype = DType::kFloat;
};
size_t BatchNormWorkspace(const ChannelWork& work);
cudaError_t BatchNorm(const BatchNormCall& call, void* workspace, cudaStream_t stream);
cudaError_t BatchNormGrad(const BatchNormGradCall& call, void* workspace, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_NORM_NORM_H_

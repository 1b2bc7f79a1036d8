// SPDX-License-Identifier: Apache-2.0
// LayerNormalization, RMSNormalization, GroupNormalization, InstanceNormalization and LRN.
#include "core/cuda/norm/moments.cuh"
#include "core/cuda/norm/norm.h"
#include "core/cuda/number.cuh"

namespace onward::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
__device__ Compute<T> ParameterAt(const RowParameter& p, int64_t at, int64_t i) {
  return Read(static_cast<const T*>(p.data)[p.per_element ? i : OffsetAt(p.grid, at + i)]);
}

template <class T>
__global__ void LayerNormKernel(LayerNormCall call) {
  using C = Compute<T>;
  __shared__ C buffers[2][kWarp];
  BlockFold<C> fold(buffers);
  const T* x = static_cast<const T*>(call.x);
  T* y = static_cast<T*>(call.y);
  for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const int64_t at = row * call.length;
    const RowMoments<C> m = call.rms ? RootMeanSquareOfRow(x + at, call.length, call.epsilon, fold)
                                     : MomentsOfRow(x + at, call.length, call.epsilon, fold);
    if (threadIdx.x == 0) {
      PutNumber(call.mean, call.stats_dtype, row, static_cast<double>(m.mean) + m.rest);
      PutNumber(call.inverse_deviation, call.stats_dtype, row, m.inverse_deviation);
    }
    if (y == nullptr) continue;
    for (int64_t i = threadIdx.x; i < call.length; i += blockDim.x) {
      C value = m.Normal(Read(x[at + i])) * ParameterAt<T>(call.scale, at, i);
      if (call.bias.data != nullptr) value += ParameterAt<T>(call.bias, at, i);
      y[at + i] = Write<T>(value);
    }
  }
}

template <class T>
__global__ void GroupNormKernel(GroupNormCall call) {
  using C = Compute<T>;
  __shared__ C buffers[2][kWarp];
  BlockFold<C> fold(buffers);
  const T* x = static_cast<const T*>(call.x);
  const T* scale = static_cast<const T*>(call.scale);
  const T* bias = static_cast<const T*>(call.bias);
  T* y = static_cast<T*>(call.y);
  const int64_t length = call.group_channels * call.plane;
  for (int64_t row = blockIdx.x; row < call.instances * call.groups; row += gridDim.x) {
    const int64_t at = row * length;
    const RowMoments<C> m = MomentsOfRow(x + at, length, call.epsilon, fold);
    const int64_t first = row % call.groups * call.group_channels;
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
      const int64_t c = first + i / call.plane;
      const C factor = Read(scale[c]) * m.inverse_deviation;
      const C shift = Read(bias[c]) - m.rest * factor;
      y[at + i] = Write<T>((Read(x[at + i]) - m.mean) * factor + shift);
    }
  }
}

// y = x / (bias + alpha / size * sum(x^2 over neighbouring channels)) ^ beta
template <class T>
__global__ void LrnKernel(LrnCall call) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(call.x);
  const int64_t before = (call.size - 1) / 2, after = call.size / 2;
  const C factor = static_cast<C>(call.alpha / static_cast<double>(call.size));
  const int64_t elements = call.batch * call.channels * call.plane;
  for (int64_t i = FirstElement(); i < elements; i += ElementStep()) {
    const int64_t c = i / call.plane % call.channels;
    const int64_t first = c < before ? c : before;
    const int64_t room = call.channels - 1 - c, last = room < after ? room : after;
    C sum = 0;
    for (int64_t k = -first; k <= last; ++k) {
      const C v = Read(x[i + k * call.plane]);
      sum += v * v;
    }
    const C base = static_cast<C>(call.bias) + factor * sum;
    static_cast<T*>(call.y)[i] = Write<T>(Read(x[i]) / pow(base, static_cast<C>(call.beta)));
  }
}

}  // namespace

cudaError_t LayerNorm(const LayerNormCall& call, cudaStream_t stream) {
  if (call.rows == 0) return cudaSuccess;
  return DispatchReal(call.dtype, [&]<class T>() {
    return Launch(LayerNormKernel<T>, {dim3(GridFor(call.rows)), dim3(RowThreads(call.length))},
                  stream, call);
  });
}

cudaError_t GroupNorm(const GroupNormCall& call, cudaStream_t stream) {
  const int64_t rows = call.instances * call.groups, length = call.group_channels * call.plane;
  if (rows * length == 0) return cudaSuccess;
  return DispatchReal(call.dtype, [&]<class T>() {
    return Launch(GroupNormKernel<T>, {dim3(GridFor(rows)), dim3(RowThreads(length))}, stream,
                  call);
  });
}

cudaError_t Lrn(const LrnCall& call, cudaStream_t stream) {
  const int64_t elements = call.batch * call.channels * call.plane;
  if (elements == 0) return cudaSuccess;
  return DispatchReal(call.dtype, [&]<class T>() {
    return Launch(LrnKernel<T>, LinearGrid(elements, kThreads), stream, call);
  });
}

}  // namespace onward::cuda

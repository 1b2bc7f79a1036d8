// SPDX-License-Identifier: Apache-2.0
// Kernels that are wrong on purpose.
#include "core/cuda/launch.h"
#include "tests/cuda_emu/faulty_kernels.h"

namespace onward::cuda {
namespace {

constexpr unsigned kThreads = 128;

__global__ void FillBlindlyKernel(float* x, float value) {
  x[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void WriteAtKernel(float* x, long at) { x[at] = 1; }

__global__ void FillHiddenKernel(Hidden hidden) {
  if (threadIdx.x < hidden.n) hidden.data[threadIdx.x] = 1;
}

template <bool first, bool loop>
__global__ void TreeKernel(const float* x, float* sum) {
  __shared__ float sums[kThreads];
  sums[threadIdx.x] = x[threadIdx.x];
  if (first) __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    if (loop) __syncthreads();
  }
  if (threadIdx.x == 0) *sum = sums[0];
}

__global__ void RotateKernel(const float* x, float* out, int rounds) {
  __shared__ float values[kThreads];
  float mine = x[threadIdx.x];
  for (int round = 0; round < rounds; ++round) {
    values[threadIdx.x] = mine;
    __syncthreads();
    mine = values[(threadIdx.x + 1) % kThreads];
  }
  out[threadIdx.x] = mine;
}

__global__ void SwapKernel(const float* x, float* out) {
  __shared__ float values[32];
  values[threadIdx.x] = x[threadIdx.x];
  out[threadIdx.x] = values[threadIdx.x ^ 1];
}

__global__ void HalfBarrierKernel(float* x) {
  if (threadIdx.x < kThreads / 2) {
    __syncthreads();
  } else {
    __syncwarp();
  }
  x[threadIdx.x] = 1;
}

__global__ void ReturnBeforeBarrierKernel(float* x) {
  if (threadIdx.x >= 100) return;
  __syncthreads();
  x[threadIdx.x] = 1;
}

__global__ void TwoBarriersKernel(float* x) {
  if (threadIdx.x % 2 == 0) {
    x[threadIdx.x] = 1;
    __syncthreads();
  } else {
    __syncthreads();
    x[threadIdx.x] = 2;
  }
}

__global__ void HalfShuffleKernel(float* x) {
  float value = 1;
  if (threadIdx.x < 16) value = __shfl_xor_sync(0xffffffffu, value, 1);
  __syncthreads();
  x[threadIdx.x] = value;
}

__global__ void MaskKernel(float* x) { x[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 0); }

__global__ void ReadThroughKernel(const float* const* pointer, float* out) { *out = **pointer; }

__global__ void AllBlocksKernel(float* out) {
  if (threadIdx.x == 0) *out = static_cast<float>(blockIdx.x);
}

__global__ void EarlyKernel(int* sum, int* out) {
  atomicAdd(sum, 1);
  out[threadIdx.x] = *sum;
}

__global__ void UnwrittenKernel(float* out) {
  __shared__ float left[kThreads];
  if (threadIdx.x == 0) out[blockIdx.x] = left[5];
  __syncthreads();
  left[threadIdx.x] = 7;
}

__global__ void OverrunKernel(float* x, int n) {
  ONWARD_DYNAMIC_SHARED(float, values);
  for (int i = threadIdx.x; i <= n; i += blockDim.x) values[i] = 1;
  __syncthreads();
  x[threadIdx.x] = values[threadIdx.x % n];
}

}  // namespace

cudaError_t FillBlindly(float* x, int n, cudaStream_t stream) {
  return Launch(FillBlindlyKernel, {1, dim3(n)}, stream, x, 1);
}
cudaError_t WriteAt(float* x, long at, cudaStream_t stream) {
  return Launch(WriteAtKernel, {1, 1}, stream, x, at);
}
cudaError_t FillHidden(Hidden hidden, cudaStream_t stream) {
  return Launch(FillHiddenKernel, {1, kThreads}, stream, hidden);
}
cudaError_t SumWithoutFirstBarrier(const float* x, float* sum, cudaStream_t stream) {
  return Launch(TreeKernel<false, true>, {1, kThreads}, stream, x, sum);
}
cudaError_t SumWithoutLoopBarrier(const float* x, float* sum, cudaStream_t stream) {
  return Launch(TreeKernel<true, false>, {1, kThreads}, stream, x, sum);
}
cudaError_t RotateWithoutLastBarrier(const float* x, float* out, int rounds, cudaStream_t stream) {
  return Launch(RotateKernel, {1, kThreads}, stream, x, out, rounds);
}
cudaError_t SwapWithoutSyncwarp(const float* x, float* out, cudaStream_t stream) {
  return Launch(SwapKernel, {1, 32}, stream, x, out);
}
cudaError_t BarrierInHalfTheThreads(float* x, cudaStream_t stream) {
  return Launch(HalfBarrierKernel, {1, kThreads}, stream, x);
}
cudaError_t BarrierAfterReturn(float* x, cudaStream_t stream) {
  return Launch(ReturnBeforeBarrierKernel, {1, kThreads}, stream, x);
}
cudaError_t BarriersOfDifferentLines(float* x, cudaStream_t stream) {
  return Launch(TwoBarriersKernel, {1, kThreads}, stream, x);
}
cudaError_t ShuffleInHalfTheWarp(float* x, cudaStream_t stream) {
  return Launch(HalfShuffleKernel, {1, 32}, stream, x);
}
cudaError_t ShuffleOutsideItsMask(float* x, cudaStream_t stream) {
  return Launch(MaskKernel, {1, 32}, stream, x);
}
cudaError_t ReadThrough(const float* const* pointer, float* out, cudaStream_t stream) {
  return Launch(ReadThroughKernel, {1, 1}, stream, pointer, out);
}
cudaError_t WriteFromAllBlocks(float* out, int blocks, cudaStream_t stream) {
  return Launch(AllBlocksKernel, {dim3(blocks), kThreads}, stream, out);
}
cudaError_t ReadSumTooEarly(int* sum, int* out, cudaStream_t stream) {
  return Launch(EarlyKernel, {1, kThreads}, stream, sum, out);
}
cudaError_t ReadUnwrittenShared(float* out, int blocks, cudaStream_t stream) {
  return Launch(UnwrittenKernel, {dim3(blocks), kThreads}, stream, out);
}
cudaError_t OverrunShared(float* x, int n, cudaStream_t stream) {
  return Launch(OverrunKernel, {1, kThreads, n * sizeof(float)}, stream, x, n);
}

}  // namespace onward::cuda

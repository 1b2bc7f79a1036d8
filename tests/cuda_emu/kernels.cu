// SPDX-License-Identifier: Apache-2.0
// Kernels that are right. nvcc compiles them as well.
#include "core/cuda/launch.h"
#include "tests/cuda_emu/kernels.h"

namespace onward::cuda {
namespace {

constexpr int kThreads = 128;

dim3 GridFor(int64_t n) { return dim3(static_cast<unsigned>((n + kThreads - 1) / kThreads)); }

__device__ int64_t GlobalIndex() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

template <class T>
__global__ void AddKernel(int64_t n, const T* a, const T* b, T* out) {
  const int64_t i = GlobalIndex();
  if (i < n) out[i] = static_cast<T>(static_cast<float>(a[i]) + static_cast<float>(b[i]));
}

template <class T>
__device__ T StridedSum(int64_t n, const T* x) {
  T sum = 0;
  for (int64_t i = GlobalIndex(); i < n; i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    sum += __ldg(x + i);
  }
  return sum;
}

__global__ void TreeSumKernel(int64_t n, const float* x, float* partial) {
  __shared__ float sums[kThreads];
  sums[threadIdx.x] = StridedSum(n, x);
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}

template <class T>
__device__ T SumOfWarp(T value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, offset);
  }
  return value;
}

template <class T>
__global__ void __launch_bounds__(kThreads) WarpSumKernel(int64_t n, const T* x, T* partial) {
  ONWARD_DYNAMIC_SHARED(T, sums);
  T sum = SumOfWarp(StridedSum(n, x));
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : T(0);
    sum = SumOfWarp(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
  }
}

template <class T>
__global__ void AtomicSumKernel(int64_t n, const T* x, T* sum) {
  const int64_t i = GlobalIndex();
  if (i < n) atomicAdd(sum, x[i]);
}

__global__ void VotesKernel(int n, const int* x, Votes* votes) {
  const int i = static_cast<int>(threadIdx.x);
  const int value = i < n ? x[i] : 0;
  if (i < n) {
    atomicMax(&votes->max, value);
    atomicMin(&votes->min, value);
    int seen = atomicAdd(&votes->swapped, 0);
    for (int before = -1; before != seen;) {
      before = seen;
      seen = atomicCAS(&votes->swapped, before, before + value);
    }
  }
  const unsigned positive = __ballot_sync(0xffffffffu, value > 0);
  const int any = __any_sync(0xffffffffu, value < 0);
  const int all = __all_sync(0xffffffffu, value > 0);
  const int count = __syncthreads_count(value > 0);
  if (i == 0) {
    votes->positive = positive;
    votes->any_negative = any;
    votes->all_positive = all;
    votes->count_positive = count;
  }
}

__global__ void ShufflesKernel(int width, const int* x, int* out) {
  const unsigned i = threadIdx.x;
  const int value = x[i];
  out[i * 4 + 0] = __shfl_up_sync(0xffffffffu, value, 1, width);
  out[i * 4 + 1] = __shfl_down_sync(0xffffffffu, value, 1, width);
  out[i * 4 + 2] = __shfl_xor_sync(0xffffffffu, value, 1, width);
  out[i * 4 + 3] = __shfl_sync(0xffffffffu, value, 3, width);
}

constexpr int kTile = 16;

__global__ void TransposeKernel(unsigned rows, unsigned columns, const float* x, float* out) {
  __shared__ float tile[kTile][kTile + 1];
  unsigned column = blockIdx.x * kTile + threadIdx.x, row = blockIdx.y * kTile + threadIdx.y;
  if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = x[row * columns + column];
  __syncthreads();
  column = blockIdx.y * kTile + threadIdx.x, row = blockIdx.x * kTile + threadIdx.y;
  if (row < columns && column < rows) out[row * rows + column] = tile[threadIdx.x][threadIdx.y];
}

__global__ void ReverseKernel(int n, const float* x, float* out) {
  ONWARD_DYNAMIC_SHARED(float, values);
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = values[n - 1 - i];
}

__global__ void AddToAllKernel(Pointers pointers, int64_t n, float y) {
  float* data = pointers.data[blockIdx.y];
  const int64_t i = GlobalIndex();
  if (data != nullptr && i < n) data[i] += y;
}

__global__ void SumSizesKernel(Sizes sizes, int* sum) {
  *sum = sizes.sizes[0] + sizes.sizes[1] + sizes.sizes[2] + sizes.sizes[3];
}

__global__ void NothingKernel() {}

}  // namespace

cudaError_t Add(int64_t n, const float* a, const float* b, float* out, cudaStream_t stream) {
  return Launch(AddKernel<float>, {GridFor(n), kThreads}, stream, n, a, b, out);
}
cudaError_t Add(int64_t n, const __half* a, const __half* b, __half* out, cudaStream_t stream) {
  return Launch(AddKernel<__half>, {GridFor(n), kThreads}, stream, n, a, b, out);
}
cudaError_t Add(int64_t n, const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out,
                cudaStream_t stream) {
  return Launch(AddKernel<__nv_bfloat16>, {GridFor(n), kThreads}, stream, n, a, b, out);
}

cudaError_t TreeSum(int blocks, int64_t n, const float* x, float* partial, cudaStream_t stream) {
  return Launch(TreeSumKernel, {dim3(blocks), kThreads}, stream, n, x, partial);
}

cudaError_t WarpSum(int blocks, int64_t n, const float* x, float* partial, cudaStream_t stream) {
  return Launch(WarpSumKernel<float>, {dim3(blocks), kThreads, 32 * sizeof(float)}, stream, n, x,
                partial);
}
cudaError_t WarpSum(int blocks, int64_t n, const double* x, double* partial, cudaStream_t stream) {
  return Launch(WarpSumKernel<double>, {dim3(blocks), kThreads, 32 * sizeof(double)}, stream, n, x,
                partial);
}

cudaError_t AtomicSum(int64_t n, const float* x, float* sum, cudaStream_t stream) {
  return Launch(AtomicSumKernel<float>, {GridFor(n), kThreads}, stream, n, x, sum);
}
cudaError_t AtomicSum(int64_t n, const double* x, double* sum, cudaStream_t stream) {
  return Launch(AtomicSumKernel<double>, {GridFor(n), kThreads}, stream, n, x, sum);
}
cudaError_t AtomicSum(int64_t n, const int* x, int* sum, cudaStream_t stream) {
  return Launch(AtomicSumKernel<int>, {GridFor(n), kThreads}, stream, n, x, sum);
}

cudaError_t CollectVotes(int n, const int* x, Votes* votes, cudaStream_t stream) {
  return Launch(VotesKernel, {1, 64}, stream, n, x, votes);
}

cudaError_t Shuffles(int threads, int width, const int* x, int* out, cudaStream_t stream) {
  return Launch(ShufflesKernel, {1, dim3(threads)}, stream, width, x, out);
}

cudaError_t Transpose(int rows, int columns, const float* x, float* out, cudaStream_t stream) {
  const dim3 grid((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  return Launch(TransposeKernel, {grid, dim3(kTile, kTile)}, stream, rows, columns, x, out);
}

cudaError_t Reverse(int n, const float* x, float* out, cudaStream_t stream) {
  return Launch(ReverseKernel, {1, kThreads, n * sizeof(float)}, stream, n, x, out);
}
cudaError_t AllowReverse(int n) { return AllowSharedBytes(ReverseKernel, n * sizeof(float)); }

cudaError_t AddToAll(Pointers pointers, int64_t n, float y, cudaStream_t stream) {
  const dim3 grid(GridFor(n).x, 4);
  return Launch(AddToAllKernel, {grid, kThreads}, stream, pointers, n, y);
}

cudaError_t SumSizes(Sizes sizes, int* sum, cudaStream_t stream) {
  return Launch(SumSizesKernel, {1, 1}, stream, sizes, sum);
}

cudaError_t Nothing(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  return Launch(NothingKernel, {grid, block, shared_bytes}, stream);
}

}  // namespace onward::cuda

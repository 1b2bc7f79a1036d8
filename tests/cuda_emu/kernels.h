// SPDX-License-Identifier: Apache-2.0
// Kernels that are right, each using another part of CUDA, for the tests of the emulator.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace onward::cuda {

// out = a + b, computed in float.
cudaError_t Add(int64_t n, const float* a, const float* b, float* out, cudaStream_t stream);
cudaError_t Add(int64_t n, const __half* a, const __half* b, __half* out, cudaStream_t stream);
cudaError_t Add(int64_t n, const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out,
                cudaStream_t stream);

// partial[block] = the block's part of the sum; a tree over a static shared array.
cudaError_t TreeSum(int blocks, int64_t n, const float* x, float* partial, cudaStream_t stream);
// The same with warp shuffles and dynamic shared memory.
cudaError_t WarpSum(int blocks, int64_t n, const float* x, float* partial, cudaStream_t stream);
cudaError_t WarpSum(int blocks, int64_t n, const double* x, double* partial, cudaStream_t stream);
// Adds up into *sum by atomics.
cudaError_t AtomicSum(int64_t n, const float* x, float* sum, cudaStream_t stream);
cudaError_t AtomicSum(int64_t n, const double* x, double* sum, cudaStream_t stream);
cudaError_t AtomicSum(int64_t n, const int* x, int* sum, cudaStream_t stream);

// out[0..6]: max, min, exchanged sum, or, and, compare-and-swap count of x; warp votes over x > 0.
struct Votes {
  int max, min, swapped;
  unsigned positive;  // ballot of the first warp
  int any_negative, all_positive, count_positive;
};
cudaError_t CollectVotes(int n, const int* x, Votes* votes, cudaStream_t stream);

// Shuffles of every kind of one warp: out[lane * 4 + {0, 1, 2, 3}] = up 1, down 1, xor 1, lane 3,
// in groups of `width` lanes.
cudaError_t Shuffles(int threads, int width, const int* x, int* out, cudaStream_t stream);

// Transposes by tiles in two-dimensional blocks.
cudaError_t Transpose(int rows, int columns, const float* x, float* out, cudaStream_t stream);
// Reverses n floats through dynamic shared memory of n floats.
cudaError_t Reverse(int n, const float* x, float* out, cudaStream_t stream);
cudaError_t AllowReverse(int n);

// Adds y[i] to each tensor of a list that is passed by value.
struct Pointers {
  float* data[4] = {};
  int64_t bytes = 0;
};
cudaError_t AddToAll(Pointers pointers, int64_t n, float y, cudaStream_t stream);

// *sum = what the sizes add up to.
struct Sizes {
  int sizes[4];
};
cudaError_t SumSizes(Sizes sizes, int* sum, cudaStream_t stream);

// grid.x * block.x threads with no work.
cudaError_t Nothing(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);

}  // namespace onward::cuda

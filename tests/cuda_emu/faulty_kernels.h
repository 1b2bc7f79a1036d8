// SPDX-License-Identifier: Apache-2.0
// Kernels that are wrong, each in one way that the emulator has to catch.
#pragma once

#include <cuda_runtime_api.h>

namespace onward::cuda {

// Writes x[0..n) = 1 with no look at how long x is.
cudaError_t FillBlindly(float* x, int n, cudaStream_t stream);
// Writes x[at] = 1, wherever that is.
cudaError_t WriteAt(float* x, long at, cudaStream_t stream);
// Reads and writes through a pointer in a struct.
struct Hidden {
  long n;
  float* data;
};
cudaError_t FillHidden(Hidden hidden, cudaStream_t stream);

// Tree sums of 128 values that lack one barrier: after the first write, in the loop.
cudaError_t SumWithoutFirstBarrier(const float* x, float* sum, cudaStream_t stream);
cudaError_t SumWithoutLoopBarrier(const float* x, float* sum, cudaStream_t stream);
// The next round overwrites what slow threads have not read yet.
cudaError_t RotateWithoutLastBarrier(const float* x, float* out, int rounds, cudaStream_t stream);
// Exchanges neighbours within a warp through shared memory, with no __syncwarp.
cudaError_t SwapWithoutSyncwarp(const float* x, float* out, cudaStream_t stream);

cudaError_t BarrierInHalfTheThreads(float* x, cudaStream_t stream);
cudaError_t BarrierAfterReturn(float* x, cudaStream_t stream);
cudaError_t BarriersOfDifferentLines(float* x, cudaStream_t stream);
cudaError_t ShuffleInHalfTheWarp(float* x, cudaStream_t stream);
cudaError_t ShuffleOutsideItsMask(float* x, cudaStream_t stream);

// *out = **pointer, where nothing was told of the inner pointer.
cudaError_t ReadThrough(const float* const* pointer, float* out, cudaStream_t stream);
// Every block writes to the same place.
cudaError_t WriteFromAllBlocks(float* out, int blocks, cudaStream_t stream);
// Adds up by atomics, and reads the sum before the others have added.
cudaError_t ReadSumTooEarly(int* sum, int* out, cudaStream_t stream);

// out[block] = what the block finds in shared memory that it never wrote.
cudaError_t ReadUnwrittenShared(float* out, int blocks, cudaStream_t stream);
// Writes one float past its dynamic shared memory.
cudaError_t OverrunShared(float* x, int n, cudaStream_t stream);

}  // namespace onward::cuda

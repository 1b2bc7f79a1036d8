// SPDX-License-Identifier: Apache-2.0
// Folds over the threads of a block. The order depends on the block's size alone, so the bits of a
// sum do not change from run to run.
#pragma once

#include "core/cuda/types.cuh"

namespace onward::cuda {

inline constexpr int kWarp = 32;

struct PlusOp {
  template <class T>
  static __device__ T Join(T a, T b) {
    return a + b;
  }
};
// NaN is not passed on, as in the row maximum of the CPU.
struct LargestOp {
  template <class T>
  static __device__ T Join(T a, T b) {
    return a > b || b != b ? a : b;
  }
};

// One fold after the other by a one-dimensional block of whole warps, each with one barrier: two
// buffers take turns, so that nobody writes where others still read.
template <class T>
class BlockFold {
 public:
  using Buffers = T[2][kWarp];

  __device__ explicit BlockFold(Buffers& buffers) : buffers_(buffers) {}

  // Every thread gets the fold of all values.
  template <class Op>
  __device__ T Fold(T value, T neutral) {
    const int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    T* shared = buffers_[turn_];
    turn_ ^= 1;
    value = FoldWarp<Op>(value);
    if (lane == 0) shared[threadIdx.x / kWarp] = value;
    __syncthreads();
    return FoldWarp<Op>(lane < warps ? shared[lane] : neutral);
  }
  __device__ T Sum(T value) { return Fold<PlusOp>(value, T(0)); }
  __device__ T Largest(T value) { return Fold<LargestOp>(value, -Infinity<T>()); }

 private:
  template <class Op>
  static __device__ T FoldWarp(T value) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      value = Op::Join(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
  }

  Buffers& buffers_;
  int turn_ = 0;
};

// Threads of a block that works on rows of n elements.
inline unsigned RowThreads(int64_t n) {
  unsigned threads = kWarp;
  while (threads < 256 && threads < n) threads *= 2;
  return threads;
}

}  // namespace onward::cuda

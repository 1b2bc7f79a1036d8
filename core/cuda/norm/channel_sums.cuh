// SPDX-License-Identifier: Apache-2.0
// Sums over the pixels of each channel of [outer, channels, inner].
#pragma once

#include "core/cuda/norm/norm.h"
#include "core/cuda/types.cuh"

namespace onward::cuda {

inline constexpr int kChannelThreads = 256;

// A term has kSums, its element type T, and Add(offset, channel, sums), which adds to sums in
// Compute<T>. Totals are [channels, pieces, kSums].
template <class Term>
__global__ void ChannelSums(ChannelWork work, Term term, double* totals) {
  using C = Compute<typename Term::T>;
  constexpr int kSums = Term::kSums;
  constexpr int kSteps = 32;  // pixels added in C before they go to double
  __shared__ double shared[kSums][kChannelThreads];
  const int column = threadIdx.x % work.columns, row = threadIdx.x / work.columns;
  const int64_t piece = blockIdx.y, pixels = work.pixels;
  const int64_t end = pixels * (piece + 1) / work.pieces;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * work.columns;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * work.columns; first < work.channels;
       first += stride) {
    const int64_t channel = first + column;
    double sums[kSums] = {};
    int64_t pixel = pixels * piece / work.pieces + row;
    while (channel < work.channels && pixel < end) {
      C lanes[kSums] = {};
      for (int k = 0; k < kSteps && pixel < end; ++k, pixel += work.rows) {
        const int64_t plane = pixel / work.inner * work.channels + channel;
        term.Add(plane * work.inner + pixel % work.inner, channel, lanes);
      }
      for (int s = 0; s < kSums; ++s) sums[s] += lanes[s];
    }
    // As in FoldKernel, one barrier a step is enough.
    for (int half = work.rows / 2; half > 0; half /= 2) {
      if (row >= half && row < 2 * half) {
        for (int s = 0; s < kSums; ++s) shared[s][threadIdx.x] = sums[s];
      }
      __syncthreads();
      if (row < half) {
        for (int s = 0; s < kSums; ++s) sums[s] += shared[s][threadIdx.x + half * work.columns];
      }
    }
    if (row == 0 && channel < work.channels) {
      for (int s = 0; s < kSums; ++s) totals[(channel * work.pieces + piece) * kSums + s] = sums[s];
    }
  }
}

// Sum s of a channel, its pieces joined in order.
template <int kSums>
__device__ double JoinedSum(const ChannelWork& work, const double* totals, int64_t channel, int s) {
  double sum = 0;
  for (int64_t p = 0; p < work.pieces; ++p) sum += totals[(channel * work.pieces + p) * kSums + s];
  return sum;
}

template <class Term>
cudaError_t RunChannelSums(const ChannelWork& work, const Term& term, double* totals,
                           cudaStream_t stream) {
  const dim3 grid(GridFor(work.channels, work.columns), static_cast<unsigned>(work.pieces));
  return Launch(ChannelSums<Term>, {grid, dim3(static_cast<unsigned>(work.columns * work.rows))},
                stream, work, term, totals);
}

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// LayerNormalizationGrad. Per row of n elements, with xh the normalised row,
// s = 1 / sqrt(variance + epsilon) and g = dy * scale:
//   dx = s * (g - mean(g) - xh * mean(g * xh))
// and over all rows dscale = sum(dy * xh), dB = sum(dy). The sums over rows come first: dx may be
// written over dy or x.
#include <algorithm>

#include "core/cuda/norm/moments.cuh"
#include "core/cuda/norm/norm.h"

namespace onward::cuda {
namespace {

constexpr int kColumns = 32, kRows = 8;  // of a block that adds up rows
constexpr int kThreads = kColumns * kRows;
constexpr int kSteps = 32;  // rows added in T before they go to double

// Moments are kept as doubles, three per row.
template <class T>
__global__ void MeasureRows(LayerNormGradCall call, double* moments) {
  using C = Compute<T>;
  __shared__ C buffers[2][kWarp];
  BlockFold<C> fold(buffers);
  for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(call.x) + row * call.length;
    const RowMoments<C> m = MomentsOfRow(x, call.length, call.epsilon, fold);
    if (threadIdx.x == 0) {
      moments[row * 3] = m.mean;
      moments[row * 3 + 1] = m.rest;
      moments[row * 3 + 2] = m.inverse_deviation;
    }
  }
}

template <class C>
__device__ RowMoments<C> StoredMoments(const double* moments, int64_t row) {
  return {static_cast<C>(moments[row * 3]), static_cast<C>(moments[row * 3 + 1]),
          static_cast<C>(moments[row * 3 + 2])};
}

// Sums over the rows of one piece (blockIdx.y), for kColumns neighbouring columns: sums is
// [pieces, 2, length].
template <class T>
__global__ void SumColumns(LayerNormGradCall call, int64_t pieces, const double* moments,
                           double* sums) {
  using C = Compute<T>;
  __shared__ double shared[2][kThreads];
  const T* dy = static_cast<const T*>(call.dy);
  const T* x = static_cast<const T*>(call.x);
  const int64_t piece = blockIdx.y;
  const int64_t end = call.rows * (piece + 1) / pieces;
  const int row = threadIdx.x / kColumns;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kColumns;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kColumns; first < call.length;
       first += stride) {
    const int64_t column = first + threadIdx.x % kColumns;
    double dscale = 0, dbias = 0;
    int64_t r = call.rows * piece / pieces + row;
    while (column < call.length && r < end) {
      C by_scale = 0, by_bias = 0;
      for (int k = 0; k < kSteps && r < end; ++k, r += kRows) {
        const int64_t at = r * call.length + column;
        const C slope = Read(dy[at]);
        by_scale += slope * StoredMoments<C>(moments, r).Normal(Read(x[at]));
        by_bias += slope;
      }
      dscale += by_scale;
      dbias += by_bias;
    }
    // As in FoldKernel, one barrier a step is enough.
    for (int half = kRows / 2; half > 0; half /= 2) {
      if (row >= half && row < 2 * half) {
        shared[0][threadIdx.x] = dscale;
        shared[1][threadIdx.x] = dbias;
      }
      __syncthreads();
      if (row < half) {
        dscale += shared[0][threadIdx.x + half * kColumns];
        dbias += shared[1][threadIdx.x + half * kColumns];
      }
    }
    if (row == 0 && column < call.length) {
      sums[piece * 2 * call.length + column] = dscale;
      sums[(piece * 2 + 1) * call.length + column] = dbias;
    }
  }
}

template <class T>
__global__ void JoinColumns(LayerNormGradCall call, int64_t pieces, const double* sums) {
  for (int64_t i = FirstElement(); i < 2 * call.length; i += ElementStep()) {
    T* to = static_cast<T*>(i < call.length ? call.dscale : call.dbias);
    if (to == nullptr) continue;
    double sum = 0;
    for (int64_t p = 0; p < pieces; ++p) sum += sums[p * 2 * call.length + i];
    to[i < call.length ? i : i - call.length] = Write<T>(sum);
  }
}

template <class T>
__global__ void GradOfRows(LayerNormGradCall call, const double* moments) {
  using C = Compute<T>;
  __shared__ C buffers[2][kWarp];
  BlockFold<C> fold(buffers);
  const T* dy = static_cast<const T*>(call.dy);
  const T* x = static_cast<const T*>(call.x);
  const T* scale = static_cast<const T*>(call.scale);
  T* dx = static_cast<T*>(call.dx);
  const C n = static_cast<C>(call.length);
  for (int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const RowMoments<C> m = StoredMoments<C>(moments, row);
    const int64_t at = row * call.length;
    C sum = 0, product = 0;
    for (int64_t i = threadIdx.x; i < call.length; i += blockDim.x) {
      const C g = Read(dy[at + i]) * Read(scale[i]);
      sum += g;
      product += g * m.Normal(Read(x[at + i]));
    }
    const C mean_g = fold.Sum(sum) / n, mean_gx = fold.Sum(product) / n;
    for (int64_t i = threadIdx.x; i < call.length; i += blockDim.x) {
      const C g = Read(dy[at + i]) * Read(scale[i]), xh = m.Normal(Read(x[at + i]));
      dx[at + i] = Write<T>(m.inverse_deviation * ((g - mean_g) - xh * mean_gx));
    }
  }
}

int64_t Pieces(int64_t rows, int64_t length) {
  constexpr int64_t kBlocks = 256, kFewRows = 64;
  const int64_t blocks = (length + kColumns - 1) / kColumns;
  const int64_t wanted = kBlocks / std::max<int64_t>(blocks, 1);
  return std::clamp<int64_t>(rows / kFewRows, 1, std::max<int64_t>(wanted, 1));
}

template <class T>
cudaError_t Run(const LayerNormGradCall& call, void* workspace, cudaStream_t stream) {
  double* moments = static_cast<double*>(workspace);
  double* sums = moments + 3 * call.rows;
  const int64_t pieces = Pieces(call.rows, call.length);
  const Geometry by_rows = {dim3(GridFor(call.rows)), dim3(RowThreads(call.length))};
  cudaError_t error = cudaSuccess;
  if (call.rows > 0) error = Launch(MeasureRows<T>, by_rows, stream, call, moments);
  if (error == cudaSuccess && (call.dscale != nullptr || call.dbias != nullptr)) {
    const dim3 grid(GridFor(call.length, kColumns), static_cast<unsigned>(pieces));
    error = Launch(SumColumns<T>, {grid, dim3(kThreads)}, stream, call, pieces, moments, sums);
    if (error == cudaSuccess) {
      error =
          Launch(JoinColumns<T>, LinearGrid(2 * call.length, kThreads), stream, call, pieces, sums);
    }
  }
  if (error != cudaSuccess || call.dx == nullptr || call.rows == 0) return error;
  return Launch(GradOfRows<T>, by_rows, stream, call, moments);
}

}  // namespace

size_t LayerNormGradWorkspace(int64_t rows, int64_t length) {
  return (3 * rows + Pieces(rows, length) * 2 * length) * sizeof(double);
}

cudaError_t LayerNormGrad(const LayerNormGradCall& call, void* workspace, cudaStream_t stream) {
  if (call.length == 0) return cudaSuccess;
  return DispatchReal(call.dtype, [&]<class T>() { return Run<T>(call, workspace, stream); });
}

}  // namespace onward::cuda

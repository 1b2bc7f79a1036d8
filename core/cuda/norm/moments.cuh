// SPDX-License-Identifier: Apache-2.0
// Mean and deviation of a row, for the kernels of normalisations.
#pragma once

#include "core/cuda/block.cuh"

namespace onward::cuda {

// The mean is kept in two parts, so that rows far from zero lose nothing: an element's deviation is
// (x - mean) - rest. With it goes 1 / sqrt(variance + epsilon).
template <class C>
struct RowMoments {
  C mean, rest, inverse_deviation;

  __device__ C Normal(C x) const { return ((x - mean) - rest) * inverse_deviation; }
};

// Of n elements, by the whole block.
template <class T>
__device__ RowMoments<Compute<T>> MomentsOfRow(const T* x, int64_t n, double epsilon,
                                               BlockFold<Compute<T>>& fold) {
  using C = Compute<T>;
  const double count = static_cast<double>(n);
  C sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += Read(x[i]);
  const C mean = static_cast<C>(fold.Sum(sum) / count);
  C rest = 0, squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const C d = Read(x[i]) - mean;
    rest += d;
    squares += d * d;
  }
  const double off = fold.Sum(rest) / count;
  // Rounding may take the variance of a constant row below zero; NaN stays.
  const double variance = fold.Sum(squares) / count - off * off;
  const double inverse = 1 / sqrt((variance < 0 ? 0 : variance) + epsilon);
  return {mean, static_cast<C>(off), static_cast<C>(inverse)};
}

// x / sqrt(mean(x^2) + epsilon) is the same with a mean of zero.
template <class T>
__device__ RowMoments<Compute<T>> RootMeanSquareOfRow(const T* x, int64_t n, double epsilon,
                                                      BlockFold<Compute<T>>& fold) {
  using C = Compute<T>;
  C squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const C v = Read(x[i]);
    squares += v * v;
  }
  const double mean = fold.Sum(squares) / static_cast<double>(n);
  return {C(0), C(0), static_cast<C>(1 / sqrt(mean + epsilon))};
}

}  // namespace onward::cuda

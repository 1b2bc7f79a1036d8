// SPDX-License-Identifier: Apache-2.0
// Labels and weights of positions, for the kernels of losses.
#pragma once

#include "core/cuda/block.cuh"
#include "core/cuda/fault.cuh"
#include "core/cuda/loss/loss.h"

namespace onward::cuda {

inline constexpr int kLossThreads = 256;
inline constexpr int64_t kMostLossPieces = 64;

// Labels as classes: what is ignored is -1, what is no class -2.
inline constexpr int64_t kIgnored = -1, kNoClass = -2;

__device__ inline int64_t LabelAt(const LossShape& shape, const LossInputs& inputs, int64_t p) {
  const int64_t label = shape.narrow_labels ? static_cast<const int32_t*>(inputs.labels)[p]
                                            : static_cast<const int64_t*>(inputs.labels)[p];
  if (shape.ignores && label == shape.ignore_index) return kIgnored;
  if (label >= 0 && label < shape.classes) return label;
  Report(inputs.fault, label, p, 0, shape.classes);
  return kNoClass;
}

// 1 without weights, 0 where it is ignored.
template <class T>
__device__ Compute<T> WeightOf(const LossInputs& inputs, int64_t label) {
  using C = Compute<T>;
  if (label == kIgnored) return C(0);
  if (label == kNoClass) return NotANumber<C>();
  return inputs.weights == nullptr ? C(1) : Read(static_cast<const T*>(inputs.weights)[label]);
}

// Where the score of class 0 is; classes are `inner` apart.
__device__ inline int64_t ScoresAt(const LossShape& shape, int64_t p) {
  return p / shape.inner * shape.classes * shape.inner + p % shape.inner;
}

// The pieces in which sums over positions are made.
inline int64_t LossPieces(const LossShape& shape) {
  const int64_t pieces = shape.batch * shape.inner / (4 * kLossThreads);
  return pieces < 1 ? 1 : pieces < kMostLossPieces ? pieces : kMostLossPieces;
}

// The sum of the weights of the positions of one piece (a block), to all its threads.
template <class T>
__device__ double PieceWeight(const LossShape& shape, const LossInputs& inputs, int64_t begin,
                              int64_t end, BlockFold<double>& fold) {
  double sum = 0;
  for (int64_t p = begin + threadIdx.x; p < end; p += blockDim.x) {
    sum += WeightOf<T>(inputs, LabelAt(shape, inputs, p));
  }
  return fold.Sum(sum);
}

}  // namespace onward::cuda

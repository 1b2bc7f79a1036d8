// SPDX-License-Identifier: Apache-2.0
// Gradients of the losses by their scores. With g the gradient of a position's loss times its
// weight (divided by the sum of weights for `mean`):
//   cross entropy: dx = g * (softmax(x) - onehot(label))
//   negative log-likelihood: dx = -g * onehot(label)
// Ignored positions get exact zeros.
#include "core/cuda/loss/labels.cuh"
#include "core/cuda/loss/loss.h"

namespace onward::cuda {
namespace {

// g of each position.
template <class T>
struct Upstream {
  const T* dl;
  bool per_position;
  const double* divisor;  // null: 1

  __device__ Compute<T> operator()(const LossInputs& inputs, int64_t p, int64_t label) const {
    using C = Compute<T>;
    const C factor = divisor == nullptr ? C(1) : static_cast<C>(1 / *divisor);
    return Read(dl[per_position ? p : 0]) * factor * WeightOf<T>(inputs, label);
  }
};

template <class T>
__global__ void WeighPieces(LossShape shape, LossInputs inputs, double* sums) {
  __shared__ double buffers[2][kWarp];
  BlockFold<double> fold(buffers);
  const int64_t positions = shape.batch * shape.inner;
  const double weight = PieceWeight<T>(shape, inputs, positions * blockIdx.x / gridDim.x,
                                       positions * (blockIdx.x + 1) / gridDim.x, fold);
  if (threadIdx.x == 0) sums[blockIdx.x] = weight;
}

__global__ void JoinWeights(int64_t pieces, const double* sums, double* divisor) {
  double sum = 0;
  for (int64_t i = 0; i < pieces; ++i) sum += sums[i];
  *divisor = sum;
}

// dx may be the scores.
template <class T>
__global__ void CrossEntropyGradOfRows(LossShape shape, LossInputs inputs, Upstream<T> upstream,
                                       T* dx) {
  using C = Compute<T>;
  __shared__ C buffers[2][kWarp];
  BlockFold<C> fold(buffers);
  const int64_t n = shape.classes;
  for (int64_t p = blockIdx.x; p < shape.batch; p += gridDim.x) {
    const T* x = static_cast<const T*>(inputs.scores) + p * n;
    const int64_t label = LabelAt(shape, inputs, p);
    C max = -Infinity<C>();
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) max = LargestOp::Join(max, Read(x[i]));
    max = fold.Largest(max);
    C sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += Exp(Read(x[i]) - max);
    sum = fold.Sum(sum);
    const C g = upstream(inputs, p, label), scale = g / sum;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const C value = Exp(Read(x[i]) - max) * scale - (i == label ? g : C(0));
      dx[p * n + i] = Write<T>(label == kIgnored ? C(0) : value);
    }
  }
}

template <class T>
__global__ void CrossEntropyGradOfColumns(LossShape shape, LossInputs inputs, Upstream<T> upstream,
                                          T* dx) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(inputs.scores);
  for (int64_t p = FirstElement(); p < shape.batch * shape.inner; p += ElementStep()) {
    const int64_t at = ScoresAt(shape, p), label = LabelAt(shape, inputs, p);
    C max = -Infinity<C>(), sum = 0;
    for (int64_t i = 0; i < shape.classes; ++i) {
      max = LargestOp::Join(max, Read(x[at + i * shape.inner]));
    }
    for (int64_t i = 0; i < shape.classes; ++i) sum += Exp(Read(x[at + i * shape.inner]) - max);
    const C g = upstream(inputs, p, label), scale = g / sum;
    for (int64_t i = 0; i < shape.classes; ++i) {
      const int64_t place = at + i * shape.inner;
      const C value = Exp(Read(x[place]) - max) * scale - (i == label ? g : C(0));
      dx[place] = Write<T>(label == kIgnored ? C(0) : value);
    }
  }
}

template <class T>
__global__ void LogLikelihoodGrads(LossShape shape, LossInputs inputs, Upstream<T> upstream,
                                   T* dx) {
  using C = Compute<T>;
  const int64_t elements = shape.batch * shape.classes * shape.inner;
  for (int64_t i = FirstElement(); i < elements; i += ElementStep()) {
    const int64_t row = i / shape.inner;
    const int64_t p = row / shape.classes * shape.inner + i % shape.inner;
    const int64_t label = LabelAt(shape, inputs, p);
    const bool own = label == row % shape.classes || label == kNoClass;
    dx[i] = Write<T>(own ? -upstream(inputs, p, label) : C(0));
  }
}

template <class T>
cudaError_t Run(const LossShape& shape, const LossInputs& inputs, const T* dl, T* dx,
                void* workspace, cudaStream_t stream) {
  const int64_t positions = shape.batch * shape.inner;
  double* divisor = static_cast<double*>(workspace);
  const bool mean = shape.reduction == LossReduction::kMean;
  if (mean) {
    const int64_t pieces = LossPieces(shape);
    cudaError_t error =
        Launch(WeighPieces<T>, {dim3(static_cast<unsigned>(pieces)), dim3(kLossThreads)}, stream,
               shape, inputs, divisor + 1);
    if (error != cudaSuccess) return error;
    error = Launch(JoinWeights, {dim3(1), dim3(1)}, stream, pieces, divisor + 1, divisor);
    if (error != cudaSuccess) return error;
  }
  const Upstream<T> upstream = {dl, shape.reduction == LossReduction::kNone,
                                mean ? divisor : nullptr};
  if (!shape.softmax) {
    const int64_t elements = positions * shape.classes;
    return Launch(LogLikelihoodGrads<T>, LinearGrid(elements, kLossThreads), stream, shape, inputs,
                  upstream, dx);
  }
  if (shape.inner == 1) {
    const Geometry by_rows = {dim3(GridFor(positions)), dim3(RowThreads(shape.classes))};
    return Launch(CrossEntropyGradOfRows<T>, by_rows, stream, shape, inputs, upstream, dx);
  }
  return Launch(CrossEntropyGradOfColumns<T>, LinearGrid(positions, kLossThreads), stream, shape,
                inputs, upstream, dx);
}

}  // namespace

cudaError_t LossGrad(const LossShape& shape, const LossInputs& inputs, const void* dl, void* dx,
                     void* workspace, cudaStream_t stream) {
  if (shape.batch * shape.inner * shape.classes == 0) return cudaSuccess;
  return DispatchReal(shape.dtype, [&]<class T>() {
    return Run(shape, inputs, static_cast<const T*>(dl), static_cast<T*>(dx), workspace, stream);
  });
}

}  // namespace onward::cuda

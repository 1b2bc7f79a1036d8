// SPDX-License-Identifier: Apache-2.0
// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss. With l a position's label and w its
// weight:
//   L = -logp[l] * w[l];  sum: sum(L);  mean: sum(L) / sum(w[l])
// so a batch in which every label is ignored has the mean 0/0 = NaN. Positions are added up in
// double, in pieces that are joined in order.
#include "core/cuda/loss/labels.cuh"
#include "core/cuda/loss/loss.h"

namespace onward::cuda {
namespace {

// L of a position from the log-probability of its class.
template <class T>
__device__ Compute<T> Weighted(const LossInputs& inputs, int64_t label, Compute<T> log_prob) {
  using C = Compute<T>;
  return label == kIgnored ? C(0) : -log_prob * WeightOf<T>(inputs, label);
}

// Either the loss is wanted per position in its own type, or in double to be added up.
template <class T>
__device__ void PutLoss(T* losses, double* terms, int64_t p, Compute<T> loss) {
  if (losses != nullptr) losses[p] = Write<T>(loss);
  if (terms != nullptr) terms[p] = loss;
}

// log_prob = (x - max) - log(sum(exp(x - max))); a block works on a position, inner = 1.
template <class T>
__global__ void CrossEntropyOfRows(LossShape shape, LossInputs inputs, T* losses, double* terms,
                                   T* log_prob) {
  using C = Compute<T>;
  __shared__ C buffers[2][kWarp];
  BlockFold<C> fold(buffers);
  const int64_t n = shape.classes;
  for (int64_t p = blockIdx.x; p < shape.batch; p += gridDim.x) {
    const T* x = static_cast<const T*>(inputs.scores) + p * n;
    C max = -Infinity<C>();
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) max = LargestOp::Join(max, Read(x[i]));
    max = fold.Largest(max);
    C sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += Exp(Read(x[i]) - max);
    const C log_sum = Log(fold.Sum(sum));
    if (threadIdx.x == 0) {
      const int64_t label = LabelAt(shape, inputs, p);
      const C own = label < 0 ? C(0) : (Read(x[label]) - max) - log_sum;
      PutLoss(losses, terms, p, Weighted<T>(inputs, label, own));
    }
    if (log_prob == nullptr) continue;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      log_prob[p * n + i] = Write<T>((Read(x[i]) - max) - log_sum);
    }
  }
}

// The same by a thread for each position.
template <class T>
__global__ void CrossEntropyOfColumns(LossShape shape, LossInputs inputs, T* losses, double* terms,
                                      T* log_prob) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(inputs.scores);
  for (int64_t p = FirstElement(); p < shape.batch * shape.inner; p += ElementStep()) {
    const int64_t at = ScoresAt(shape, p), end = at + shape.classes * shape.inner;
    C max = -Infinity<C>();
    for (int64_t i = at; i < end; i += shape.inner) max = LargestOp::Join(max, Read(x[i]));
    C sum = 0;
    for (int64_t i = at; i < end; i += shape.inner) sum += Exp(Read(x[i]) - max);
    const C log_sum = Log(sum);
    const int64_t label = LabelAt(shape, inputs, p);
    const C own = label < 0 ? C(0) : (Read(x[at + label * shape.inner]) - max) - log_sum;
    PutLoss(losses, terms, p, Weighted<T>(inputs, label, own));
    if (log_prob == nullptr) continue;
    for (int64_t i = at; i < end; i += shape.inner) {
      log_prob[i] = Write<T>((Read(x[i]) - max) - log_sum);
    }
  }
}

template <class T>
__global__ void LogLikelihoods(LossShape shape, LossInputs inputs, T* losses, double* terms) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(inputs.scores);
  for (int64_t p = FirstElement(); p < shape.batch * shape.inner; p += ElementStep()) {
    const int64_t label = LabelAt(shape, inputs, p);
    const C own = label < 0 ? C(0) : Read(x[ScoresAt(shape, p) + label * shape.inner]);
    PutLoss(losses, terms, p, Weighted<T>(inputs, label, own));
  }
}

// Per piece, which is a block, the sum of the terms and that of the weights.
template <class T>
__global__ void SumPieces(LossShape shape, LossInputs inputs, const double* terms, double* sums) {
  __shared__ double buffers[2][kWarp];
  BlockFold<double> fold(buffers);
  const int64_t positions = shape.batch * shape.inner;
  const int64_t begin = positions * blockIdx.x / gridDim.x;
  const int64_t end = positions * (blockIdx.x + 1) / gridDim.x;
  double sum = 0;
  for (int64_t p = begin + threadIdx.x; p < end; p += blockDim.x) sum += terms[p];
  sum = fold.Sum(sum);
  const double weight = PieceWeight<T>(shape, inputs, begin, end, fold);
  if (threadIdx.x == 0) {
    sums[2 * blockIdx.x] = sum;
    sums[2 * blockIdx.x + 1] = weight;
  }
}

template <class T>
__global__ void JoinLoss(int64_t pieces, bool mean, const double* sums, T* loss) {
  double sum = 0, weight = 0;
  for (int64_t i = 0; i < pieces; ++i) {
    sum += sums[2 * i];
    weight += sums[2 * i + 1];
  }
  *loss = Write<T>(mean ? sum / weight : sum);
}

template <class T>
cudaError_t Run(const LossShape& shape, const LossInputs& inputs, T* loss, T* log_prob,
                void* workspace, cudaStream_t stream) {
  const int64_t positions = shape.batch * shape.inner;
  const bool whole = shape.reduction != LossReduction::kNone;
  const bool reduced = whole && loss != nullptr;
  double* terms = reduced ? static_cast<double*>(workspace) : nullptr;
  T* losses = whole ? nullptr : loss;
  cudaError_t error = cudaSuccess;
  if (positions > 0) {
    const Geometry by_positions = LinearGrid(positions, kLossThreads);
    if (!shape.softmax) {
      error = Launch(LogLikelihoods<T>, by_positions, stream, shape, inputs, losses, terms);
    } else if (shape.inner == 1) {
      const Geometry by_rows = {dim3(GridFor(positions)), dim3(RowThreads(shape.classes))};
      error =
          Launch(CrossEntropyOfRows<T>, by_rows, stream, shape, inputs, losses, terms, log_prob);
    } else {
      error = Launch(CrossEntropyOfColumns<T>, by_positions, stream, shape, inputs, losses, terms,
                     log_prob);
    }
  }
  if (error != cudaSuccess || !reduced) return error;
  const int64_t pieces = LossPieces(shape);
  double* sums = terms + positions;
  error = Launch(SumPieces<T>, {dim3(static_cast<unsigned>(pieces)), dim3(kLossThreads)}, stream,
                 shape, inputs, terms, sums);
  if (error != cudaSuccess) return error;
  return Launch(JoinLoss<T>, {dim3(1), dim3(1)}, stream, pieces,
                shape.reduction == LossReduction::kMean, sums, loss);
}

}  // namespace

size_t LossWorkspace(const LossShape& shape) {
  return (shape.batch * shape.inner + 2 * LossPieces(shape)) * sizeof(double);
}

cudaError_t Loss(const LossShape& shape, const LossInputs& inputs, void* loss, void* log_prob,
                 void* workspace, cudaStream_t stream) {
  return DispatchReal(shape.dtype, [&]<class T>() {
    return Run(shape, inputs, static_cast<T*>(loss), static_cast<T*>(log_prob), workspace, stream);
  });
}

}  // namespace onward::cuda

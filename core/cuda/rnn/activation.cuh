// SPDX-License-Identifier: Apache-2.0
// The activations of RNN, GRU and LSTM and their slopes, and what a cell's thread works on.
#pragma once

#include "core/cuda/rnn/cells.h"
#include "core/cuda/types.cuh"
#include "core/device/plan/rnn_activation.h"

namespace onward::cuda {

__device__ inline float Tanh(float x) { return tanhf(x); }
__device__ inline double Tanh(double x) { return tanh(x); }
__device__ inline float ExpMinusOne(float x) { return expm1f(x); }
__device__ inline double ExpMinusOne(double x) { return expm1(x); }
__device__ inline float LogOnePlus(float x) { return log1pf(x); }
__device__ inline double LogOnePlus(double x) { return log1p(x); }
__device__ inline float Absolute(float x) { return fabsf(x); }
__device__ inline double Absolute(double x) { return fabs(x); }

template <class T>
__device__ inline T Sigmoid(T x) {
  return T(1) / (T(1) + Exp(-x));
}

template <class T>
__device__ inline T Limited(T x, T clip) {
  x = x > clip ? clip : x;
  return x < -clip ? -clip : x;
}

// f(x limited to [-clip, clip])
template <class T>
__device__ T Activate(const CellActivation& f, T clip, T argument) {
  const T x = Limited(argument, clip), alpha = f.alpha, beta = f.beta;
  switch (static_cast<RnnActivationKind>(f.kind)) {
    case RnnActivationKind::kRelu: return T(0) > x ? T(0) : x;
    case RnnActivationKind::kTanh: return Tanh(x);
    case RnnActivationKind::kSigmoid: return Sigmoid(x);
    case RnnActivationKind::kAffine: return alpha * x + beta;
    case RnnActivationKind::kLeakyRelu: return x < T(0) ? alpha * x : x;
    case RnnActivationKind::kThresholdedRelu: return x <= alpha ? T(0) : x;
    case RnnActivationKind::kScaledTanh: return alpha * Tanh(beta * x);
    case RnnActivationKind::kHardSigmoid: {
      T y = alpha * x + beta;
      y = y < T(0) ? T(0) : y;
      return y > T(1) ? T(1) : y;
    }
    case RnnActivationKind::kElu: return x < T(0) ? alpha * ExpMinusOne(x) : x;
    case RnnActivationKind::kSoftsign: return x / (T(1) + Absolute(x));
    case RnnActivationKind::kSoftplus: return (T(0) > x ? T(0) : x) + LogOnePlus(Exp(-Absolute(x)));
  }
  return x;
}

template <class T>
__device__ T SlopeOf(const CellActivation& f, T x, T y) {
  const T alpha = f.alpha, beta = f.beta;
  switch (static_cast<RnnActivationKind>(f.kind)) {
    case RnnActivationKind::kRelu: return y > T(0) ? T(1) : T(0);
    case RnnActivationKind::kTanh: return T(1) - y * y;
    case RnnActivationKind::kSigmoid: return y * (T(1) - y);
    case RnnActivationKind::kAffine: return alpha;
    case RnnActivationKind::kLeakyRelu: return x < T(0) ? alpha : T(1);
    case RnnActivationKind::kThresholdedRelu: return x <= alpha ? T(0) : T(1);
    case RnnActivationKind::kScaledTanh: {
      const T t = Tanh(beta * x);
      return alpha * beta * (T(1) - t * t);
    }
    case RnnActivationKind::kHardSigmoid: return y > T(0) && y < T(1) ? alpha : T(0);
    case RnnActivationKind::kElu: return x < T(0) ? y + alpha : T(1);
    case RnnActivationKind::kSoftsign: {
      const T r = T(1) / (T(1) + Absolute(x));
      return r * r;
    }
    case RnnActivationKind::kSoftplus: return Sigmoid(x);
  }
  return T(1);
}

// d * dy/dx, given the argument and the y that Activate made of it.
template <class T>
__device__ T ActivateGrad(const CellActivation& f, T clip, T argument, T y, T d) {
  return Absolute(argument) > clip ? T(0) : d * SlopeOf(f, Limited(argument, clip), y);
}

template <class T>
__device__ T* RowOf(const CellRows& rows, int64_t b) {
  return rows.data == nullptr ? nullptr : static_cast<T*>(rows.data) + b * rows.step;
}
__device__ inline bool Active(const CellStep& c, int64_t b) {
  return c.lengths == nullptr || c.t < c.lengths[b];
}
// The limit of the gates; the argument of H is not a gate's and has none.
template <class T>
__device__ T ClipOf(const CellStep& c) {
  return static_cast<T>(c.clip);
}

// A kernel over all units of all sequences of a step; RNNs compute in float or double.
template <class Cell, class Kernels>
cudaError_t LaunchCell(DType dtype, const Cell& cell, const Kernels& kernels, cudaStream_t stream) {
  const int64_t units = cell.batch * cell.hidden;
  if (units == 0) return cudaSuccess;
  const Geometry geometry = LinearGrid(units);
  if (dtype == DType::kFloat) return Launch(kernels.of_float, geometry, stream, cell);
  if (dtype == DType::kDouble) return Launch(kernels.of_double, geometry, stream, cell);
  return cudaErrorInvalidValue;
}
template <class Cell>
struct CellKernels {
  void (*of_float)(Cell);
  void (*of_double)(Cell);
};

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// BatchNormalization and its gradient; the fused forms add a residual to the result and bound it
// by an activation. Training mode takes one pass for the mean, one for the deviations and, in the
// gradient, the sums of dy and dy * (x - mean), and one for the result:
//   y = (x - mean) * factor + shift,  factor = scale / sqrt(var + epsilon)
//   dB = sum(dy);  dscale = s * sum(dy * (x - mean)),  s = 1 / sqrt(var + epsilon)
//   dx = scale * s * (dy - dB / n - (x - mean) * s * dscale / n)
#include <algorithm>

#include "core/cuda/norm/channel_sums.cuh"
#include "core/cuda/number.cuh"

namespace onward::cuda {
namespace {

// Per-channel numbers in the workspace.
struct ChannelNumbers {
  double* mean;
  double* first;   // factor, or what dy is multiplied by
  double* second;  // shift, or what (x - mean) is multiplied by
  double* third;   // of the gradient: what is added
  double* sums;    // of the pieces
};
constexpr int kMostSums = 4;

ChannelNumbers NumbersAt(void* workspace, int64_t channels) {
  double* at = static_cast<double*>(workspace);
  return {at, at + channels, at + 2 * channels, at + 3 * channels, at + 4 * channels};
}

// Forward pass and gradient both call this, so that both see the same bits.
__device__ inline float Affine(float x, float mean, float factor, float shift) {
  return fmaf(x - mean, factor, shift);
}
__device__ inline double Affine(double x, double mean, double factor, double shift) {
  return fma(x - mean, factor, shift);
}

template <class Element>
struct MeanTerm {
  using T = Element;
  static constexpr int kSums = 1;
  const T* x;

  __device__ void Add(int64_t at, int64_t, Compute<T>* sums) const { sums[0] += Read(x[at]); }
};

// What the deviations from the rounded mean add up to corrects it.
template <class Element>
struct DeviationTerm {
  using T = Element;
  static constexpr int kSums = 2;
  const T* x;
  const double* mean;

  __device__ void Add(int64_t at, int64_t channel, Compute<T>* sums) const {
    const Compute<T> d = Read(x[at]) - static_cast<Compute<T>>(mean[channel]);
    sums[0] += d;
    sums[1] += d * d;
  }
};

// What of dy passes the activation, worked out again from x.
template <class T>
struct Gate {
  using C = Compute<T>;
  bool bounded;
  C low, high;
  const T* table;
  int64_t channels;

  __device__ C operator()(int64_t c, C x, C dy) const {
    if (!bounded) return dy;
    const C n = Affine(x, Read(table[c]), Read(table[channels + c]), Read(table[2 * channels + c]));
    return n >= low && n <= high ? dy : C(0);
  }
};

template <class Element>
struct GradTerm {
  using T = Element;
  static constexpr int kSums = 4;
  const T* x;
  const T* dy;
  const double* mean;
  Gate<T> gate;

  __device__ void Add(int64_t at, int64_t channel, Compute<T>* sums) const {
    const Compute<T> value = Read(x[at]);
    const Compute<T> d = value - static_cast<Compute<T>>(mean[channel]);
    const Compute<T> g = gate(channel, value, Read(dy[at]));
    sums[0] += d;
    sums[1] += d * d;
    sums[2] += g;
    sums[3] += g * d;
  }
};

// The mean of each channel, rounded to C, from the sums of MeanTerm.
template <class C>
__global__ void FinishMean(ChannelWork work, ChannelNumbers numbers) {
  for (int64_t c = FirstElement(); c < work.channels; c += ElementStep()) {
    const double sum = JoinedSum<1>(work, numbers.sums, c, 0);
    numbers.mean[c] = static_cast<C>(sum / static_cast<double>(work.pixels));
  }
}

struct MeanAndVariance {
  double mean, variance;
};
// From the sums of a term that begins as DeviationTerm's.
template <int kSums>
__device__ MeanAndVariance MomentsOf(const ChannelWork& work, const ChannelNumbers& numbers,
                                     int64_t c) {
  const double n = static_cast<double>(work.pixels);
  const double off = JoinedSum<kSums>(work, numbers.sums, c, 0) / n;
  const double variance = JoinedSum<kSums>(work, numbers.sums, c, 1) / n - off * off;
  return {numbers.mean[c] + off, NanMax(0.0, variance)};
}

template <class T>
__global__ void FinishForward(BatchNormCall call, ChannelNumbers numbers) {
  using C = Compute<T>;
  const ChannelWork& work = call.work;
  for (int64_t c = FirstElement(); c < work.channels; c += ElementStep()) {
    const double before_mean = NumberAt(call.mean.data, call.mean.dtype, c);
    const double before_var = NumberAt(call.var.data, call.var.dtype, c);
    const MeanAndVariance m =
        call.training ? MomentsOf<2>(work, numbers, c) : MeanAndVariance{before_mean, before_var};
    const double rounded = static_cast<C>(m.mean);
    const double factor =
        NumberAt(call.scale.data, call.scale.dtype, c) / sqrt(m.variance + call.epsilon);
    // The second term makes up for the rounding of the mean.
    const double shift = NumberAt(call.bias.data, call.bias.dtype, c) + (rounded - m.mean) * factor;
    numbers.mean[c] = rounded;
    numbers.first[c] = factor;
    numbers.second[c] = shift;
    const double keep = call.momentum, take = 1 - call.momentum;
    PutNumber(call.running_mean, call.mean.dtype, c, before_mean * keep + m.mean * take);
    PutNumber(call.running_var, call.var.dtype, c, before_var * keep + m.variance * take);
    if (T* table = static_cast<T*>(call.table); table != nullptr) {
      table[c] = Write<T>(rounded);
      table[work.channels + c] = Write<T>(factor);
      table[2 * work.channels + c] = Write<T>(shift);
    }
  }
}

template <class T>
__global__ void ApplyForward(BatchNormCall call, ChannelNumbers numbers) {
  using C = Compute<T>;
  const ChannelWork& work = call.work;
  const T* x = static_cast<const T*>(call.x);
  const T* z = static_cast<const T*>(call.z);
  T* y = static_cast<T*>(call.y);
  const int64_t elements = work.channels * work.pixels;
  for (int64_t i = FirstElement(); i < elements; i += ElementStep()) {
    const int64_t c = i / work.inner % work.channels;
    C value = Affine(Read(x[i]), static_cast<C>(numbers.mean[c]), static_cast<C>(numbers.first[c]),
                     static_cast<C>(numbers.second[c]));
    if (z != nullptr) value += Read(z[i]);
    if (call.bounded) {  // NaN stays
      const C low = static_cast<C>(call.low), high = static_cast<C>(call.high);
      value = low > value ? low : value;
      value = value > high ? high : value;
    }
    y[i] = Write<T>(value);
  }
}

template <class T>
__global__ void FinishGrad(BatchNormGradCall call, ChannelNumbers numbers) {
  using C = Compute<T>;
  constexpr int kSums = GradTerm<T>::kSums;
  const ChannelWork& work = call.work;
  const double n = static_cast<double>(work.pixels);
  for (int64_t c = FirstElement(); c < work.channels; c += ElementStep()) {
    const MeanAndVariance m = MomentsOf<kSums>(work, numbers, c);
    const double s = 1 / sqrt(m.variance + call.epsilon);
    const double dbias = JoinedSum<kSums>(work, numbers.sums, c, 2);
    const double off = m.mean - numbers.mean[c];
    const double product = JoinedSum<kSums>(work, numbers.sums, c, 3) - off * dbias;
    const double dscale = n > 0 ? product * s : 0;
    const double by_dy = NumberAt(call.scale.data, call.scale.dtype, c) * s;
    const double by_x = -by_dy * s * dscale / n;
    const double rounded = static_cast<C>(m.mean);
    numbers.mean[c] = rounded;
    numbers.first[c] = by_dy;
    numbers.second[c] = by_x;
    // The second term makes up for the rounding of the mean.
    numbers.third[c] = -by_dy * dbias / n + by_x * (rounded - m.mean);
    PutNumber(call.dscale, call.dscale_dtype, c, dscale);
    PutNumber(call.dbias, call.dbias_dtype, c, dbias);
  }
}

template <class T>
Gate<T> GateOf(const BatchNormGradCall& call) {
  using C = Compute<T>;
  return {call.bounded, static_cast<C>(call.low), static_cast<C>(call.high),
          static_cast<const T*>(call.table), call.work.channels};
}

template <class T>
__global__ void ApplyGrad(BatchNormGradCall call, Gate<T> gate, ChannelNumbers numbers) {
  using C = Compute<T>;
  const ChannelWork& work = call.work;
  const T* x = static_cast<const T*>(call.x);
  const T* dy = static_cast<const T*>(call.dy);
  T* dx = static_cast<T*>(call.dx);
  const int64_t elements = work.channels * work.pixels;
  for (int64_t i = FirstElement(); i < elements; i += ElementStep()) {
    const int64_t c = i / work.inner % work.channels;
    const C value = Read(x[i]), g = gate(c, value, Read(dy[i]));
    const C d = value - static_cast<C>(numbers.mean[c]);
    dx[i] = Write<T>(static_cast<C>(numbers.first[c]) * g +
                     (static_cast<C>(numbers.second[c]) * d + static_cast<C>(numbers.third[c])));
  }
}

Geometry PerChannel(const ChannelWork& work) { return LinearGrid(work.channels, kChannelThreads); }
Geometry PerElement(const ChannelWork& work) {
  const int64_t elements = work.channels * work.pixels;
  return LinearGrid(elements, kChannelThreads);
}

template <class T>
cudaError_t MeasureMean(const ChannelWork& work, const T* x, const ChannelNumbers& numbers,
                        cudaStream_t stream) {
  const cudaError_t error = RunChannelSums(work, MeanTerm<T>{x}, numbers.sums, stream);
  if (error != cudaSuccess) return error;
  return Launch(FinishMean<Compute<T>>, PerChannel(work), stream, work, numbers);
}

template <class T>
cudaError_t Forward(const BatchNormCall& call, void* workspace, cudaStream_t stream) {
  const ChannelWork& work = call.work;
  const ChannelNumbers numbers = NumbersAt(workspace, work.channels);
  const T* x = static_cast<const T*>(call.x);
  cudaError_t error = cudaSuccess;
  if (call.training) {
    error = MeasureMean(work, x, numbers, stream);
    if (error != cudaSuccess) return error;
    error = RunChannelSums(work, DeviationTerm<T>{x, numbers.mean}, numbers.sums, stream);
    if (error != cudaSuccess) return error;
  }
  error = Launch(FinishForward<T>, PerChannel(work), stream, call, numbers);
  if (error != cudaSuccess || call.y == nullptr || work.pixels == 0) return error;
  return Launch(ApplyForward<T>, PerElement(work), stream, call, numbers);
}

template <class T>
cudaError_t Backward(const BatchNormGradCall& call, void* workspace, cudaStream_t stream) {
  const ChannelWork& work = call.work;
  const ChannelNumbers numbers = NumbersAt(workspace, work.channels);
  const T* x = static_cast<const T*>(call.x);
  const Gate<T> gate = GateOf<T>(call);
  cudaError_t error = MeasureMean(work, x, numbers, stream);
  if (error != cudaSuccess) return error;
  const GradTerm<T> term = {x, static_cast<const T*>(call.dy), numbers.mean, gate};
  error = RunChannelSums(work, term, numbers.sums, stream);
  if (error != cudaSuccess) return error;
  error = Launch(FinishGrad<T>, PerChannel(work), stream, call, numbers);
  if (error != cudaSuccess || call.dx == nullptr || work.pixels == 0) return error;
  return Launch(ApplyGrad<T>, PerElement(work), stream, call, gate, numbers);
}

}  // namespace

void ChannelWork::DealOut() {
  constexpr int64_t kBlocks = 512, kPieceSize = 2048, kMostPieces = 64;
  pixels = outer * inner;
  // Planes of a few pixels are read across channels.
  rows = inner >= 8 ? kChannelThreads : 8;
  while (rows > 32 && rows / 2 >= pixels) rows /= 2;
  columns = inner >= 8 ? 1 : kChannelThreads / rows;
  const int64_t blocks = (channels + columns - 1) / columns;
  const int64_t wanted = std::min(kBlocks / std::max<int64_t>(blocks, 1), kMostPieces);
  pieces = std::clamp<int64_t>(pixels / kPieceSize, 1, std::max<int64_t>(wanted, 1));
}

size_t BatchNormWorkspace(const ChannelWork& work) {
  return work.channels * (4 + work.pieces * kMostSums) * sizeof(double);
}

cudaError_t BatchNorm(const BatchNormCall& call, void* workspace, cudaStream_t stream) {
  if (call.work.channels == 0) return cudaSuccess;
  return DispatchReal(call.dtype, [&]<class T>() { return Forward<T>(call, workspace, stream); });
}

cudaError_t BatchNormGrad(const BatchNormGradCall& call, void* workspace, cudaStream_t stream) {
  if (call.work.channels == 0) return cudaSuccess;
  return DispatchReal(call.dtype, [&]<class T>() { return Backward<T>(call, workspace, stream); });
}

}  // namespace onward::cuda

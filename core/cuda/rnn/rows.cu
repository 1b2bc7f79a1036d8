// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/fault.cuh"
#include "core/cuda/rnn/rows.h"
#include "core/cuda/types.cuh"

namespace onward::cuda {
namespace {

// RNNs compute in float or double.
template <class F>
cudaError_t DispatchWide(DType dtype, const F& f) {
  if (dtype == DType::kFloat) return f.template operator()<float>();
  if (dtype == DType::kDouble) return f.template operator()<double>();
  return cudaErrorInvalidValue;
}

__global__ void FindBadLengths(const int32_t* lengths, int64_t batch, int64_t steps,
                               FaultPlace fault) {
  for (int64_t b = FirstElement(); b < batch; b += ElementStep()) {
    if (lengths[b] < 0 || lengths[b] > steps) Report(fault, lengths[b], b, 0, steps + 1);
  }
}

template <class T>
__global__ void Copy(int64_t elements, int64_t hidden, const T* from, int64_t from_step, T* to,
                     int64_t to_step) {
  for (int64_t i = FirstElement(); i < elements; i += ElementStep()) {
    const int64_t b = i / hidden, u = i % hidden;
    to[b * to_step + u] = from == nullptr ? T(0) : from[b * from_step + u];
  }
}

template <class T>
__global__ void Swap(int64_t elements, int64_t first, int64_t second, int64_t n, const T* from,
                     T* to) {
  for (int64_t i = FirstElement(); i < elements; i += ElementStep()) {
    const int64_t row = i / n;
    to[i] = from[(row % first * second + row / first) * n + i % n];
  }
}

// h (or C) before step t of sequence b.
template <class T>
__device__ T LastState(const LastStates& s, int64_t t, int64_t b, int64_t u) {
  const int64_t before = t + s.back;
  const bool there =
      before >= 0 && before < s.steps && (s.lengths == nullptr || before < s.lengths[b]);
  if (there) return static_cast<const T*>(s.y)[before * s.y_time + b * s.y_batch + u];
  return s.first.data == nullptr ? T(0) : static_cast<const T*>(s.first.data)[b * s.first.step + u];
}

template <class T>
__global__ void Gather(LastStates s, T* to, int64_t elements) {
  for (int64_t i = FirstElement(); i < elements; i += ElementStep()) {
    const int64_t row = i / s.hidden;
    to[i] = LastState<T>(s, row / s.batch, row % s.batch, i % s.hidden);
  }
}

constexpr int kColumns = 32, kRowThreads = 8;

// A block adds up kColumns columns: each of its kRowThreads rows of threads every eighth row, then
// the first one their sums.
template <class T>
__global__ void Sums(const T* from, int64_t rows, int64_t stride, int64_t columns, T* sums) {
  __shared__ T parts[kRowThreads][kColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  T sum = 0;
  for (int64_t row = threadIdx.y; column < columns && row < rows; row += kRowThreads) {
    sum += from[row * stride + column];
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int i = 1; i < kRowThreads; ++i) sum += parts[i][threadIdx.x];
  sums[column] = sum;
}

template <class T>
__global__ void Peepholes(PeepholeSums p, T* dp) {
  const LastStates& s = p.last;
  const T *cells = static_cast<const T*>(p.cells), *dgates = static_cast<const T*>(p.dgates);
  for (int64_t u = FirstElement(); u < s.hidden; u += ElementStep()) {
    T in = 0, out = 0, forget = 0;
    for (int64_t row = 0; row < s.steps * s.batch; ++row) {
      const T last = LastState<T>(s, row / s.batch, row % s.batch, u);
      const T* d = dgates + row * p.stride + u;
      in += d[0] * last;
      out += d[s.hidden] * cells[row * s.hidden + u];
      forget += d[2 * s.hidden] * last;
    }
    dp[u] = in;
    dp[s.hidden + u] = out;
    dp[2 * s.hidden + u] = forget;
  }
}

}  // namespace

cudaError_t CheckLengths(const int32_t* lengths, int64_t batch, int64_t steps,
                         const FaultPlace& fault, cudaStream_t stream) {
  if (batch == 0) return cudaSuccess;
  return Launch(FindBadLengths, LinearGrid(batch), stream, lengths, batch, steps, fault);
}

cudaError_t CopyRows(DType dtype, int64_t batch, int64_t hidden, const CellRows& from,
                     const CellRows& to, cudaStream_t stream) {
  const int64_t elements = batch * hidden;
  if (elements == 0) return cudaSuccess;
  return DispatchWide(dtype, [&]<class T>() {
    return Launch(Copy<T>, LinearGrid(elements), stream, elements, hidden,
                  static_cast<const T*>(from.data), from.step, static_cast<T*>(to.data), to.step);
  });
}

cudaError_t SwapFirstAxes(DType dtype, const void* from, int64_t first, int64_t second, int64_t n,
                          void* to, cudaStream_t stream) {
  const int64_t elements = first * second * n;
  if (elements == 0) return cudaSuccess;
  return DispatchWide(dtype, [&]<class T>() {
    return Launch(Swap<T>, LinearGrid(elements), stream, elements, first, second, n,
                  static_cast<const T*>(from), static_cast<T*>(to));
  });
}

cudaError_t GatherLastStates(DType dtype, const LastStates& s, void* to, cudaStream_t stream) {
  const int64_t elements = s.steps * s.batch * s.hidden;
  if (elements == 0) return cudaSuccess;
  return DispatchWide(dtype, [&]<class T>() {
    return Launch(Gather<T>, LinearGrid(elements), stream, s, static_cast<T*>(to), elements);
  });
}

cudaError_t SumRows(DType dtype, const void* from, int64_t rows, int64_t stride, int64_t columns,
                    void* sums, cudaStream_t stream) {
  if (columns == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((columns + kColumns - 1) / kColumns);
  return DispatchWide(dtype, [&]<class T>() {
    return Launch(Sums<T>, {blocks, dim3(kColumns, kRowThreads)}, stream,
                  static_cast<const T*>(from), rows, stride, columns, static_cast<T*>(sums));
  });
}

cudaError_t SumPeepholes(DType dtype, const PeepholeSums& sums, void* dp, cudaStream_t stream) {
  if (sums.last.hidden == 0) return cudaSuccess;
  return DispatchWide(dtype, [&]<class T>() {
    return Launch(Peepholes<T>, LinearGrid(sums.last.hidden), stream, sums, static_cast<T*>(dp));
  });
}

}  // namespace onward::cuda

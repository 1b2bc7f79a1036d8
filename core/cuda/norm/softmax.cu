// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax, Hardmax and LpNormalization along one axis, and the gradients of the first
// two. With inner = 1 a block works on a row, else a thread on a column. The result may lie over
// an input: an element is read for the last time by the thread that writes it.
#include "core/cuda/block.cuh"
#include "core/cuda/norm/norm.h"

namespace onward::cuda {
namespace {

constexpr int kColumnThreads = 128;

__device__ inline int64_t ColumnStart(const AxisRows& rows, int64_t column) {
  return column / rows.inner * rows.n * rows.inner + column % rows.inner;
}

// y = exp(x - max) / sum(exp(x - max)); its logarithm with kLog.
template <class T, bool kLog>
__device__ T SoftmaxValue(Compute<T> x, Compute<T> max, Compute<T> sum) {
  return Write<T>(kLog ? (x - max) - sum : Exp(x - max) * sum);
}
// What SoftmaxValue takes as `sum`.
template <bool kLog, class C>
__device__ C SumUsed(C sum) {
  return kLog ? Log(sum) : C(1) / sum;
}

template <class T, bool kLog>
__global__ void SoftmaxOfRows(AxisRows rows, const T* x, T* y) {
  using C = Compute<T>;
  __shared__ C buffers[2][kWarp];
  BlockFold<C> fold(buffers);
  for (int64_t row = blockIdx.x; row < rows.outer; row += gridDim.x) {
    const T* from = x + row * rows.n;
    T* to = y + row * rows.n;
    C max = -Infinity<C>();
    for (int64_t i = threadIdx.x; i < rows.n; i += blockDim.x) {
      max = LargestOp::Join(max, Read(from[i]));
    }
    max = fold.Largest(max);
    C sum = 0;
    for (int64_t i = threadIdx.x; i < rows.n; i += blockDim.x) sum += Exp(Read(from[i]) - max);
    sum = SumUsed<kLog>(fold.Sum(sum));
    for (int64_t i = threadIdx.x; i < rows.n; i += blockDim.x) {
      to[i] = SoftmaxValue<T, kLog>(Read(from[i]), max, sum);
    }
  }
}

template <class T, bool kLog>
__global__ void SoftmaxOfColumns(AxisRows rows, const T* x, T* y) {
  using C = Compute<T>;
  const int64_t columns = rows.outer * rows.inner;
  for (int64_t column = FirstElement(); column < columns; column += ElementStep()) {
    const int64_t at = ColumnStart(rows, column), end = at + rows.n * rows.inner;
    C max = -Infinity<C>();
    for (int64_t i = at; i < end; i += rows.inner) max = LargestOp::Join(max, Read(x[i]));
    C sum = 0;
    for (int64_t i = at; i < end; i += rows.inner) sum += Exp(Read(x[i]) - max);
    sum = SumUsed<kLog>(sum);
    for (int64_t i = at; i < end; i += rows.inner) {
      y[i] = SoftmaxValue<T, kLog>(Read(x[i]), max, sum);
    }
  }
}

// 1 at the first largest element, 0 elsewhere; NaN counts as largest.
template <class T>
__global__ void HardmaxOfColumns(AxisRows rows, const T* x, T* y) {
  using C = Compute<T>;
  const int64_t columns = rows.outer * rows.inner;
  for (int64_t column = FirstElement(); column < columns; column += ElementStep()) {
    const int64_t at = ColumnStart(rows, column);
    int64_t best = 0;
    C top = Read(x[at]);
    for (int64_t i = 1; i < rows.n; ++i) {
      const C value = Read(x[at + i * rows.inner]);
      if (!(value > top || (value != value && top == top))) continue;
      best = i;
      top = value;
    }
    for (int64_t i = 0; i < rows.n; ++i) {
      y[at + i * rows.inner] = Write<T>(C(i == best ? 1 : 0));
    }
  }
}

// softmax: dx = y * (dy - sum(y * dy));  log: dx = dy - exp(y) * sum(dy).
template <bool kLog, class C>
__device__ C GradTerm(C dy, C y) {
  return kLog ? dy : y * dy;
}
template <bool kLog, class C>
__device__ C GradValue(C dy, C y, C sum) {
  return kLog ? dy - Exp(y) * sum : y * (dy - sum);
}

template <class T, bool kLog>
__global__ void SoftmaxGradOfRows(AxisRows rows, const T* dy, const T* y, T* dx) {
  using C = Compute<T>;
  __shared__ C buffers[2][kWarp];
  BlockFold<C> fold(buffers);
  for (int64_t row = blockIdx.x; row < rows.outer; row += gridDim.x) {
    const int64_t at = row * rows.n, end = at + rows.n;
    C sum = 0;
    for (int64_t i = at + threadIdx.x; i < end; i += blockDim.x) {
      sum += GradTerm<kLog>(Read(dy[i]), Read(y[i]));
    }
    sum = fold.Sum(sum);
    for (int64_t i = at + threadIdx.x; i < end; i += blockDim.x) {
      dx[i] = Write<T>(GradValue<kLog>(Read(dy[i]), Read(y[i]), sum));
    }
  }
}

template <class T, bool kLog>
__global__ void SoftmaxGradOfColumns(AxisRows rows, const T* dy, const T* y, T* dx) {
  using C = Compute<T>;
  const int64_t columns = rows.outer * rows.inner;
  for (int64_t column = FirstElement(); column < columns; column += ElementStep()) {
    const int64_t at = ColumnStart(rows, column), end = at + rows.n * rows.inner;
    C sum = 0;
    for (int64_t i = at; i < end; i += rows.inner) sum += GradTerm<kLog>(Read(dy[i]), Read(y[i]));
    for (int64_t i = at; i < end; i += rows.inner) {
      dx[i] = Write<T>(GradValue<kLog>(Read(dy[i]), Read(y[i]), sum));
    }
  }
}

template <class C>
__device__ C NormTerm(int p, C x) {
  if (p == 2) return x * x;
  return x < 0 ? -x : x;
}
// Zero where the norm is zero.
template <class T, class C>
__device__ T NormQuotient(C x, C norm) {
  return Write<T>(norm == C(0) ? C(0) : x / norm);
}

template <class T>
__global__ void LpNormOfRows(int p, AxisRows rows, const T* x, T* y) {
  using C = Compute<T>;
  __shared__ C buffers[2][kWarp];
  BlockFold<C> fold(buffers);
  for (int64_t row = blockIdx.x; row < rows.outer; row += gridDim.x) {
    const int64_t at = row * rows.n, end = at + rows.n;
    C sum = 0;
    for (int64_t i = at + threadIdx.x; i < end; i += blockDim.x) sum += NormTerm(p, Read(x[i]));
    sum = fold.Sum(sum);
    const C norm = p == 2 ? Sqrt(sum) : sum;
    for (int64_t i = at + threadIdx.x; i < end; i += blockDim.x) {
      y[i] = NormQuotient<T>(Read(x[i]), norm);
    }
  }
}

template <class T>
__global__ void LpNormOfColumns(int p, AxisRows rows, const T* x, T* y) {
  using C = Compute<T>;
  const int64_t columns = rows.outer * rows.inner;
  for (int64_t column = FirstElement(); column < columns; column += ElementStep()) {
    const int64_t at = ColumnStart(rows, column), end = at + rows.n * rows.inner;
    C sum = 0;
    for (int64_t i = at; i < end; i += rows.inner) sum += NormTerm(p, Read(x[i]));
    const C norm = p == 2 ? Sqrt(sum) : sum;
    for (int64_t i = at; i < end; i += rows.inner) y[i] = NormQuotient<T>(Read(x[i]), norm);
  }
}

bool IsEmpty(const AxisRows& rows) { return rows.outer * rows.n * rows.inner == 0; }
Geometry RowGeometry(const AxisRows& rows) {
  return {dim3(GridFor(rows.outer)), dim3(RowThreads(rows.n))};
}
Geometry ColumnGeometry(const AxisRows& rows) {
  return LinearGrid(rows.outer * rows.inner, kColumnThreads);
}

template <class T, bool kLog>
cudaError_t RunSoftmax(const AxisRows& rows, const T* x, T* y, cudaStream_t stream) {
  if (rows.inner == 1) {
    return Launch(SoftmaxOfRows<T, kLog>, RowGeometry(rows), stream, rows, x, y);
  }
  return Launch(SoftmaxOfColumns<T, kLog>, ColumnGeometry(rows), stream, rows, x, y);
}

template <class T, bool kLog>
cudaError_t RunSoftmaxGrad(const AxisRows& rows, const T* dy, const T* y, T* dx,
                           cudaStream_t stream) {
  if (rows.inner == 1) {
    return Launch(SoftmaxGradOfRows<T, kLog>, RowGeometry(rows), stream, rows, dy, y, dx);
  }
  return Launch(SoftmaxGradOfColumns<T, kLog>, ColumnGeometry(rows), stream, rows, dy, y, dx);
}

}  // namespace

cudaError_t Softmax(SoftmaxKind kind, DType dtype, const AxisRows& rows, const void* x, void* y,
                    cudaStream_t stream) {
  if (IsEmpty(rows)) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    switch (kind) {
      case SoftmaxKind::kSoftmax: return RunSoftmax<T, false>(rows, from, to, stream);
      case SoftmaxKind::kLogSoftmax: return RunSoftmax<T, true>(rows, from, to, stream);
      default: return Launch(HardmaxOfColumns<T>, ColumnGeometry(rows), stream, rows, from, to);
    }
  });
}

cudaError_t SoftmaxGrad(bool log, DType dtype, const AxisRows& rows, const void* dy, const void* y,
                        void* dx, cudaStream_t stream) {
  if (IsEmpty(rows)) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    const T* slope = static_cast<const T*>(dy);
    const T* value = static_cast<const T*>(y);
    T* to = static_cast<T*>(dx);
    return log ? RunSoftmaxGrad<T, true>(rows, slope, value, to, stream)
               : RunSoftmaxGrad<T, false>(rows, slope, value, to, stream);
  });
}

cudaError_t LpNorm(int p, DType dtype, const AxisRows& rows, const void* x, void* y,
                   cudaStream_t stream) {
  if (IsEmpty(rows)) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (rows.inner == 1) {
      return Launch(LpNormOfRows<T>, RowGeometry(rows), stream, p, rows, from, to);
    }
    return Launch(LpNormOfColumns<T>, ColumnGeometry(rows), stream, p, rows, from, to);
  });
}

}  // namespace onward::cuda

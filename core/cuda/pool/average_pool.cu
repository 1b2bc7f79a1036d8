// SPDX-License-Identifier: Apache-2.0
// AveragePool, its gradient, and LpPool.
#include "core/cuda/pool/kernels.h"
#include "core/cuda/pool/window.cuh"

namespace onward::cuda {
namespace {

template <class T>
__global__ void Average(PoolShape s, const T* x, T* y, int64_t elements) {
  using C = Compute<T>;
  const int64_t in = InPositions(s), out = OutPositions(s);
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    const T* plane = x + at / out * in;
    C sum = 0;
    const int64_t count = ForTaps(s, at % out, [&](int64_t i) { sum += Read(plane[i]); });
    y[at] = Write<T>(sum / static_cast<C>(count > 1 ? count : 1));
  }
}

template <class T>
__global__ void AverageGrad(PoolShape s, const T* dy, T* dx, int64_t elements) {
  using C = Compute<T>;
  const int64_t in = InPositions(s), out = OutPositions(s);
  const PoolAxis &d = s.axes[0], &h = s.axes[1], &w = s.axes[2];
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    const T* plane = dy + at / in * out;
    C sum = 0;
    ForWindows(s, at % in, [&](int64_t p) {
      const PoolPosition o = PositionOf(p, h.out, w.out);
      const int64_t count = static_cast<int64_t>(SpanOf(d, o.d, s.count_pads).divisor) *
                            SpanOf(h, o.h, s.count_pads).divisor *
                            SpanOf(w, o.w, s.count_pads).divisor;
      sum += Read(plane[p]) / static_cast<C>(count > 1 ? count : 1);
    });
    dx[at] = Write<T>(sum);
  }
}

template <class T>
__global__ void Lp(PoolShape s, Compute<T> power, const T* x, T* y, int64_t elements) {
  using C = Compute<T>;
  const int64_t in = InPositions(s), out = OutPositions(s);
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    const T* plane = x + at / out * in;
    C sum = 0;
    ForTaps(s, at % out, [&](int64_t i) { sum += Power(Magnitude(Read(plane[i])), power); });
    y[at] = Write<T>(Power(sum, C(1) / power));
  }
}

}  // namespace

cudaError_t AveragePool(DType dtype, const PoolShape& s, const void* x, void* y,
                        cudaStream_t stream) {
  const int64_t elements = s.planes * OutPositions(s);
  if (elements == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(Average<T>, LinearGrid(elements), stream, s, static_cast<const T*>(x),
                  static_cast<T*>(y), elements);
  });
}

cudaError_t AveragePoolGrad(DType dtype, const PoolShape& s, const void* dy, void* dx,
                            cudaStream_t stream) {
  const int64_t elements = s.planes * InPositions(s);
  if (elements == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(AverageGrad<T>, LinearGrid(elements), stream, s, static_cast<const T*>(dy),
                  static_cast<T*>(dx), elements);
  });
}

cudaError_t LpPool(DType dtype, const PoolShape& s, double p, const void* x, void* y,
                   cudaStream_t stream) {
  const int64_t elements = s.planes * OutPositions(s);
  if (elements == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(Lp<T>, LinearGrid(elements), stream, s, static_cast<Compute<T>>(p),
                  static_cast<const T*>(x), static_cast<T*>(y), elements);
  });
}

}  // namespace onward::cuda

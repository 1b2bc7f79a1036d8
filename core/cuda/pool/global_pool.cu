// SPDX-License-Identifier: Apache-2.0
// GlobalAveragePool, GlobalMaxPool and GlobalLpPool, a block per plane; the gradient of the first.
#include "core/cuda/block.cuh"
#include "core/cuda/pool/kernels.h"
#include "core/cuda/pool/window.cuh"

namespace onward::cuda {
namespace {

struct LargestOrNan {
  template <class C>
  static __device__ C Join(C a, C b) {
    return NanMax(a, b);
  }
};

// Each has what an element counts for, how two are joined, and what is made of the end.
template <class C>
struct AverageFold {
  using Join = PlusOp;
  C positions;
  static __device__ C Start() { return C(0); }
  __device__ C Map(C x) const { return x; }
  __device__ C Finish(C sum) const { return sum / positions; }
};
template <class C>
struct MaxFold {
  using Join = LargestOrNan;
  static __device__ C Start() { return -Infinity<C>(); }
  __device__ C Map(C x) const { return x; }
  __device__ C Finish(C largest) const { return largest; }
};
template <class C>
struct LpFold {
  using Join = PlusOp;
  C power;
  static __device__ C Start() { return C(0); }
  __device__ C Map(C x) const { return Power(Magnitude(x), power); }
  __device__ C Finish(C sum) const { return Power(sum, C(1) / power); }
};

template <class T, class Rule>
__global__ void FoldPlanes(Rule rule, int64_t planes, int64_t positions, const T* x, T* y) {
  using C = Compute<T>;
  __shared__ typename BlockFold<C>::Buffers buffers;
  BlockFold<C> fold(buffers);
  for (int64_t plane = blockIdx.x; plane < planes; plane += gridDim.x) {
    C value = Rule::Start();
    for (int64_t p = threadIdx.x; p < positions; p += blockDim.x) {
      value = Rule::Join::Join(value, rule.Map(Read(x[plane * positions + p])));
    }
    value = fold.template Fold<typename Rule::Join>(value, Rule::Start());
    if (threadIdx.x == 0) y[plane] = Write<T>(rule.Finish(value));
  }
}

template <class T, class Rule>
cudaError_t RunFold(const Rule& rule, int64_t planes, int64_t positions, const void* x, void* y,
                    cudaStream_t stream) {
  if (planes == 0) return cudaSuccess;
  return Launch(FoldPlanes<T, Rule>, {GridFor(planes), RowThreads(positions)}, stream, rule, planes,
                positions, static_cast<const T*>(x), static_cast<T*>(y));
}

template <class T>
__global__ void SpreadPlanes(int64_t positions, const T* dy, T* dx, int64_t elements) {
  using C = Compute<T>;
  for (int64_t at = FirstElement(); at < elements; at += ElementStep()) {
    dx[at] = Write<T>(Read(dy[at / positions]) / static_cast<C>(positions));
  }
}

}  // namespace

cudaError_t GlobalAveragePool(DType dtype, int64_t planes, int64_t positions, const void* x,
                              void* y, cudaStream_t stream) {
  return DispatchReal(dtype, [&]<class T>() {
    using C = Compute<T>;
    return RunFold<T>(AverageFold<C>{static_cast<C>(positions)}, planes, positions, x, y, stream);
  });
}

cudaError_t GlobalMaxPool(DType dtype, int64_t planes, int64_t positions, const void* x, void* y,
                          cudaStream_t stream) {
  return DispatchReal(dtype, [&]<class T>() {
    return RunFold<T>(MaxFold<Compute<T>>{}, planes, positions, x, y, stream);
  });
}

cudaError_t GlobalLpPool(DType dtype, int64_t planes, int64_t positions, double p, const void* x,
                         void* y, cudaStream_t stream) {
  return DispatchReal(dtype, [&]<class T>() {
    using C = Compute<T>;
    return RunFold<T>(LpFold<C>{static_cast<C>(p)}, planes, positions, x, y, stream);
  });
}

cudaError_t GlobalAveragePoolGrad(DType dtype, int64_t planes, int64_t positions, const void* dy,
                                  void* dx, cudaStream_t stream) {
  const int64_t elements = planes * positions;
  if (elements == 0) return cudaSuccess;
  return DispatchReal(dtype, [&]<class T>() {
    return Launch(SpreadPlanes<T>, LinearGrid(elements), stream, positions,
                  static_cast<const T*>(dy), static_cast<T*>(dx), elements);
  });
}

}  // namespace onward::cuda

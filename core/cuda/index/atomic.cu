// SPDX-License-Identifier: Apache-2.0
// Sums by atomics: faster than grouping what goes to one place, but in an order that no two runs
// share.
#include "core/cuda/index/place.cuh"

namespace onward::cuda {
namespace {

template <class T>
__global__ void AddRowsOf(GatherGradCall call) {
  const int64_t block = call.count * call.inner;
  for (int64_t e = FirstElement(); e < call.outer * block; e += ElementStep()) {
    const int64_t o = e / block, i = e % block / call.inner, k = e % call.inner;
    const int64_t place = PlaceAt(call.indices, i, call.rows);
    if (place < 0) continue;
    T* const result = static_cast<T*>(call.result);
    atomicAdd(&result[(o * call.rows + place) * call.inner + k], static_cast<const T*>(call.dy)[e]);
  }
}

template <class T>
__global__ void AddTuplesOf(Tuples tuples, const int64_t* indices, const T* updates, T* result) {
  for (int64_t e = FirstElement(); e < tuples.count * tuples.slice; e += ElementStep()) {
    const int64_t offset = TupleOffset(tuples, indices, e / tuples.slice);
    if (offset >= 0) atomicAdd(&result[offset + e % tuples.slice], updates[e]);
  }
}

template <class T>
__global__ void AddElementsOf(ElementsCall call, const T* updates) {
  T* const result = static_cast<T*>(call.result);
  for (int64_t e = FirstElement(); e < call.elements; e += ElementStep()) {
    const int64_t place = PlaceAt(call.indices, e, call.bound);
    if (place < 0) continue;
    atomicAdd(&result[OffsetAt(call.grid, e) + place * call.axis_stride], updates[e]);
  }
}

template <class F>
cudaError_t DispatchAtomic(DType dtype, const F& f) {
  if (dtype == DType::kFloat) return f.template operator()<float>();
  if (dtype == DType::kDouble) return f.template operator()<double>();
  return cudaErrorInvalidValue;
}

}  // namespace

bool HasAtomicSums(DType dtype) { return dtype == DType::kFloat || dtype == DType::kDouble; }

cudaError_t AddRows(const GatherGradCall& call, cudaStream_t stream) {
  const int64_t bytes = call.outer * call.rows * call.inner * (DTypeBits(call.dtype) / 8);
  const int64_t elements = call.outer * call.count * call.inner;
  if (bytes == 0) return cudaSuccess;
  const cudaError_t error = cudaMemsetAsync(call.result, 0, bytes, stream);
  if (error != cudaSuccess || elements == 0) return error;
  return DispatchAtomic(call.dtype, [&]<class T>() {
    return Launch(AddRowsOf<T>, LinearGrid(elements), stream, call);
  });
}

cudaError_t AddTuples(DType dtype, const Tuples& tuples, const int64_t* indices,
                      const void* updates, void* result, cudaStream_t stream) {
  const int64_t elements = tuples.count * tuples.slice;
  if (elements == 0) return cudaSuccess;
  return DispatchAtomic(dtype, [&]<class T>() {
    return Launch(AddTuplesOf<T>, LinearGrid(elements), stream, tuples, indices,
                  static_cast<const T*>(updates), static_cast<T*>(result));
  });
}

cudaError_t AddElements(DType dtype, const ElementsCall& call, const void* updates,
                        cudaStream_t stream) {
  if (call.elements == 0) return cudaSuccess;
  return DispatchAtomic(dtype, [&]<class T>() {
    return Launch(AddElementsOf<T>, LinearGrid(call.elements), stream, call,
                  static_cast<const T*>(updates));
  });
}

}  // namespace onward::cuda

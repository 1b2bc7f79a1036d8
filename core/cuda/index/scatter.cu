// SPDX-License-Identifier: Apache-2.0
// ScatterElements, ScatterND and the gradient of Gather. Updates are grouped by where they go, and
// one thread applies those that meet in an element, in their order: the bits are the CPU's.
#include "core/cuda/index/place.cuh"
#include "core/cuda/index/sort.h"

namespace onward::cuda {
namespace {

__global__ void KeysOfTuples(Tuples tuples, const int64_t* indices, uint32_t nowhere,
                             uint32_t* keys) {
  for (int64_t t = FirstElement(); t < tuples.count; t += ElementStep()) {
    const int64_t offset = TupleOffset(tuples, indices, t);
    keys[t] = offset < 0 ? nowhere : static_cast<uint32_t>(offset / tuples.slice);
  }
}

__global__ void KeysOfElements(ElementsCall call, uint32_t nowhere, uint32_t* keys) {
  for (int64_t e = FirstElement(); e < call.elements; e += ElementStep()) {
    const int64_t place = PlaceAt(call.indices, e, call.bound);
    const int64_t offset = OffsetAt(call.grid, e) + place * call.axis_stride;
    keys[e] = place < 0 ? nowhere : static_cast<uint32_t>(offset);
  }
}

__global__ void KeysOfRows(Indices indices, int64_t count, int64_t rows, uint32_t nowhere,
                           uint32_t* keys) {
  for (int64_t i = FirstElement(); i < count; i += ElementStep()) {
    const int64_t place = PlaceAt(indices, i, rows);
    keys[i] = place < 0 ? nowhere : static_cast<uint32_t>(place);
  }
}

// Whether a group begins at i. Only whoever is there may touch the element that it goes to.
__device__ bool LeadsGroup(const Grouped& g, int64_t i) {
  const uint32_t key = g.keys[i];
  if (!g.scattered) return i == 0 || g.keys[i - 1] != key;
  for (int64_t j = 0; j < i; ++j) {
    if (g.keys[j] == key) return false;
  }
  return true;
}

// body(position) for each member of the group that begins at i, in order.
template <class Body>
__device__ void ForGroup(const Grouped& g, int64_t i, const Body& body) {
  const uint32_t key = g.keys[i];
  if (g.scattered) {
    for (int64_t j = i; j < g.count; ++j) {
      if (g.keys[j] == key) body(j);
    }
    return;
  }
  for (int64_t j = i; j < g.count && g.keys[j] == key; ++j) body(static_cast<int64_t>(g.order[j]));
}

// f(a, b) in the arithmetic of T: integers wrap, bool is or/and, NaN wins.
template <ScatterOp kOp, class T>
__device__ T Combine(T a, T b) {
  if constexpr (kOp == ScatterOp::kNone) {
    return b;
  } else if constexpr (kOp == ScatterOp::kMin || kOp == ScatterOp::kMax) {
    const Compute<T> x = Read(a), y = Read(b);
    const bool keeps = (kOp == ScatterOp::kMin ? x < y : x > y) || x != x;
    return keeps ? a : b;
  } else if constexpr (std::is_same_v<T, bool>) {
    return kOp == ScatterOp::kAdd ? a || b : a && b;
  } else if constexpr (std::is_integral_v<T>) {
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(kOp == ScatterOp::kAdd ? x + y : x * y);
  } else {
    const Compute<T> x = Read(a), y = Read(b);
    return Write<T>(kOp == ScatterOp::kAdd ? x + y : x * y);
  }
}

template <ScatterOp kOp, class T>
__global__ void ApplyUpdates(Grouped grouped, int64_t slice, uint32_t nowhere, const T* updates,
                             T* result) {
  for (int64_t e = FirstElement(); e < grouped.count * slice; e += ElementStep()) {
    const int64_t i = e / slice, k = e % slice;
    const uint32_t key = grouped.keys[i];
    if (key == nowhere || !LeadsGroup(grouped, i)) continue;
    const int64_t at = static_cast<int64_t>(key) * slice + k;
    T value = result[at];
    ForGroup(grouped, i,
             [&](int64_t position) { value = Combine<kOp>(value, updates[position * slice + k]); });
    result[at] = value;
  }
}

template <ScatterOp kOp, class T>
cudaError_t Apply(const Grouped& grouped, int64_t slice, uint32_t nowhere, const void* updates,
                  void* result, cudaStream_t stream) {
  return Launch(ApplyUpdates<kOp, T>, LinearGrid(grouped.count * slice), stream, grouped, slice,
                nowhere, static_cast<const T*>(updates), static_cast<T*>(result));
}

template <class F>
cudaError_t DispatchNumber(DType dtype, const F& f) {
  if (IsFloating(dtype)) return DispatchReal(dtype, f);
  switch (dtype) {
    case DType::kInt8: return f.template operator()<int8_t>();
    case DType::kUint8: return f.template operator()<uint8_t>();
    case DType::kBool: return f.template operator()<bool>();
    case DType::kInt32: return f.template operator()<int32_t>();
    case DType::kInt64: return f.template operator()<int64_t>();
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t ApplyAll(ScatterOp op, DType dtype, const Grouped& g, int64_t slice, uint32_t nowhere,
                     const void* updates, void* result, cudaStream_t stream) {
  switch (op) {
    case ScatterOp::kNone:
      return ForWidth(DTypeBits(dtype) / 8, [&](auto zero) {
        using T = decltype(zero);
        return Apply<ScatterOp::kNone, T>(g, slice, nowhere, updates, result, stream);
      });
    case ScatterOp::kAdd:
      return DispatchNumber(dtype, [&]<class T>() {
        return Apply<ScatterOp::kAdd, T>(g, slice, nowhere, updates, result, stream);
      });
    case ScatterOp::kMul:
      return DispatchNumber(dtype, [&]<class T>() {
        return Apply<ScatterOp::kMul, T>(g, slice, nowhere, updates, result, stream);
      });
    case ScatterOp::kMin:
      return DispatchNumber(dtype, [&]<class T>() {
        return Apply<ScatterOp::kMin, T>(g, slice, nowhere, updates, result, stream);
      });
    default:
      return DispatchNumber(dtype, [&]<class T>() {
        return Apply<ScatterOp::kMax, T>(g, slice, nowhere, updates, result, stream);
      });
  }
}

// Sums of 16-bit floats are rounded once, at the end.
template <class T>
__global__ void SumRows(Grouped grouped, GatherGradCall call, uint32_t nowhere) {
  using C = Compute<T>;
  const int64_t block = grouped.count * call.inner;
  for (int64_t e = FirstElement(); e < call.outer * block; e += ElementStep()) {
    const int64_t o = e / block, i = e % block / call.inner, k = e % call.inner;
    const uint32_t key = grouped.keys[i];
    if (key == nowhere || !LeadsGroup(grouped, i)) continue;
    const T* dy = static_cast<const T*>(call.dy) + o * block + k;
    C sum = 0;
    ForGroup(grouped, i, [&](int64_t position) { sum += Read(dy[position * call.inner]); });
    static_cast<T*>(call.result)[(o * call.rows + key) * call.inner + k] = Write<T>(sum);
  }
}

}  // namespace

bool ServesScatter(ScatterOp op, DType dtype) {
  const int bits = DTypeBits(dtype);
  if (op == ScatterOp::kNone) return bits >= 8 && bits % 8 == 0;
  return IsFloating(dtype) || dtype == DType::kInt8 || dtype == DType::kUint8 ||
         dtype == DType::kBool || dtype == DType::kInt32 || dtype == DType::kInt64;
}

size_t ScatterWorkspace(int64_t updates) { return SortWorkspace(updates); }

cudaError_t ScatterTuples(ScatterOp op, DType dtype, const Tuples& tuples, int64_t targets,
                          const int64_t* indices, const void* updates, void* result,
                          void* workspace, cudaStream_t stream) {
  if (tuples.count * tuples.slice == 0 || targets == 0) return cudaSuccess;
  const uint32_t nowhere = static_cast<uint32_t>(targets);
  cudaError_t error = Launch(KeysOfTuples, LinearGrid(tuples.count), stream, tuples, indices,
                             nowhere, KeysAt(workspace));
  if (error != cudaSuccess) return error;
  Grouped grouped;
  error = GroupByKey(tuples.count, nowhere, workspace, &grouped, stream);
  if (error != cudaSuccess) return error;
  return ApplyAll(op, dtype, grouped, tuples.slice, nowhere, updates, result, stream);
}

cudaError_t ScatterElements(ScatterOp op, DType dtype, const ElementsCall& call, int64_t targets,
                            const void* updates, void* workspace, cudaStream_t stream) {
  if (call.elements == 0 || targets == 0) return cudaSuccess;
  const uint32_t nowhere = static_cast<uint32_t>(targets);
  cudaError_t error =
      Launch(KeysOfElements, LinearGrid(call.elements), stream, call, nowhere, KeysAt(workspace));
  if (error != cudaSuccess) return error;
  Grouped grouped;
  error = GroupByKey(call.elements, nowhere, workspace, &grouped, stream);
  if (error != cudaSuccess) return error;
  return ApplyAll(op, dtype, grouped, 1, nowhere, updates, call.result, stream);
}

cudaError_t GatherGrad(const GatherGradCall& call, void* workspace, cudaStream_t stream) {
  const int64_t elements = call.outer * call.rows * call.inner;
  if (elements == 0) return cudaSuccess;
  cudaError_t error =
      cudaMemsetAsync(call.result, 0, elements * (DTypeBits(call.dtype) / 8), stream);
  if (error != cudaSuccess || call.count == 0) return error;
  const uint32_t nowhere = static_cast<uint32_t>(call.rows);
  error = Launch(KeysOfRows, LinearGrid(call.count), stream, call.indices, call.count, call.rows,
                 nowhere, KeysAt(workspace));
  if (error != cudaSuccess) return error;
  Grouped grouped;
  error = GroupByKey(call.count, nowhere, workspace, &grouped, stream);
  if (error != cudaSuccess) return error;
  return DispatchReal(call.dtype, [&]<class T>() {
    return Launch(SumRows<T>, LinearGrid(call.outer * call.count * call.inner), stream, grouped,
                  call, nowhere);
  });
}

}  // namespace onward::cuda

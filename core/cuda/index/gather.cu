// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements, GatherND, TensorScatter and ReverseSequence: elements by their size.
#include "core/cuda/index/place.cuh"

namespace onward::cuda {
namespace {

template <class T>
__global__ void GatherRows(GatherCall call) {
  const T* data = static_cast<const T*>(call.data);
  T* result = static_cast<T*>(call.result);
  const int64_t elements = call.outer * call.count * call.inner;
  for (int64_t e = FirstElement(); e < elements; e += ElementStep()) {
    const int64_t row = e / call.inner, o = row / call.count;
    const int64_t place = PlaceAt(call.indices, row % call.count, call.bound);
    result[e] = place < 0 ? Missing<T>(call.real)
                          : data[(o * call.bound + place) * call.inner + e % call.inner];
  }
}

template <class T>
__global__ void GatherEach(ElementsCall call) {
  const T* data = static_cast<const T*>(call.data);
  T* result = static_cast<T*>(call.result);
  for (int64_t e = FirstElement(); e < call.elements; e += ElementStep()) {
    const int64_t place = PlaceAt(call.indices, e, call.bound);
    result[e] =
        place < 0 ? Missing<T>(call.real) : data[OffsetAt(call.grid, e) + place * call.axis_stride];
  }
}

template <class T>
__global__ void GatherSlices(Tuples tuples, bool real, const T* data, const int64_t* indices,
                             T* result) {
  for (int64_t e = FirstElement(); e < tuples.count * tuples.slice; e += ElementStep()) {
    const int64_t offset = TupleOffset(tuples, indices, e / tuples.slice);
    result[e] = offset < 0 ? Missing<T>(real) : data[offset + e % tuples.slice];
  }
}

template <class T>
__global__ void WriteSteps(TensorScatterCall call) {
  const T* update = static_cast<const T*>(call.update);
  T* cache = static_cast<T*>(call.cache);
  const int64_t elements = call.batch * call.outer * call.steps * call.inner;
  for (int64_t e = FirstElement(); e < elements; e += ElementStep()) {
    const int64_t row = e / call.inner, step = row % call.steps, lane = row / call.steps;
    const int64_t start = call.starts == nullptr ? 0 : call.starts[lane / call.outer];
    const int64_t end = call.circular ? call.all : call.all - call.steps + 1;
    if (start < 0 || (!call.circular && start >= end)) {
      Report(call.fault, start, lane / call.outer, 0, end);
      continue;
    }
    const int64_t place = call.circular ? (start % call.all + step) % call.all : start + step;
    cache[(lane * call.all + place) * call.inner + e % call.inner] = update[e];
  }
}

template <class T>
__global__ void ReverseLanes(ReverseCall call) {
  const T* data = static_cast<const T*>(call.data);
  T* result = static_cast<T*>(call.result);
  const int64_t times = call.time_first ? call.first : call.second;
  for (int64_t e = FirstElement(); e < call.first * call.second * call.inner; e += ElementStep()) {
    const int64_t row = e / call.inner, a = row / call.second, b = row % call.second;
    const int64_t time = call.time_first ? a : b;
    const int64_t length = call.lengths[call.time_first ? b : a];
    if (length < 0 || length > times) {
      Report(call.fault, length, call.time_first ? b : a, 0, times + 1);
    }
    const bool inside = time < length && length <= times;
    const int64_t from = inside ? length - 1 - time : time;
    const int64_t source = call.time_first ? from * call.second + b : a * call.second + from;
    result[e] = data[source * call.inner + e % call.inner];
  }
}

// Runs of elements that lie together are moved in the widest units.
void Widen(int64_t& inner, int& bytes) {
  while (bytes < 16 && inner % 2 == 0 && inner > 0) {
    inner /= 2;
    bytes *= 2;
  }
}

}  // namespace

cudaError_t Gather(const GatherCall& given, cudaStream_t stream) {
  GatherCall call = given;
  Widen(call.inner, call.bytes);
  const int64_t elements = call.outer * call.count * call.inner;
  if (elements == 0) return cudaSuccess;
  return ForWidth(call.bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(GatherRows<T>, LinearGrid(elements), stream, call);
  });
}

cudaError_t GatherElements(const ElementsCall& call, cudaStream_t stream) {
  if (call.elements == 0) return cudaSuccess;
  return ForWidth(call.bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(GatherEach<T>, LinearGrid(call.elements), stream, call);
  });
}

cudaError_t GatherTuples(const Tuples& tuples, int bytes, bool real, const void* data,
                         const int64_t* indices, void* result, cudaStream_t stream) {
  if (tuples.count * tuples.slice == 0) return cudaSuccess;
  return ForWidth(bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(GatherSlices<T>, LinearGrid(tuples.count * tuples.slice), stream, tuples, real,
                  static_cast<const T*>(data), indices, static_cast<T*>(result));
  });
}

cudaError_t TensorScatter(const TensorScatterCall& given, cudaStream_t stream) {
  TensorScatterCall call = given;
  Widen(call.inner, call.bytes);
  const int64_t elements = call.batch * call.outer * call.steps * call.inner;
  if (elements == 0) return cudaSuccess;
  return ForWidth(call.bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(WriteSteps<T>, LinearGrid(elements), stream, call);
  });
}

cudaError_t ReverseSequence(const ReverseCall& given, cudaStream_t stream) {
  ReverseCall call = given;
  Widen(call.inner, call.bytes);
  const int64_t elements = call.first * call.second * call.inner;
  if (elements == 0) return cudaSuccess;
  return ForWidth(call.bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(ReverseLanes<T>, LinearGrid(elements), stream, call);
  });
}

}  // namespace onward::cuda

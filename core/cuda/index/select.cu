// SPDX-License-Identifier: Apache-2.0
// OneHot and TopK.
#include "core/cuda/block.cuh"
#include "core/cuda/index/place.cuh"

namespace onward::cuda {
namespace {

// Where an index puts the hot element; -1 outside [-depth, depth).
__device__ int64_t HotPlace(const OneHotCall& call, int64_t i) {
  const auto of_real = [&](double index) -> int64_t {
    const double v = trunc(index), bound = static_cast<double>(call.depth);
    return v >= -bound && v < bound ? PlaceOf(static_cast<int64_t>(v), call.depth) : -1;
  };
  switch (call.indices_dtype) {
    case DType::kInt32: return PlaceOf(static_cast<const int32_t*>(call.indices)[i], call.depth);
    case DType::kInt64: return PlaceOf(static_cast<const int64_t*>(call.indices)[i], call.depth);
    case DType::kUint8: return PlaceOf(static_cast<const uint8_t*>(call.indices)[i], call.depth);
    case DType::kInt8: return PlaceOf(static_cast<const int8_t*>(call.indices)[i], call.depth);
    case DType::kDouble: return of_real(static_cast<const double*>(call.indices)[i]);
    case DType::kFloat16: return of_real(Read(static_cast<const __half*>(call.indices)[i]));
    case DType::kBFloat16: return of_real(Read(static_cast<const __nv_bfloat16*>(call.indices)[i]));
    default: return of_real(static_cast<const float*>(call.indices)[i]);
  }
}

template <class T>
__global__ void FillOneHot(OneHotCall call) {
  const T* values = static_cast<const T*>(call.values);
  T* result = static_cast<T*>(call.result);
  const int64_t elements = call.outer * call.depth * call.inner;
  for (int64_t e = FirstElement(); e < elements; e += ElementStep()) {
    const int64_t row = e / call.inner;
    const int64_t place = HotPlace(call, row / call.depth * call.inner + e % call.inner);
    result[e] = values[place == row % call.depth ? 1 : 0];
  }
}

template <class C>
struct Ranked {
  C key;
  int64_t index;
};

// Whether a goes before b: NaN is the largest, of equal keys the earlier one is first.
template <class C>
__device__ bool Before(const Ranked<C>& a, const Ranked<C>& b, bool largest) {
  const bool a_nan = a.key != a.key, b_nan = b.key != b.key;
  if (a_nan || b_nan) {
    if (a_nan && b_nan) return a.index < b.index;
    return a_nan == largest;
  }
  if (a.key != b.key) return largest ? a.key > b.key : a.key < b.key;
  return a.index < b.index;
}

template <class T>
struct Lane {
  const T* from;
  int64_t step, result, result_step;

  __device__ Lane(const TopKCall& call, int64_t line) {
    const int64_t o = line / call.rows.inner, i = line % call.rows.inner;
    from = static_cast<const T*>(call.data) + o * call.rows.n * call.rows.inner + i;
    step = call.rows.inner;
    result = o * call.k * call.rows.inner + i;
    result_step = call.rows.inner;
  }
  __device__ Ranked<Compute<T>> At(int64_t i) const { return {Read(from[i * step]), i}; }
  __device__ void Put(const TopKCall& call, int64_t rank, int64_t index) const {
    const int64_t to = result + rank * result_step;
    if (call.values != nullptr) static_cast<T*>(call.values)[to] = from[index * step];
    if (call.indices != nullptr) call.indices[to] = index;
  }
};

constexpr int kSelectThreads = 128;

// A block works on one line: k times the first of those that come after the last one chosen.
template <class T>
__global__ void SelectBest(TopKCall call) {
  using C = Compute<T>;
  __shared__ int64_t shared[2][kSelectThreads];
  const int t = threadIdx.x;
  int turn = 0;  // the buffer that nobody reads any more
  for (int64_t line = blockIdx.x; line < call.rows.outer * call.rows.inner; line += gridDim.x) {
    const Lane<T> lane(call, line);
    int64_t chosen = -1;
    for (int64_t rank = 0; rank < call.k; ++rank) {
      const Ranked<C> last = chosen < 0 ? Ranked<C>{C(0), -1} : lane.At(chosen);
      int64_t best = -1;
      for (int64_t i = t; i < call.rows.n; i += kSelectThreads) {
        const Ranked<C> next = lane.At(i);
        if (chosen >= 0 && !Before(last, next, call.largest)) continue;
        if (best < 0 || Before(next, lane.At(best), call.largest)) best = i;
      }
      shared[turn][t] = best;
      __syncthreads();
      best = -1;
      for (int other = 0; other < kSelectThreads; ++other) {
        const int64_t i = shared[turn][other];
        if (i >= 0 && (best < 0 || Before(lane.At(i), lane.At(best), call.largest))) best = i;
      }
      turn ^= 1;
      chosen = best;
      if (t == 0) lane.Put(call, rank, chosen);
    }
  }
}

// An element's rank is the number of those before it.
template <class T>
__global__ void RankAll(TopKCall call) {
  const int64_t elements = call.rows.outer * call.rows.n * call.rows.inner;
  for (int64_t e = FirstElement(); e < elements; e += ElementStep()) {
    const Lane<T> lane(call, e / call.rows.n);
    const auto own = lane.At(e % call.rows.n);
    int64_t rank = 0;
    for (int64_t i = 0; i < call.rows.n && rank < call.k; ++i) {
      if (Before(lane.At(i), own, call.largest)) ++rank;
    }
    if (rank < call.k) lane.Put(call, rank, own.index);
  }
}

constexpr int64_t kFewBest = 32, kShortLine = 512, kLongestRanked = 1 << 16;

}  // namespace

bool ServesOneHot(DType indices) {
  return IsFloating(indices) || indices == DType::kInt32 || indices == DType::kInt64 ||
         indices == DType::kUint8 || indices == DType::kInt8;
}

cudaError_t OneHot(const OneHotCall& call, cudaStream_t stream) {
  const int64_t elements = call.outer * call.depth * call.inner;
  if (elements == 0) return cudaSuccess;
  return ForWidth(call.bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(FillOneHot<T>, LinearGrid(elements), stream, call);
  });
}

bool ServesTopK(DType dtype, const AxisRows& rows, int64_t k) {
  const bool type = IsFloating(dtype) || dtype == DType::kInt32 || dtype == DType::kInt64 ||
                    dtype == DType::kUint32 || dtype == DType::kUint64;
  return type && k >= 0 && k <= rows.n && (k <= kFewBest || rows.n <= kLongestRanked);
}

cudaError_t TopK(const TopKCall& call, cudaStream_t stream) {
  const int64_t lines = call.rows.outer * call.rows.inner;
  if (lines == 0 || call.k == 0) return cudaSuccess;
  const auto run = [&]<class T>() {
    if (call.k <= kFewBest && call.rows.n > kShortLine) {
      return Launch(SelectBest<T>, {dim3(GridFor(lines)), dim3(kSelectThreads)}, stream, call);
    }
    return Launch(RankAll<T>, LinearGrid(lines * call.rows.n), stream, call);
  };
  return IsFloating(call.dtype) ? DispatchReal(call.dtype, run)
                                : DispatchWideInteger(call.dtype, run);
}

}  // namespace onward::cuda

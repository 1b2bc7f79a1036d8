// SPDX-License-Identifier: Apache-2.0
// ArgMax, ArgMin, CumSum and CumProd along the axis n of [outer, n, inner].
#include "core/cuda/reduce/fold.cuh"

namespace onward::cuda {
namespace {

template <class C>
struct Candidate {
  C value;
  int64_t index;
};

// Whether b is chosen over a. NaN is larger and smaller than anything, as in numpy; of equal ones
// the first or the last is chosen, so the order of comparing does not matter.
template <class C>
__device__ bool Takes(const Candidate<C>& b, const Candidate<C>& a, ArgOptions options) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return b_nan;
  if (!a_nan && a.value != b.value) {
    return options.largest ? b.value > a.value : b.value < a.value;
  }
  return options.last ? b.index > a.index : b.index < a.index;
}

constexpr int kArgRows = 8;

// A block has kArgRows threads for each of its neighbouring results.
template <class T>
__global__ void ArgKernel(AxisRows rows, ArgOptions options, const T* data, int64_t* result) {
  using C = Compute<T>;
  __shared__ C values[kReduceThreads];
  __shared__ int64_t indices[kReduceThreads];
  constexpr int kColumns = kReduceThreads / kArgRows;
  const int column = threadIdx.x % kColumns, row = threadIdx.x / kColumns;
  const int64_t outputs = rows.outer * rows.inner;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kColumns;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kColumns; first < outputs;
       first += stride) {
    const int64_t output = first + column;
    const bool active = output < outputs;
    const T* x =
        data + (active ? output / rows.inner * rows.n * rows.inner + output % rows.inner : 0);
    // Rows beyond the axis repeat its first element, which changes nothing.
    Candidate<C> best = {Read(x[0]), 0};
    for (int64_t i = row; i < rows.n; i += kArgRows) {
      const Candidate<C> next = {Read(x[i * rows.inner]), i};
      if (Takes(next, best, options)) best = next;
    }
    // As in FoldKernel, one barrier a step is enough.
    for (int half = kArgRows / 2; half > 0; half /= 2) {
      if (row >= half && row < 2 * half) {
        values[threadIdx.x] = best.value;
        indices[threadIdx.x] = best.index;
      }
      __syncthreads();
      if (row < half) {
        const int at = threadIdx.x + half * kColumns;
        const Candidate<C> next = {values[at], indices[at]};
        if (Takes(next, best, options)) best = next;
      }
    }
    if (active && row == 0) result[output] = best.index;
  }
}

template <class Carry>
__device__ Carry NextCarry(bool product, Carry a, Carry b) {
  return product ? WrapMul(a, b) : WrapAdd(a, b);
}

// A thread walks one line in order; floats are carried in double. The result may be the data.
template <class T>
__global__ void CumulateLines(AxisRows rows, CumulateOptions options, const T* data, T* result) {
  using Carry = std::conditional_t<kIsReal<T>, double, T>;
  const int64_t lines = rows.outer * rows.inner;
  for (int64_t line = FirstElement(); line < lines; line += ElementStep()) {
    const int64_t at = line / rows.inner * rows.n * rows.inner + line % rows.inner;
    Carry carry = options.product ? Carry(1) : Carry(0);
    for (int64_t k = 0; k < rows.n; ++k) {
      const int64_t i = at + (options.reverse ? rows.n - 1 - k : k) * rows.inner;
      const Carry next = NextCarry(options.product, carry, static_cast<Carry>(Read(data[i])));
      result[i] = Write<T>(options.exclusive ? carry : next);
      carry = next;
    }
  }
}

constexpr int kScanThreads = 128;

// A block walks one line, a tile of as many elements as it has threads at a time: sums up to each
// element by doubling distances.
template <class T>
__global__ void CumulateTiles(AxisRows rows, CumulateOptions options, const T* data, T* result) {
  using Carry = std::conditional_t<kIsReal<T>, double, T>;
  __shared__ Carry shared[2][kScanThreads];
  const int t = threadIdx.x;
  const Carry neutral = options.product ? Carry(1) : Carry(0);
  const int64_t lines = rows.outer * rows.inner;
  int turn = 0;  // the buffer that nobody reads any more
  for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
    const int64_t at = line / rows.inner * rows.n * rows.inner + line % rows.inner;
    Carry carry = neutral;
    for (int64_t begin = 0; begin < rows.n; begin += kScanThreads) {
      const int64_t k = begin + t;
      const int64_t i = at + (options.reverse ? rows.n - 1 - k : k) * rows.inner;
      const bool active = k < rows.n;
      Carry sum = active ? static_cast<Carry>(Read(data[i])) : neutral;
      for (int distance = 1; distance < kScanThreads; distance *= 2) {
        shared[turn][t] = sum;
        __syncthreads();
        if (t >= distance) sum = NextCarry(options.product, shared[turn][t - distance], sum);
        turn ^= 1;
      }
      shared[turn][t] = sum;
      __syncthreads();
      const Carry before = t == 0 ? neutral : shared[turn][t - 1];
      const Carry total = shared[turn][kScanThreads - 1];
      turn ^= 1;
      if (active) {
        const Carry own = options.exclusive ? before : sum;
        result[i] = Write<T>(NextCarry(options.product, carry, own));
      }
      carry = NextCarry(options.product, carry, total);
    }
  }
}

}  // namespace

cudaError_t ArgReduce(DType dtype, const AxisRows& rows, ArgOptions options, const void* data,
                      int64_t* result, cudaStream_t stream) {
  const int64_t outputs = rows.outer * rows.inner;
  if (outputs == 0) return cudaSuccess;
  const auto run = [&]<class T>() {
    return Launch(ArgKernel<T>,
                  {dim3(GridFor(outputs, kReduceThreads / kArgRows)), dim3(kReduceThreads)}, stream,
                  rows, options, static_cast<const T*>(data), result);
  };
  switch (dtype) {
    case DType::kInt8: return run.template operator()<int8_t>();
    case DType::kUint8: return run.template operator()<uint8_t>();
    default: return IsFloating(dtype) ? DispatchReal(dtype, run) : DispatchWideInteger(dtype, run);
  }
}

cudaError_t Cumulate(DType dtype, const AxisRows& rows, CumulateOptions options, const void* data,
                     void* result, cudaStream_t stream) {
  constexpr int64_t kManyLines = 4096;
  const int64_t lines = rows.outer * rows.inner;
  if (lines == 0 || rows.n == 0) return cudaSuccess;
  const bool tiles = lines < kManyLines && rows.n > kScanThreads;
  const auto run = [&]<class T>() {
    const T* from = static_cast<const T*>(data);
    T* to = static_cast<T*>(result);
    if (tiles) {
      return Launch(CumulateTiles<T>, {dim3(GridFor(lines)), dim3(kScanThreads)}, stream, rows,
                    options, from, to);
    }
    return Launch(CumulateLines<T>, LinearGrid(lines, kScanThreads), stream, rows, options, from,
                  to);
  };
  return IsFloating(dtype) ? DispatchReal(dtype, run) : DispatchWideInteger(dtype, run);
}

}  // namespace onward::cuda

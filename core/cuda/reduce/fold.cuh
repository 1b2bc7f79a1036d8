// SPDX-License-Identifier: Apache-2.0
// The kernels of a reduction: each element is mapped, the mapped values are folded.
//
// As on the CPU, floats are folded in float for a bounded number of steps, then go into a double
// total. How work is cut depends on the shape alone.
#pragma once

#include "core/cuda/reduce/reduce.h"
#include "core/cuda/types.cuh"

namespace onward::cuda {

inline constexpr int kReduceThreads = 256;

template <class T>
using Widest = std::conditional_t<kIsReal<T>, double,
                                  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// Integers wrap around.
template <class T>
__device__ inline T WrapAdd(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class T>
__device__ inline T WrapMul(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// A fold has the types of lanes and totals, the neutral value, Map(element, op, shift), Join and
// Finish(total, op, count, shift), which gives the result.
template <class T, class TotalType>
struct SumFold {
  using In = T;
  using Total = TotalType;
  using Lane = std::conditional_t<kIsReal<T>, Compute<T>, Total>;
  static constexpr int kSteps = 64;  // of a lane before it joins the total

  static __device__ Total Neutral() { return Total(0); }
  static __device__ Lane Map(T element, ReduceOp op, double shift) {
    const auto x = Read(element);
    switch (op) {
      case ReduceOp::kL1:
        if constexpr (std::is_unsigned_v<T>) {
          return static_cast<Lane>(x);
        } else {
          return x < 0 ? WrapMul(static_cast<Lane>(x), Lane(-1)) : static_cast<Lane>(x);
        }
      case ReduceOp::kL2:
      case ReduceOp::kSumSquare: return WrapMul(static_cast<Lane>(x), static_cast<Lane>(x));
      case ReduceOp::kLogSumExp:
        if constexpr (kIsReal<T>) return Exp(x - static_cast<Compute<T>>(shift));
        return Lane(0);
      default: return static_cast<Lane>(x);
    }
  }
  static __device__ Total Join(Total a, Total b) { return WrapAdd(a, b); }
  static __device__ Lane JoinLanes(Lane a, Lane b) { return WrapAdd(a, b); }
  static __device__ Total Finish(Total total, ReduceOp op, int64_t count, double shift) {
    if (op == ReduceOp::kMean) {
      if constexpr (std::is_integral_v<Total>) {
        return count == 0 ? Total(0) : total / static_cast<Total>(count);
      } else {
        return total / static_cast<Total>(count);
      }
    }
    if constexpr (std::is_floating_point_v<Total>) {
      if (op == ReduceOp::kL2) return sqrt(total);
      if (op == ReduceOp::kLogSum) return log(total);
      if (op == ReduceOp::kLogSumExp) return log(total) + shift;
    }
    return total;
  }
};

template <class T>
struct ProductFold {
  using In = T;
  using Total = Widest<T>;
  using Lane = Total;
  static constexpr int kSteps = 0;

  static __device__ Total Neutral() { return Total(1); }
  static __device__ Lane Map(T x, ReduceOp, double) { return static_cast<Lane>(Read(x)); }
  static __device__ Total Join(Total a, Total b) { return WrapMul(a, b); }
  static __device__ Lane JoinLanes(Lane a, Lane b) { return WrapMul(a, b); }
  static __device__ Total Finish(Total total, ReduceOp, int64_t, double) { return total; }
};

// kLogSumExp asks for the largest element as its shift; infinite ones would give infinity -
// infinity, so zero stands for them.
template <class T, bool kLargest>
struct ExtremeFold {
  using In = T;
  using Total = Compute<T>;
  using Lane = Total;
  static constexpr int kSteps = 0;

  static __device__ Total Neutral() {
    if constexpr (kIsReal<T>) {
      return kLargest ? -Infinity<Total>() : Infinity<Total>();
    } else {
      return kLargest ? kLowest<T> : kMost<T>;
    }
  }
  static __device__ Lane Map(T x, ReduceOp, double) { return Read(x); }
  static __device__ Total Join(Total a, Total b) { return kLargest ? NanMax(a, b) : NanMin(a, b); }
  static __device__ Lane JoinLanes(Lane a, Lane b) { return Join(a, b); }
  static __device__ Total Finish(Total total, ReduceOp op, int64_t, double) {
    if constexpr (kIsReal<T>) {
      if (op == ReduceOp::kLogSumExp &&
          (total == Infinity<Total>() || total == -Infinity<Total>())) {
        return Total(0);
      }
    }
    return total;
  }
};

// L2 of integers is a real number that is cut off, and saturates.
template <class To, class From>
__device__ inline To ResultOf(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return x >= static_cast<From>(kMost<To>) ? kMost<To> : static_cast<To>(x);
  } else {
    return Write<To>(x);
  }
}

// Elements [begin, end) of one result, every `step`-th.
template <class Fold>
__device__ typename Fold::Total FoldElements(const typename Fold::In* data,
                                             const StridedGrid& reduced, int64_t begin, int64_t end,
                                             int64_t step, ReduceOp op, double shift) {
  using Lane = typename Fold::Lane;
  using Total = typename Fold::Total;
  Total total = Fold::Neutral();
  if constexpr (Fold::kSteps == 0) {
    for (int64_t i = begin; i < end; i += step) {
      total = Fold::JoinLanes(total, Fold::Map(data[OffsetAt(reduced, i)], op, shift));
    }
  } else {
    while (begin < end) {
      Lane lane = static_cast<Lane>(Fold::Neutral());
      for (int k = 0; k < Fold::kSteps && begin < end; ++k, begin += step) {
        lane = Fold::JoinLanes(lane, Fold::Map(data[OffsetAt(reduced, begin)], op, shift));
      }
      total = Fold::Join(total, static_cast<Total>(lane));
    }
  }
  return total;
}

// Out is a result, or a double for shifts. Writes totals instead where there are several pieces.
template <class Fold, class Out>
__global__ void FoldKernel(ReduceWork work, ReduceOp op, const typename Fold::In* data,
                           const double* shifts, Out* results, typename Fold::Total* totals) {
  using Total = typename Fold::Total;
  __shared__ Total shared[kReduceThreads];
  const int column = threadIdx.x % work.columns, row = threadIdx.x / work.columns;
  const int64_t piece = blockIdx.y;
  const int64_t begin = work.count * piece / work.pieces;
  const int64_t end = work.count * (piece + 1) / work.pieces;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * work.columns;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * work.columns; first < work.outputs;
       first += stride) {
    const int64_t output = first + column;
    const bool active = output < work.outputs;
    const double shift = active && shifts != nullptr ? shifts[output] : 0.0;
    Total total = Fold::Neutral();
    if (active) {
      total = FoldElements<Fold>(data + OffsetAt(work.kept, output), work.reduced, begin + row, end,
                                 work.rows, op, shift);
    }
    // The cell read last is row 1's, which the next results write after another barrier: there
    // are 1 or at least 4 rows.
    for (int half = work.rows / 2; half > 0; half /= 2) {
      if (row >= half && row < 2 * half) shared[threadIdx.x] = total;
      __syncthreads();
      if (row < half) total = Fold::Join(total, shared[threadIdx.x + half * work.columns]);
    }
    if (active && row == 0) {
      if (totals != nullptr) {
        totals[output * work.pieces + piece] = total;
      } else {
        results[output] = ResultOf<Out>(Fold::Finish(total, op, work.count, shift));
      }
    }
  }
}

template <class Fold, class Out>
__global__ void JoinPieces(ReduceWork work, ReduceOp op, const typename Fold::Total* totals,
                           const double* shifts, Out* results) {
  for (int64_t i = FirstElement(); i < work.outputs; i += ElementStep()) {
    auto total = totals[i * work.pieces];
    for (int64_t p = 1; p < work.pieces; ++p)
      total = Fold::Join(total, totals[i * work.pieces + p]);
    const double shift = shifts == nullptr ? 0.0 : shifts[i];
    results[i] = ResultOf<Out>(Fold::Finish(total, op, work.count, shift));
  }
}

template <class Fold, class Out>
cudaError_t RunFold(const ReduceWork& work, ReduceOp op, const void* data, const double* shifts,
                    Out* results, void* workspace, cudaStream_t stream) {
  using Total = typename Fold::Total;
  Total* totals = work.pieces > 1 ? static_cast<Total*>(workspace) : nullptr;
  const unsigned blocks = GridFor(work.outputs, work.columns);
  const unsigned threads = static_cast<unsigned>(work.columns * work.rows);
  const cudaError_t error = Launch(
      FoldKernel<Fold, Out>, {dim3(blocks, static_cast<unsigned>(work.pieces)), dim3(threads)},
      stream, work, op, static_cast<const typename Fold::In*>(data), shifts, results, totals);
  if (error != cudaSuccess || totals == nullptr) return error;
  return Launch(JoinPieces<Fold, Out>, LinearGrid(work.outputs, kReduceThreads), stream, work, op,
                static_cast<const Total*>(totals), shifts, results);
}

cudaError_t ReduceSums(ReduceOp op, DType dtype, const ReduceWork& work, const void* data,
                       const double* shifts, void* result, void* workspace, cudaStream_t stream);
cudaError_t ReduceProducts(DType dtype, const ReduceWork& work, const void* data, void* result,
                           void* workspace, cudaStream_t stream);
cudaError_t ReduceExtremes(ReduceOp op, DType dtype, const ReduceWork& work, const void* data,
                           void* result, void* workspace, cudaStream_t stream);
// What kLogSumExp subtracts, one number per result.
cudaError_t ReduceShifts(DType dtype, const ReduceWork& work, const void* data, double* shifts,
                         void* workspace, cudaStream_t stream);

}  // namespace onward::cuda

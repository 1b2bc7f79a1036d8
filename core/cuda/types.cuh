// SPDX-License-Identifier: Apache-2.0
// The element types of device code: what arithmetic is done in, and the way from a DType to them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/dtype.h"
#include "core/cuda/grid.h"
#include "core/cuda/launch.h"
#include "core/cuda/strided.h"

namespace onward::cuda {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
// Elements that are added up as real numbers.
template <class T>
inline constexpr bool kIsReal = std::is_floating_point_v<T> || kIsHalf<T>;

template <class T>
inline constexpr T kLowest = std::numeric_limits<T>::lowest();
template <class T>
inline constexpr T kMost = std::numeric_limits<T>::max();

// What arithmetic is done in.
template <class T>
using Compute = std::conditional_t<kIsHalf<T>, float, T>;

template <class T>
__device__ inline Compute<T> Read(T x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __half2float(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __bfloat162float(x);
  } else {
    return x;
  }
}

// Rounds once to the 16-bit types, by way of float.
template <class T, class C>
__device__ inline T Write(C x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

template <class T>
__device__ inline T Infinity() {
  return static_cast<T>(__int_as_float(0x7f800000));
}
template <class T>
__device__ inline T NotANumber() {
  return static_cast<T>(__int_as_float(0x7fc00000));
}

__device__ inline float Exp(float x) { return expf(x); }
__device__ inline double Exp(double x) { return exp(x); }
__device__ inline float Log(float x) { return logf(x); }
__device__ inline double Log(double x) { return log(x); }
__device__ inline float Sqrt(float x) { return sqrtf(x); }
__device__ inline double Sqrt(double x) { return sqrt(x); }

// The larger and the smaller of two numbers; NaN wins in both.
template <class T>
__device__ inline T NanMax(T a, T b) {
  return a != a || a > b ? a : b;
}
template <class T>
__device__ inline T NanMin(T a, T b) {
  return a != a || a < b ? a : b;
}

// Sets of types; Dispatch returns f.template operator()<T>() for the member that `dtype` names,
// cudaErrorInvalidValue where none does: factories ask for what is served only.
template <class F>
cudaError_t DispatchReal(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kFloat: return f.template operator()<float>();
    case DType::kDouble: return f.template operator()<double>();
    case DType::kFloat16: return f.template operator()<__half>();
    case DType::kBFloat16: return f.template operator()<__nv_bfloat16>();
    default: return cudaErrorInvalidValue;
  }
}

template <class F>
cudaError_t DispatchWideInteger(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kInt32: return f.template operator()<int32_t>();
    case DType::kInt64: return f.template operator()<int64_t>();
    case DType::kUint32: return f.template operator()<uint32_t>();
    case DType::kUint64: return f.template operator()<uint64_t>();
    default: return cudaErrorInvalidValue;
  }
}

__device__ inline int64_t OffsetAt(const StridedGrid& grid, int64_t i) {
  int64_t offset = 0;
  for (int d = grid.rank - 1; d > 0; --d) {
    offset += i % grid.dims[d] * grid.strides[d];
    i /= grid.dims[d];
  }
  return grid.rank == 0 ? 0 : offset + i * grid.strides[0];
}

// Blocks for `tasks` of one block each; kernels stride over what is left.
inline unsigned GridFor(int64_t tasks) {
  return static_cast<unsigned>(tasks < kMaxBlocks ? tasks : kMaxBlocks);
}
// The same where a block has `each` of the tasks.
inline unsigned GridFor(int64_t tasks, int each) { return GridFor((tasks + each - 1) / each); }

}  // namespace onward::cuda

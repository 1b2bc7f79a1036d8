// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

#include "core/cuda/grid.h"
#include "core/cuda/movement/fill.h"
#include "core/cuda/movement/width.h"

namespace onward::cuda {
namespace {

template <typename T>
T ElementAs(const Element& element) {
  T value;
  std::memcpy(&value, &element, sizeof(T));
  return value;
}

template <typename T>
__global__ void Fill(int64_t n, const T value, T* to) {
  for (int64_t i = FirstElement(); i < n; i += ElementStep()) to[i] = value;
}

template <typename T>
__global__ void Eye(int64_t n, int64_t columns, int64_t k, const T value, T* to) {
  for (int64_t i = FirstElement(); i < n; i += ElementStep()) {
    to[i] = i % columns - i / columns == k ? value : T{};
  }
}

template <typename T>
__global__ void KeepTriangle(const Triangle t, const T* from, T* to) {
  const int64_t k = t.k_at == nullptr ? t.k : *t.k_at;
  for (int64_t i = FirstElement(); i < t.elements; i += ElementStep()) {
    const int64_t beyond = i % t.columns - i / t.columns % t.rows;
    const bool kept = t.upper ? beyond >= k : beyond <= k;
    to[i] = kept ? from[i] : T{};
  }
}

__device__ void Assign(float* to, double x) { *to = static_cast<float>(x); }
__device__ void Assign(double* to, double x) { *to = x; }
__device__ void Assign(__half* to, double x) { *to = __float2half_rn(static_cast<float>(x)); }
__device__ void Assign(__nv_bfloat16* to, double x) {
  *to = __float2bfloat16_rn(static_cast<float>(x));
}

template <typename T, typename C>
__global__ void RealRange(int64_t n, C start, C delta, T* to) {
  for (int64_t i = FirstElement(); i < n; i += ElementStep()) {
    Assign(to + i, start + static_cast<C>(i) * delta);
  }
}

template <typename T>
__global__ void IntegerRange(int64_t n, uint64_t start, uint64_t delta, T* to) {
  for (int64_t i = FirstElement(); i < n; i += ElementStep()) {
    to[i] = static_cast<T>(start + static_cast<uint64_t>(i) * delta);
  }
}

template <typename T, typename C>
cudaError_t Reals(const Range& range, void* to, cudaStream_t stream) {
  return Launch(RealRange<T, C>, LinearGrid(range.elements), stream, range.elements,
                static_cast<C>(range.start), static_cast<C>(range.delta), static_cast<T*>(to));
}

template <typename T>
cudaError_t Integers(const Range& range, void* to, cudaStream_t stream) {
  return Launch(IntegerRange<T>, LinearGrid(range.elements), stream, range.elements,
                static_cast<uint64_t>(range.integer_start),
                static_cast<uint64_t>(range.integer_delta), static_cast<T*>(to));
}

}  // namespace

cudaError_t LaunchFill(int64_t elements, int element_bytes, const Element& value, void* to,
                       cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  return ForWidth(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(Fill<T>, LinearGrid(elements), stream, elements, ElementAs<T>(value),
                  static_cast<T*>(to));
  });
}

cudaError_t LaunchEye(int64_t rows, int64_t columns, int64_t k, int element_bytes,
                      const Element& value, void* to, cudaStream_t stream) {
  const int64_t n = rows * columns;
  if (n == 0) return cudaSuccess;
  return ForWidth(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(Eye<T>, LinearGrid(n), stream, n, columns, k, ElementAs<T>(value),
                  static_cast<T*>(to));
  });
}

cudaError_t LaunchTriangle(const Triangle& triangle, int element_bytes, const void* from, void* to,
                           cudaStream_t stream) {
  if (triangle.elements == 0) return cudaSuccess;
  return ForWidth(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(KeepTriangle<T>, LinearGrid(triangle.elements), stream, triangle,
                  static_cast<const T*>(from), static_cast<T*>(to));
  });
}

cudaError_t LaunchRange(const Range& range, void* to, cudaStream_t stream) {
  if (range.elements == 0) return cudaSuccess;
  switch (range.type) {
    case RangeType::kFloat: return Reals<float, float>(range, to, stream);
    case RangeType::kDouble: return Reals<double, double>(range, to, stream);
    case RangeType::kHalf: return Reals<__half, float>(range, to, stream);
    case RangeType::kBFloat16: return Reals<__nv_bfloat16, float>(range, to, stream);
    case RangeType::kInt16: return Integers<int16_t>(range, to, stream);
    case RangeType::kInt32: return Integers<int32_t>(range, to, stream);
    case RangeType::kInt64: return Integers<int64_t>(range, to, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/commit.h"
#include "core/cuda/grid.h"
#include "core/cuda/movement/width.h"

namespace onward::cuda {
namespace {

template <typename Bits>
__global__ void FindInfiniteBits(const Bits* data, int64_t n, Bits exponent, uint32_t* found) {
  bool any = false;
  for (int64_t i = FirstElement(); i < n; i += ElementStep()) {
    any |= (data[i] & exponent) == exponent;
  }
  if (any) atomicOr(found, 1u);
}

template <typename Bits>
cudaError_t Find(const void* data, int64_t n, uint64_t exponent, uint32_t* found,
                 cudaStream_t stream) {
  return Launch(FindInfiniteBits<Bits>, LinearGrid(n), stream, static_cast<const Bits*>(data), n,
                static_cast<Bits>(exponent), found);
}

__global__ void Decide(const uint32_t* words, int count, const Fault* fault, uint32_t* stop) {
  bool any = threadIdx.x == 0 && fault != nullptr && fault->step != 0;
  for (int64_t i = FirstElement(); i < count; i += ElementStep()) any |= words[i] != 0;
  if (any) atomicExch(stop, 1u);
}

template <class T>
__global__ void CopyAll(const uint32_t* stop, T* to, const T* from, int64_t n) {
  if (*stop != 0) return;
  for (int64_t i = FirstElement(); i < n; i += ElementStep()) to[i] = from[i];
}

}  // namespace

cudaError_t FindInfinite(const void* data, int64_t elements, FloatFormat format, uint32_t* found,
                         cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  switch (format.bytes) {
    case 2: return Find<uint16_t>(data, elements, format.exponent, found, stream);
    case 4: return Find<uint32_t>(data, elements, format.exponent, found, stream);
    default: return Find<uint64_t>(data, elements, format.exponent, found, stream);
  }
}

cudaError_t SetStop(const uint32_t* words, int count, const Fault* fault, uint32_t* stop,
                    cudaStream_t stream) {
  const int64_t threads = count < kThreadsPerBlock ? count : kThreadsPerBlock;
  return Launch(Decide, LinearGrid(threads < 1 ? 1 : threads), stream, words, count, fault, stop);
}

cudaError_t CopyUnless(const uint32_t* stop, void* to, const void* from, size_t bytes,
                       cudaStream_t stream) {
  if (bytes == 0 || to == from) return cudaSuccess;
  int width = 16;
  const uintptr_t places = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  while ((places | bytes) % static_cast<uintptr_t>(width) != 0) width /= 2;
  return ForWidth(width, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = static_cast<int64_t>(bytes / sizeof(T));
    return Launch(CopyAll<T>, LinearGrid(n), stream, stop, static_cast<T*>(to),
                  static_cast<const T*>(from), n);
  });
}

}  // namespace onward::cuda

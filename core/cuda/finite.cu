// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/finite.h"
#include "core/cuda/grid.h"

namespace onward::cuda {
namespace {

template <typename Bits>
__global__ void FindInfinite(const Bits* data, int64_t n, Bits exponent, int* found) {
  bool any = false;
  for (int64_t i = FirstElement(); i < n; i += ElementStep()) {
    any |= (data[i] & exponent) == exponent;
  }
  if (any) atomicOr(found, 1);
}

template <typename Bits>
cudaError_t Find(const void* data, int64_t n, uint64_t exponent, int* found, cudaStream_t stream) {
  return Launch(FindInfinite<Bits>, LinearGrid(n), stream, static_cast<const Bits*>(data), n,
                static_cast<Bits>(exponent), found);
}

}  // namespace

cudaError_t LaunchFindInfinite(const void* data, int64_t elements, FloatFormat format, int* found,
                               cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  switch (format.bytes) {
    case 2: return Find<uint16_t>(data, elements, format.exponent, found, stream);
    case 4: return Find<uint32_t>(data, elements, format.exponent, found, stream);
    default: return Find<uint64_t>(data, elements, format.exponent, found, stream);
  }
}

}  // namespace onward::cuda

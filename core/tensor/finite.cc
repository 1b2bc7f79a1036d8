// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/finite.h"

#include <atomic>
#include <cstdint>

#include "core/base/parallel.h"

namespace onward {
namespace {

constexpr int64_t kGrain = 65536;  // elements

// Of numbers that are not finite, all bits of the exponent are set: adding its lowest
// bit to them, and to them alone, carries into the sign.
template <typename Bits>
bool AnyNotFinite(const Bits* bits, int64_t n, Bits exponent) {
  const Bits lowest = exponent & (~exponent + 1), sign = exponent + lowest;
  Bits carried = 0;
#pragma omp simd reduction(| : carried)
  for (int64_t i = 0; i < n; ++i) carried |= static_cast<Bits>((bits[i] & exponent) + lowest);
  return (carried & sign) != 0;
}

template <typename Bits>
bool AllFiniteBits(const Tensor& tensor, Bits exponent) {
  const auto* bits = static_cast<const Bits*>(tensor.raw());
  std::atomic<bool> finite = true;
  ParallelFor(tensor.elements(), kGrain, [&](int64_t begin, int64_t end) {
    if (AnyNotFinite(bits + begin, end - begin, exponent)) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite.load();
}

}  // namespace

bool AllFinite(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat: return AllFiniteBits<uint32_t>(tensor, 0x7f800000u);
    case DType::kDouble: return AllFiniteBits<uint64_t>(tensor, 0x7ff0000000000000u);
    case DType::kFloat16: return AllFiniteBits<uint16_t>(tensor, 0x7c00u);
    case DType::kBFloat16: return AllFiniteBits<uint16_t>(tensor, 0x7f80u);
    default: return true;
  }
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/grid.h"
#include "core/cuda/movement/pad.h"
#include "core/cuda/movement/width.h"
#include "core/cuda/position.h"

namespace onward::cuda {
namespace {

constexpr int64_t kNone = -1;

// Where position p of an axis of n comes from, p outside [0, n) too.
__device__ int64_t SourceOf(PadMode mode, int64_t p, int64_t n) {
  if (p >= 0 && p < n) return p;
  switch (mode) {
    case PadMode::kEdge: return p < 0 ? 0 : n - 1;
    case PadMode::kWrap: return (p % n + n) % n;
    case PadMode::kReflect: {
      if (n == 1) return 0;
      const int64_t period = 2 * (n - 1);
      const int64_t q = (p % period + period) % period;
      return q < n ? q : period - q;
    }
    default: return kNone;
  }
}

template <typename T>
__global__ void PadElements(const PadPlan plan, const T* from, const T* value, T* to) {
  const T constant = value == nullptr ? T{} : *value;
  for (int64_t i = FirstElement(); i < plan.elements; i += ElementStep()) {
    const Position<kMaxPadRank> at(plan.dims, plan.rank, plan.elements, i);
    int64_t offset = 0;
    bool outside = false;
#pragma unroll
    for (int d = 0; d < kMaxPadRank; ++d) {
      if (d >= plan.rank) continue;
      const int64_t source = SourceOf(plan.mode, at.index[d] - plan.low[d], plan.kept[d]);
      outside |= source == kNone;
      offset += (source + plan.crop[d]) * plan.strides[d];
    }
    to[i] = outside ? constant : from[offset];
  }
}

}  // namespace

cudaError_t LaunchPad(const PadPlan& plan, int element_bytes, const void* from, const void* value,
                      void* to, cudaStream_t stream) {
  if (plan.elements == 0) return cudaSuccess;
  return ForWidth(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    return Launch(PadElements<T>, LinearGrid(plan.elements), stream, plan,
                  static_cast<const T*>(from), static_cast<const T*>(value), static_cast<T*>(to));
  });
}

}  // namespace onward::cuda

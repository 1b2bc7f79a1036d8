// SPDX-License-Identifier: Apache-2.0
// How device code tells of a number that it cannot use.
#pragma once

#include "core/cuda/fault.h"
#include "core/cuda/launch.h"

namespace onward::cuda {

// The first one stays.
__device__ inline void Report(const FaultPlace& place, int64_t value, int64_t position, int64_t low,
                              int64_t high) {
  if (place.fault == nullptr) return;
  if (atomicCAS(&place.fault->step, 0u, static_cast<uint32_t>(place.step)) != 0) return;
  place.fault->value = value;
  place.fault->position = position;
  place.fault->low = low;
  place.fault->high = high;
}

}  // namespace onward::cuda

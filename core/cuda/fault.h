// SPDX-License-Identifier: Apache-2.0
// Where a kernel tells of a number that it cannot use (core/device/run_state.h).
#ifndef ONWARD_CORE_CUDA_FAULT_H_
#define ONWARD_CORE_CUDA_FAULT_H_

#include <cstdint>

#include "core/device/run_state.h"

namespace onward::cuda {

// No padding: kernels get these bytes as a parameter.
struct FaultPlace {
  Fault* fault = nullptr;  // null: nobody asks
  uint64_t step = 0;
};

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_FAULT_H_

// SPDX-License-Identifier: Apache-2.0
// Trading time for memory: values that wait long for their next reader are
// dropped and computed again just before it. The numbers stay the same, bit for
// bit, since the same kernels run on the same inputs.
#ifndef ONWARD_CORE_RUNTIME_PLAN_RECOMPUTE_H_
#define ONWARD_CORE_RUNTIME_PLAN_RECOMPUTE_H_

#include <cstddef>

#include "core/runtime/plan/plan.h"

namespace onward {

// Adds steps to the compute phase until no more than `limit` bytes of arena
// values are live at once, or nothing more can be dropped. For plans whose
// memory is not placed yet and whose buffers are not shared. Returns the most
// bytes that are live at once afterwards.
size_t RecomputeToFit(size_t limit, Plan* plan);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_PLAN_RECOMPUTE_H_

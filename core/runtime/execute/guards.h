// SPDX-License-Identifier: Apache-2.0
// Whether what is not done in every run is done in this one.
#ifndef ONWARD_CORE_RUNTIME_EXECUTE_GUARDS_H_
#define ONWARD_CORE_RUNTIME_EXECUTE_GUARDS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/plan/plan.h"

namespace onward {

absl::StatusOr<bool> ConditionHolds(const Plan& plan, const std::vector<Tensor>& tensors,
                                    const PlanGuard& guard);

// Asked when the condition has been computed and has come to the host; `tensors` are those of the
// plan's values.
inline absl::StatusOr<bool> Holds(const Plan& plan, const std::vector<Tensor>& tensors,
                                  const PlanGuard& guard) {
  if (guard.always()) return true;
  return ConditionHolds(plan, tensors, guard);
}

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_EXECUTE_GUARDS_H_

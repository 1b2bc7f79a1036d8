// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/execute/guards.h"

#include "absl/strings/str_cat.h"

namespace onward {

absl::StatusOr<bool> ConditionHolds(const Plan& plan, const std::vector<Tensor>& tensors,
                                    const PlanGuard& guard) {
  const Tensor& condition = tensors[guard.value];
  if (condition.dtype() != DType::kBool || condition.elements() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("the condition '", plan.values[guard.value].name,
                                                   "' of an If is not one bool"));
  }
  return *condition.data<bool>() == guard.when;
}

}  // namespace onward

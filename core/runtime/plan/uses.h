// SPDX-License-Identifier: Apache-2.0
// Who writes and reads the values of a plan, and when.
#ifndef ONWARD_CORE_RUNTIME_PLAN_USES_H_
#define ONWARD_CORE_RUNTIME_PLAN_USES_H_

#include <vector>

#include "core/runtime/plan/plan.h"

namespace onward {

enum class Use {
  kWrite,
  kRead,
  kShape,  // of its shape alone
};

// Calls visit(value, step, use) for every use. Steps count through the compute
// phase, then the commit phase; what is returned or checked is read right after
// the former, what is copied after the latter.
template <typename Visit>
void ForEachUse(const Plan& plan, const Visit& visit) {
  int at = 0;
  for (const std::vector<PlanStep>* steps : {&plan.compute, &plan.commit}) {
    for (const PlanStep& step : *steps) {
      for (int id : step.outputs) {
        if (id >= 0) visit(id, at, Use::kWrite);
      }
      for (int i = 0; i < static_cast<int>(step.inputs.size()); ++i) {
        if (step.inputs[i] < 0) continue;
        visit(step.inputs[i], at,
              plan.operators->ShapeOnly(step.node, i) ? Use::kShape : Use::kRead);
      }
      if (!step.guard.always()) visit(step.guard.value, at, Use::kRead);
      ++at;
    }
  }
  const int computed = static_cast<int>(plan.compute.size());
  for (const auto& [name, id] : plan.outputs) visit(id, computed, Use::kRead);
  for (int id : plan.finite) visit(id, computed, Use::kRead);
  for (const PlanCopy& copy : plan.copies) {
    visit(copy.from, at, Use::kRead);
    if (!copy.guard.always()) visit(copy.guard.value, at, Use::kRead);
  }
}

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_PLAN_USES_H_

// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plan/plan.h"

#include <algorithm>

#include "core/runtime/devices/islands.h"

namespace onward {

std::vector<const PlanStep*> Plan::Fallbacks() const {
  std::vector<const PlanStep*> steps;
  if (accelerators.empty()) return steps;
  for (const PlanStep& step : compute) {
    const bool meant = step.why == kIsHostArithmetic || step.why == kIsIsland || step.bodies_there;
    if (step.device == kHost && !step.transfer && !meant && step.node.op_type != "Reorder") {
      steps.push_back(&step);
    }
  }
  return steps;
}

bool Plan::UsesAccelerators() const {
  return std::any_of(values.begin(), values.end(),
                     [](const PlanValue& v) { return v.device != kHost; });
}

bool Plan::CopiesFeed(const PlanStep& step) const {
  if (!step.transfer || values[step.outputs[0]].device == kHost) return false;
  const PlanValue& from = values[step.inputs[0]];
  return from.device == kHost && values[from.root].storage == PlanValue::Storage::kFeed;
}

int Plan::HomeOf(const std::string& variable) const {
  const auto it = std::lower_bound(
      variables.begin(), variables.end(), variable,
      [](const auto& entry, const std::string& name) { return entry.first < name; });
  return it == variables.end() || it->first != variable ? -1 : it->second;
}

}  // namespace onward

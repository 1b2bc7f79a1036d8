// SPDX-License-Identifier: Apache-2.0
#include "core/device/plan/broadcast.h"

#include "core/base/status.h"

namespace onward {

absl::StatusOr<BroadcastPlan> PlanBroadcast(absl::Span<const Shape> operands) {
  BroadcastPlan plan;
  for (const Shape& shape : operands) {
    ONWARD_ASSIGN_OR_RETURN(plan.shape, BroadcastShapes(plan.shape, shape));
  }
  ONWARD_ASSIGN_OR_RETURN(plan.elements, CheckedElements(plan.shape.dims()));

  const int count = static_cast<int>(operands.size());
  plan.strides.resize(count);
  plan.repeats.assign(count, 1);
  if (plan.elements == 0) return plan;

  // Strides in the result's dimensions; 0 where an operand repeats.
  std::vector<Shape::Dims> strides(count, Shape::Dims(plan.shape.rank(), 0));
  for (int k = 0; k < count; ++k) {
    const Shape::Dims own = operands[k].Strides();
    const int shift = plan.shape.rank() - operands[k].rank();
    for (int d = 0; d < operands[k].rank(); ++d) {
      if (operands[k][d] != 1) strides[k][d + shift] = own[d];
    }
  }

  // Merge from the inside out, in `dims` and `merged` innermost first.
  BroadcastPlan::Indices dims;
  std::vector<BroadcastPlan::Indices> merged(count);
  for (int d = plan.shape.rank() - 1; d >= 0; --d) {
    if (plan.shape[d] == 1) continue;
    bool joins = !dims.empty();
    for (int k = 0; joins && k < count; ++k) {
      joins = strides[k][d] == merged[k].back() * dims.back();
    }
    if (joins) {
      dims.back() *= plan.shape[d];
      continue;
    }
    dims.push_back(plan.shape[d]);
    for (int k = 0; k < count; ++k) merged[k].push_back(strides[k][d]);
  }
  if (dims.empty()) return plan;

  // The innermost merged stride is 1 or 0: it starts at the last dimension
  // that is not 1, where an operand is either whole or repeated.
  plan.run = dims.front();
  plan.outer.assign(dims.rbegin(), dims.rend() - 1);
  for (int k = 0; k < count; ++k) {
    plan.repeats[k] = merged[k].front() == 0;
    plan.strides[k].assign(merged[k].rbegin(), merged[k].rend() - 1);
  }
  return plan;
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "core/device/plan/reduce.h"

#include <algorithm>
#include <vector>

#include "core/base/status.h"

namespace onward {

absl::StatusOr<ReducePlan> PlanReduce(const Shape& data, absl::Span<const int64_t> axes,
                                      bool keepdims) {
  std::vector<bool> is_reduced(data.rank(), false);
  for (int64_t axis : axes) {
    ONWARD_ASSIGN_OR_RETURN(const int d, NormalizeAxis(axis, data.rank()));
    is_reduced[d] = true;
  }
  ReducePlan plan;
  for (int d = 0; d < data.rank(); ++d) {
    if (!is_reduced[d]) {
      plan.shape.push_back(data[d]);
    } else if (keepdims) {
      plan.shape.push_back(1);
    }
    (is_reduced[d] ? plan.count : plan.outputs) *= data[d];
  }
  if (plan.outputs == 0 || plan.count == 0) return plan;

  const Shape::Dims strides = data.Strides();
  StridedGrid* last = nullptr;
  for (int d = data.rank() - 1; d >= 0; --d) {
    if (data[d] == 1) continue;
    StridedGrid* grid = is_reduced[d] ? &plan.reduced : &plan.kept;
    if (grid == last) {
      grid->dims.back() *= data[d];
    } else {
      grid->dims.push_back(data[d]);
      grid->strides.push_back(strides[d]);
    }
    if (last == nullptr) plan.run_reduced = is_reduced[d];
    last = grid;
  }
  for (StridedGrid* grid : {&plan.kept, &plan.reduced}) {
    std::reverse(grid->dims.begin(), grid->dims.end());
    std::reverse(grid->strides.begin(), grid->strides.end());
  }
  if (last != nullptr) {
    StridedGrid& inner = plan.run_reduced ? plan.reduced : plan.kept;
    plan.run = inner.dims.back();
    inner.dims.pop_back();
    inner.strides.pop_back();
  }
  return plan;
}

}  // namespace onward

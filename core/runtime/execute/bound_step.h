// SPDX-License-Identifier: Apache-2.0
// A step of a plan with the memory that one executor has for it.
#ifndef ONWARD_CORE_RUNTIME_EXECUTE_BOUND_STEP_H_
#define ONWARD_CORE_RUNTIME_EXECUTE_BOUND_STEP_H_

#include <memory>
#include <vector>

#include "core/runtime/control/control.h"
#include "core/runtime/execute/late_node.h"
#include "core/runtime/plan/plan.h"

namespace onward {

struct BoundStep {
  const PlanStep* step;
  std::vector<const Tensor*> inputs;
  std::vector<Tensor*> outputs;
  void* workspace;
  // Of commit steps.
  std::unique_ptr<UpdateNotes> notes = nullptr;
  std::unique_ptr<bool[]> bad = nullptr;  // per output
  // Of late steps.
  std::unique_ptr<LateNode> late = nullptr;
  std::unique_ptr<ControlFlow> control = nullptr;
};

// In parts, on several threads.
void CopyBytes(const Tensor& from, Tensor* to);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_EXECUTE_BOUND_STEP_H_

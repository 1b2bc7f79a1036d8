// SPDX-License-Identifier: Apache-2.0
// One pass over memory for all variables an optimizer updates.
#ifndef ONWARD_CORE_RUNTIME_REWRITE_MERGE_UPDATES_H_
#define ONWARD_CORE_RUNTIME_REWRITE_MERGE_UPDATES_H_

#include "core/runtime/compile/evaluate.h"
#include "core/runtime/plan/plan.h"

namespace onward {

// Joins steps of the commit phase that are calls of one operator with the same
// attributes and leading inputs (see TensorLists). Commit steps do not read what
// others write, so their order is free.
void MergeUpdates(const EvaluateContext& context, Plan* plan);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_REWRITE_MERGE_UPDATES_H_

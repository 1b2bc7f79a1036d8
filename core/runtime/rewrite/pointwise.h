// SPDX-License-Identifier: Apache-2.0
// Element-wise steps that feed each other become one step.
#ifndef ONWARD_CORE_RUNTIME_REWRITE_POINTWISE_H_
#define ONWARD_CORE_RUNTIME_REWRITE_POINTWISE_H_

#include "core/runtime/plan/plan.h"

namespace onward {

// Joins the compute steps of a plan whose memory is not placed yet. A step joins
// the first reader of its result; the result is written to memory only if
// somebody else reads it later.
void FusePointwise(Plan* plan);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_REWRITE_POINTWISE_H_

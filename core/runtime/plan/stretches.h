// SPDX-License-Identifier: Apache-2.0
// The order of a plan's steps where several devices work, and what of it runs without the host.
#ifndef ONWARD_CORE_RUNTIME_PLAN_STRETCHES_H_
#define ONWARD_CORE_RUNTIME_PLAN_STRETCHES_H_

#include "core/runtime/plan/plan.h"

namespace onward {

// Puts steps of one device together as far as what they read allows: the host's first, and of an
// accelerator's, copies to it first, those of what is fed before others. Steps of one device keep
// their order otherwise. What is not done in every run comes last, guard by guard.
void OrderByDevice(Plan* plan);

// Sets the stretches of a plan whose steps are final, and the places of their copies.
void FindStretches(Plan* plan);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_PLAN_STRETCHES_H_

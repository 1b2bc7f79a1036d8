// SPDX-License-Identifier: Apache-2.0
// From the steps of a plan to the memory of its values.
#ifndef ONWARD_CORE_RUNTIME_PLAN_PLACE_H_
#define ONWARD_CORE_RUNTIME_PLAN_PLACE_H_

#include "core/runtime/plan/plan.h"

namespace onward {

// Lets a step write over an input that nobody reads afterwards, where its kernel
// works element for element.
void ShareBuffers(Plan* plan);

// Gives every value and workspace its place in the arena.
void PlaceValues(Plan* plan);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_PLAN_PLACE_H_

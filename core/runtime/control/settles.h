// SPDX-License-Identifier: Apache-2.0
// Loops whose condition cannot change any more.
#ifndef ONWARD_CORE_RUNTIME_CONTROL_SETTLES_H_
#define ONWARD_CORE_RUNTIME_CONTROL_SETTLES_H_

#include <optional>

#include "core/graph/graph.h"

namespace onward {

// The iteration from which on every iteration of a Loop leaves the same condition: it depends on
// captured values, constants, and on carried values that stay the same from some iteration on.
// Nothing where it may change at any time. `body`: with its captured values behind the `own`
// inputs (iteration, condition, carried values).
std::optional<int> ConditionSettlesAt(const Graph& body, int own);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_CONTROL_SETTLES_H_

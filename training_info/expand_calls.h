// SPDX-License-Identifier: Apache-2.0
// The bodies of functions in the place of their calls, in a graph and in the bodies of its nodes.
#ifndef ONWARD_TRAINING_INFO_EXPAND_CALLS_H_
#define ONWARD_TRAINING_INFO_EXPAND_CALLS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "environment/environment.h"

namespace onward {

using IsChosen = absl::FunctionRef<bool(const Node& call)>;
// Sees a call that has no body, or why it has none, and says whether it may stay.
using WithoutBody = absl::FunctionRef<absl::Status(const Node& call, const absl::Status& problem)>;

// Expands the calls that are chosen. Needs types.
absl::Status ExpandCalls(const Environment& environment, IsChosen chosen, WithoutBody without,
                         Graph* graph);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_EXPAND_CALLS_H_

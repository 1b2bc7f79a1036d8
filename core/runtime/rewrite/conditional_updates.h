// SPDX-License-Identifier: Apache-2.0
// Variables that are assigned in some runs only. A file says so by an If whose results are bound
// to variables: one branch computes new values, the other hands the old ones on. Run as such, it
// would copy every variable onto itself whenever nothing is due. Here the branches become part of
// the graph, what they assign depends on the condition, and so does what only they need.
#ifndef ONWARD_CORE_RUNTIME_REWRITE_CONDITIONAL_UPDATES_H_
#define ONWARD_CORE_RUNTIME_REWRITE_CONDITIONAL_UPDATES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "core/runtime/compile/compile_options.h"
#include "core/runtime/plan/plan.h"

namespace onward {

// Takes apart each If node of `graph` that gives new values of variables and nothing else
// (`read` are values that are wanted for other reasons). A variable that both branches
// assign stands twice among the updates then.
absl::Status OpenConditionalUpdates(const absl::flat_hash_set<std::string>& read, Graph* graph,
                                    std::vector<std::pair<std::string, std::string>>* updates,
                                    UpdateConditions* conditions);

// Lets compute steps that only conditional updates need wait for the condition, at the end of the
// phase.
void GuardComputation(Plan* plan);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_REWRITE_CONDITIONAL_UPDATES_H_

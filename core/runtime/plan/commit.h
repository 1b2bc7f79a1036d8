// SPDX-License-Identifier: Apache-2.0
// The second phase of a plan: assigning variables.
#ifndef ONWARD_CORE_RUNTIME_PLAN_COMMIT_H_
#define ONWARD_CORE_RUNTIME_PLAN_COMMIT_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/runtime/plan/plan.h"

namespace onward {

// Splits the updates (variable <- value). A step that cannot fail, that can tell
// beforehand whether its floating-point results would be finite, whose results are
// updates only and which reads the variables it replaces element by element, moves to
// plan->commit and writes over them. Everything else is
// computed first and copied at the end. `guards` has one for each update. `materialize` appends
// a compute step that copies a value to memory of its own and returns the copy.
absl::Status PlanCommit(const std::vector<std::pair<std::string, std::string>>& updates,
                        const std::vector<PlanGuard>& guards,
                        const absl::flat_hash_map<std::string, int>& ids, Plan* plan,
                        const std::function<int(int)>& materialize);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_PLAN_COMMIT_H_

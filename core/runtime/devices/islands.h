// SPDX-License-Identifier: Apache-2.0
// Nodes that an accelerator could run, but that cost more in copies than they save.
#ifndef ONWARD_CORE_RUNTIME_DEVICES_ISLANDS_H_
#define ONWARD_CORE_RUNTIME_DEVICES_ISLANDS_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "core/runtime/plan/plan.h"

namespace onward {

// Why a node is on the host though an accelerator is wanted, where it is no want of a kernel.
inline constexpr char kIsHostArithmetic[] = "small integers";
inline constexpr char kIsIsland[] = "its copies would cost more";

// An island is a set of steps of one accelerator, joined by the values they hand each other. It
// goes back to the host if the bytes that are copied for it alone (between it and steps of the
// host; not what is fed, returned, variable or constant) are no fewer than those that its steps
// read and write, where a product or a convolution counts as if it read everything sixty-four
// times. The first outputs of its nodes are returned. The plan's memory is not placed yet, nor are
// chains fused.
absl::flat_hash_set<std::string> NotWorthTheirCopies(const Plan& plan);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_DEVICES_ISLANDS_H_

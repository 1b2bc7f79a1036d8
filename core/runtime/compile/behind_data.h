// SPDX-License-Identifier: Apache-2.0
// What cannot be part of a plan, told before anything is inferred: nodes behind operators
// whose results only data can shape.
#ifndef ONWARD_CORE_RUNTIME_COMPILE_BEHIND_DATA_H_
#define ONWARD_CORE_RUNTIME_COMPILE_BEHIND_DATA_H_

#include <vector>

#include "core/runtime/compile/compile_options.h"

namespace onward {

// Whether the device's kernel for it takes values of any kind.
bool RunsOnValues(const Node& node, const Device& device);

// Removes them from the graph, in their order. Others may turn out to be such while the
// graph is compiled.
std::vector<Node> TakeNodesBehindData(const CompileOptions& options, Graph* graph);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_COMPILE_BEHIND_DATA_H_

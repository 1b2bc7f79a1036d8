// SPDX-License-Identifier: Apache-2.0
// Graph + concrete input shapes -> Plan.
#ifndef ONWARD_CORE_RUNTIME_COMPILE_COMPILE_H_
#define ONWARD_CORE_RUNTIME_COMPILE_COMPILE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/runtime/compile/compile_options.h"
#include "core/runtime/plan/plan.h"

namespace onward {

std::vector<std::string> WantedOutputs(const Graph& graph, const CompileOptions& options);

// The graph behind a plan that ends at values whose types only data can tell, fed with the
// outputs of that plan.
struct Continuation {
  std::shared_ptr<const Graph> graph;
  CompileOptions options;
};

// Gives plans that are made for accelerators, with these options, queues that they have in common.
void ShareQueues(CompileOptions* options);

absl::StatusOr<std::shared_ptr<const Plan>> Compile(const Graph& graph,
                                                    const CompileOptions& options);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_COMPILE_COMPILE_H_

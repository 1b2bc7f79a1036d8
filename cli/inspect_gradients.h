// SPDX-License-Identifier: Apache-2.0
// What `onward inspect` says of operators that cannot run and of gradients that cannot flow.
#ifndef ONWARD_CLI_INSPECT_GRADIENTS_H_
#define ONWARD_CLI_INSPECT_GRADIENTS_H_

#include <string>
#include <vector>

#include "autograd/report.h"
#include "core/graph/graph.h"
#include "core/runtime/compile/unknown_operators.h"
#include "environment/environment.h"
#include "trainer/report/log/jsonl.h"

namespace onward {

// Operators that cannot run, and the outputs that do without them.
struct KernelFacts {
  std::vector<MissingOperator> missing;
  std::vector<std::string> outputs;  // that can be computed
};
KernelFacts GatherKernelFacts(const Graph& canonical, const Environment& environment);
void PrintKernelFacts(const KernelFacts& facts);
void WriteKernelFacts(const KernelFacts& facts, JsonWriter* w);

// Weight by weight, node by node.
void PrintReport(const GradientReport& report);
void WriteReport(const GradientReport& report, JsonWriter* w);

}  // namespace onward

#endif  // ONWARD_CLI_INSPECT_GRADIENTS_H_

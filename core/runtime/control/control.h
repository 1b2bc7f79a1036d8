// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: nodes whose bodies are programs. A body is closed: what it captures
// from the graph around it are further inputs of the node's step, behind the node's own.
#ifndef ONWARD_CORE_RUNTIME_CONTROL_CONTROL_H_
#define ONWARD_CORE_RUNTIME_CONTROL_CONTROL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/runtime/compile/compile_options.h"
#include "core/runtime/execute/executor.h"

namespace onward {

struct Control {
  struct Body {
    std::shared_ptr<const Graph> graph;  // its inputs: its own, then the captured ones
    std::vector<int> captured;           // where the latter are among the inputs of the step
  };
  Node node;                 // without outputs that nobody wants and the bodies need not compute
  std::vector<Body> bodies;  // then and else, or the only one
  CompileOptions options;    // of the bodies
};

bool IsControl(const Node& node);
// How many inputs, from the first on, decide what is run: conditions and trip counts.
int HostInputs(const Node& node);

// `there`: the bodies are for the accelerators, and leave there what they compute.
// `constant(name)` is the value of a captured constant, or null: then the value is handed
// over at each run. `inputs` receives the names of the step's inputs.
absl::StatusOr<std::shared_ptr<const Control>> CloseBodies(
    const Node& node, const CompileOptions& options, bool there,
    const std::map<std::string, int>& opsets,
    absl::FunctionRef<const Tensor*(const std::string& name)> constant,
    std::vector<std::string>* inputs);

// The programs of one step and the memory they run in.
class ControlFlow {
 public:
  virtual ~ControlFlow() = default;
  // Outputs are good until the next run.
  virtual absl::Status Run(const ValueCall& call, const RunOptions& options) = 0;
};

std::unique_ptr<ControlFlow> MakeControlFlow(const Control& control);
std::unique_ptr<ControlFlow> MakeBranch(const Control& control);
std::unique_ptr<ControlFlow> MakeLoop(const Control& control);
std::unique_ptr<ControlFlow> MakeScan(const Control& control);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_CONTROL_CONTROL_H_

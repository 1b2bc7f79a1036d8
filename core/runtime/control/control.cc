// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/control/control.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {
namespace {

absl::StatusOr<std::vector<const Graph*>> BodiesOf(const Node& node) {
  std::vector<const char*> names = {"body"};
  if (node.Is("If")) names = {"then_branch", "else_branch"};
  std::vector<const Graph*> bodies;
  for (const char* name : names) {
    const Graph* body = node.Subgraph(name);
    if (body == nullptr) return NodeError(node, absl::StrCat("attribute ", name, " is missing"));
    if (node.Is("If") && body->outputs.size() != node.outputs.size()) {
      return NodeError(node, absl::StrCat(name, " has ", body->outputs.size(),
                                          " outputs, the node ", node.outputs.size()));
    }
    bodies.push_back(body);
  }
  return bodies;
}

}  // namespace

bool IsControl(const Node& node) { return node.Is("If") || node.Is("Loop") || node.Is("Scan"); }

absl::StatusOr<std::shared_ptr<const Control>> CloseBodies(
    const Node& node, const CompileOptions& options, const std::map<std::string, int>& opsets,
    absl::FunctionRef<const Tensor*(const std::string& name)> constant,
    std::vector<std::string>* inputs) {
  auto control = std::make_shared<Control>();
  control->node = node;
  control->options.device = options.device;
  control->options.operators = options.operators;
  *inputs = node.inputs;
  ONWARD_ASSIGN_OR_RETURN(const std::vector<const Graph*> bodies, BodiesOf(node));
  for (const Graph* body : bodies) {
    Control::Body closed{*body, {}};
    closed.graph.opsets = opsets;
    // Initializers of a body are constants, whatever is declared beside them.
    std::erase_if(closed.graph.inputs,
                  [&](const NamedType& in) { return closed.graph.initializers.contains(in.name); });
    for (const std::string& name : CapturedValues(*body)) {
      if (const Tensor* value = constant(name)) {
        closed.graph.initializers.emplace(name, *value);
        continue;
      }
      auto at = std::find(inputs->begin() + static_cast<int64_t>(node.inputs.size()), inputs->end(),
                          name);
      closed.captured.push_back(static_cast<int>(at - inputs->begin()));
      closed.graph.inputs.push_back({name, {}});
      if (at == inputs->end()) inputs->push_back(name);
    }
    control->bodies.push_back(std::move(closed));
  }
  return control;
}

std::unique_ptr<ControlFlow> MakeControlFlow(const Control& control) {
  if (control.node.Is("If")) return MakeBranch(control);
  return control.node.Is("Loop") ? MakeLoop(control) : MakeScan(control);
}

}  // namespace onward

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

// Outputs of the body that the node's output k depends on alone: those that may go where
// nobody wants it. -1: states of loops are carried in any case.
int OutputOnlyFor(const Node& node, const Graph& body, int k) {
  if (node.Is("If")) return k;
  const int results = static_cast<int>(body.outputs.size());
  const int states = node.Is("Loop") ? static_cast<int>(node.inputs.size()) - 2
                                     : static_cast<int>(node.inputs.size()) -
                                           static_cast<int>(node.Int("num_scan_inputs", 0));
  const int first = node.Is("Loop") ? 1 : 0;
  return k >= states && first + k < results ? first + k : -1;
}

// Drops outputs that nobody wants, from node and bodies.
void DropUnwanted(Node* node) {
  for (int k = static_cast<int>(node->outputs.size()) - 1; k >= 0; --k) {
    if (!node->outputs[k].empty()) continue;
    bool dropped = false;
    ChangeBodies(
        [&](const Graph& body) -> absl::StatusOr<Graph> {
          Graph changed = body;
          const int output = OutputOnlyFor(*node, body, k);
          if (output >= 0) {
            changed.outputs.erase(changed.outputs.begin() + output);
            dropped = true;
          }
          return changed;
        },
        node)
        .IgnoreError();
    if (!dropped) continue;
    node->outputs.erase(node->outputs.begin() + k);
    for (const char* attribute : {"scan_output_axes", "scan_output_directions"}) {
      std::vector<int64_t> values = node->Ints(attribute);
      const int64_t at =
          k - (static_cast<int64_t>(node->inputs.size()) - node->Int("num_scan_inputs", 0));
      if (at < 0 || at >= static_cast<int64_t>(values.size())) continue;
      values.erase(values.begin() + at);
      node->attributes[attribute] = values;
    }
  }
}

}  // namespace

bool IsControl(const Node& node) { return node.Is("If") || node.Is("Loop") || node.Is("Scan"); }

int HostInputs(const Node& node) { return node.Is("Loop") ? 2 : node.Is("If") ? 1 : 0; }

absl::StatusOr<std::shared_ptr<const Control>> CloseBodies(
    const Node& whole, const CompileOptions& options, bool there,
    const std::map<std::string, int>& opsets,
    absl::FunctionRef<const Tensor*(const std::string& name)> constant,
    std::vector<std::string>* inputs) {
  auto control = std::make_shared<Control>();
  ONWARD_RETURN_IF_ERROR(BodiesOf(whole).status());
  control->node = whole;
  DropUnwanted(&control->node);
  const Node& node = control->node;
  control->options.device = options.device;
  control->options.operators = options.operators;
  control->options.family = options.family;
  if (there) {
    control->options.accelerators = options.accelerators;
    control->options.queues = options.queues;
    control->options.require_accelerator = options.require_accelerator;
    control->options.planned = options.planned;
  }
  *inputs = node.inputs;
  ONWARD_ASSIGN_OR_RETURN(const std::vector<const Graph*> bodies, BodiesOf(node));
  for (const Graph* body : bodies) {
    Control::Body closed;
    Graph graph = *body;
    graph.opsets = opsets;
    // Initializers of a body are constants, whatever is declared beside them.
    std::erase_if(graph.inputs,
                  [&](const NamedType& in) { return graph.initializers.contains(in.name); });
    for (const std::string& name : CapturedValues(*body)) {
      if (const Tensor* value = constant(name)) {
        graph.initializers.emplace(name, *value);
        continue;
      }
      auto at = std::find(inputs->begin() + static_cast<int64_t>(node.inputs.size()), inputs->end(),
                          name);
      closed.captured.push_back(static_cast<int>(at - inputs->begin()));
      graph.inputs.push_back({name, {}});
      if (at == inputs->end()) inputs->push_back(name);
    }
    if (there) {
      for (const NamedType& out : graph.outputs) control->options.anywhere.insert(out.name);
      // The condition of the next iteration is the host's to look at.
      if (node.Is("Loop") && !graph.outputs.empty()) {
        control->options.anywhere.erase(graph.outputs[0].name);
      }
    }
    closed.graph = std::make_shared<const Graph>(std::move(graph));
    control->bodies.push_back(std::move(closed));
  }
  return control;
}

std::unique_ptr<ControlFlow> MakeControlFlow(const Control& control) {
  if (control.node.Is("If")) return MakeBranch(control);
  return control.node.Is("Loop") ? MakeLoop(control) : MakeScan(control);
}

}  // namespace onward

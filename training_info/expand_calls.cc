// SPDX-License-Identifier: Apache-2.0
#include "training_info/expand_calls.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/graph/infer_bodies.h"
#include "core/graph/inline.h"
#include "core/graph/name_scope.h"

namespace onward {
namespace {

class CallExpander {
 public:
  CallExpander(const Environment& environment, IsChosen chosen, WithoutBody without, Graph* root)
      : environment_(environment),
        chosen_(chosen),
        without_(without),
        names_(*root),
        opsets_(root->opsets) {}

  // The graph is typed.
  absl::Status Run(Graph* graph) {
    std::vector<Node> nodes;
    for (Node& node : graph->nodes) {
      if (!chosen_(node)) {
        ONWARD_RETURN_IF_ERROR(RunBodies(*graph, &node));
        nodes.push_back(std::move(node));
        continue;
      }
      std::vector<InputFact> facts(node.inputs.size());
      for (size_t i = 0; i < facts.size(); ++i) facts[i].type = graph->TypeOf(node.inputs[i]);
      const absl::StatusOr<std::optional<Function>> body =
          environment_.operators().FunctionBody(node, facts, opsets_);
      if (!body.ok() || !body->has_value()) {
        ONWARD_RETURN_IF_ERROR(without_(node, body.status()));
        nodes.push_back(std::move(node));
        continue;
      }
      for (const auto& [domain, version] : (*body)->body.opsets) {
        opsets_.try_emplace(domain, version);
      }
      const std::string& first = node.outputs.empty() ? node.op_type : node.outputs[0];
      ONWARD_ASSIGN_OR_RETURN(
          std::vector<Node> expanded,
          ExpandCall(**body, node, absl::StrCat(first, "__", number_++, "_"), &names_));
      for (Node& n : expanded) nodes.push_back(std::move(n));
    }
    graph->nodes = std::move(nodes);
    return absl::OkStatus();
  }

 private:
  bool HasChosen(const Graph& graph) const {
    return absl::c_any_of(graph.nodes, [&](const Node& node) {
      bool inside = chosen_(node);
      ForEachBody(node, [&](const std::string&, const Graph& body) { inside |= HasChosen(body); });
      return inside;
    });
  }

  // A body is typed as a graph of its own, whose further inputs are what it captures.
  absl::Status RunBodies(const Graph& around, Node* node) {
    std::vector<ValueType> types;
    const auto known = [&](const std::string& value) { return InputFact{around.TypeOf(value)}; };
    const auto expand = [&](const Graph& body) -> absl::StatusOr<Graph> {
      if (!HasChosen(body)) return body;
      if (types.empty()) types = BodyInputTypes(*node, known, environment_.operators(), opsets_);
      Graph closed = body;
      closed.opsets = opsets_;
      for (size_t i = 0; i < closed.inputs.size() && i < types.size(); ++i) {
        closed.inputs[i].type = types[i];
      }
      for (const std::string& value : CapturedValues(body)) {
        const ValueType* type = around.TypeOf(value);
        closed.inputs.push_back({value, type == nullptr ? ValueType{} : *type});
      }
      ONWARD_RETURN_IF_ERROR(InferTypes(&closed, environment_.operators()));
      ONWARD_RETURN_IF_ERROR(Run(&closed));
      Graph expanded = body;
      expanded.nodes = std::move(closed.nodes);
      return expanded;
    };
    return ChangeBodies(expand, node);
  }

  const Environment& environment_;
  const IsChosen chosen_;
  const WithoutBody without_;
  NameScope names_;
  std::map<std::string, int>& opsets_;  // of the whole graph
  int number_ = 0;
};

}  // namespace

absl::Status ExpandCalls(const Environment& environment, IsChosen chosen, WithoutBody without,
                         Graph* graph) {
  return CallExpander(environment, chosen, without, graph).Run(graph);
}

}  // namespace onward

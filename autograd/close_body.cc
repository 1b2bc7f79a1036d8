// SPDX-License-Identifier: Apache-2.0
#include "autograd/close_body.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "autograd/prepare.h"
#include "core/graph/inline.h"
#include "core/graph/verify.h"

namespace onward {

std::string ClosedBody::InOwnNames(const std::string& text) const {
  return absl::StrReplaceAll(text, {{prefix, ""}});
}

ClosedBody CloseBody(const BodyRequest& request, const std::string& prefix, GraphBuilder& around) {
  ClosedBody closed;
  Graph& graph = closed.graph;
  closed.prefix = absl::StrCat(around.UniqueName(prefix), "_");
  graph = CopyBody(*request.body, closed.prefix, &around.names());
  graph.opsets = around.graph().opsets;
  graph.functions = around.graph().functions;
  // Initializers of a body are constants, whatever is declared beside them.
  std::erase_if(graph.inputs,
                [&](const NamedType& in) { return graph.initializers.contains(in.name); });
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (i < request.inputs.size()) graph.inputs[i].type = request.inputs[i];
    closed.inputs.push_back(graph.inputs[i].name);
  }
  for (const auto& [name, tensor] : graph.initializers) closed.initializers.push_back(name);

  for (int i : request.by_inputs) closed.xs.push_back(closed.inputs[i]);
  closed.xs.insert(closed.xs.end(), request.by_captured.begin(), request.by_captured.end());
  std::vector<std::string> captured = CapturedValues(graph);
  captured.insert(captured.end(), request.by_captured.begin(), request.by_captured.end());
  for (const auto& [output, seed] : request.seeds) {
    closed.ys.push_back(graph.outputs[output].name);
    closed.seeds.push_back(seed);
    captured.push_back(seed);
  }
  absl::flat_hash_set<std::string> seen;
  for (const std::string& name : captured) {
    if (!seen.insert(name).second) continue;
    const InputFact fact = around.FactOf(name);
    if (fact.constant != nullptr) {
      graph.initializers.emplace(name, *fact.constant);
    } else {
      graph.inputs.push_back({name, fact.type == nullptr ? ValueType{} : *fact.type});
    }
  }
  // What the body hands out is computed for the sake of its gradients alone.
  graph.outputs.clear();
  return closed;
}

absl::StatusOr<BodyGradients> OpenBody(const ClosedBody& closed, Gradients gradients) {
  BodyGradients opened{std::move(gradients.graph), closed.inputs, std::move(gradients.values)};
  Graph& graph = opened.graph;
  Prune(&graph, opened.gradients);
  std::vector<std::string> drawing;
  for (const Node& node : graph.nodes) {
    if (DrawsRandom(graph, node)) drawing.push_back(closed.InOwnNames(node.Describe()));
  }
  if (!drawing.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("random numbers are drawn inside its body, by ", absl::StrJoin(drawing, ", "),
                     ", and nothing tells their type, so that they cannot be handed to its "
                     "gradient. Declare the types of what the bodies read and give, or draw before "
                     "the node and hand the numbers in"));
  }
  const absl::flat_hash_set<std::string> own(closed.initializers.begin(),
                                             closed.initializers.end());
  for (auto it = graph.initializers.begin(); it != graph.initializers.end();) {
    it = own.contains(it->first) ? std::next(it) : graph.initializers.erase(it);
  }
  graph.inputs.clear();
  absl::flat_hash_set<std::string> read;
  for (const Node& node : graph.nodes) {
    for (std::string& v : AllInputs(node)) read.insert(std::move(v));
  }
  for (std::string& in : opened.inputs) {
    if (!read.contains(in)) in.clear();
  }
  return opened;
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "training_info/author_entry.h"

#include <memory>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/name_scope.h"
#include "core/graph/verify.h"
#include "training_info/library.h"

namespace onward {
namespace {

// Whether the algorithm has to compute the node itself: what the inference graph gives is
// there already. A node of it that differentiation made give more (the states of a Loop)
// runs once more, since the inference graph stays as it is.
bool TakeOver(const absl::flat_hash_set<std::string>& inference_outputs, NameScope* names,
              Node* node) {
  const auto given = [&](const std::string& o) { return inference_outputs.contains(o); };
  if (absl::c_all_of(node->outputs, [&](const std::string& o) { return o.empty() || given(o); })) {
    return false;
  }
  for (std::string& out : node->outputs) {
    if (!out.empty() && given(out)) out = names->Unique(absl::StrCat(out, "__again"));
  }
  return true;
}

// Our own functions that the nodes call, those in bodies included, go into the file.
absl::Status CarryFunctions(const std::vector<Node>& nodes, const Environment& environment,
                            int opset, Graph* algorithm) {
  for (const Node& node : nodes) {
    absl::Status inside;
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      inside.Update(CarryFunctions(body.nodes, environment, opset, algorithm));
    });
    ONWARD_RETURN_IF_ERROR(inside);
    const FunctionKey key{node.domain, node.op_type, ""};
    if (node.domain != kOnwardDomain || algorithm->functions.contains(key)) continue;
    ONWARD_ASSIGN_OR_RETURN(Function function, FileFunction(environment.functions(), node, opset));
    algorithm->functions.emplace(key, std::make_shared<Function>(std::move(function)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingEntry> CutEntry(const EntryRequest& request, const AlgorithmState& state,
                                       const Environment& environment, Graph work) {
  TrainingEntry entry;
  Graph& algorithm = entry.algorithm;
  algorithm.name = "algorithm";
  algorithm.opsets = work.opsets;
  for (const NamedType& in : work.inputs) {
    if (absl::c_linear_search(request.labels, in.name)) algorithm.inputs.push_back(in);
  }
  state.AddTo(&entry);
  absl::flat_hash_set<std::string> inference_outputs;
  for (const Node& node : request.graph.nodes) {
    inference_outputs.insert(node.outputs.begin(), node.outputs.end());
  }
  std::vector<std::string> needed = request.outputs;
  if (!request.named.empty()) needed.push_back(request.named);
  Prune(&work, needed);
  NameScope names(work);
  for (Node& node : work.nodes) {
    if (!TakeOver(inference_outputs, &names, &node)) continue;
    for (const std::string& out : node.outputs) {
      if (const ValueType* t = work.TypeOf(out)) algorithm.types[out] = *t;
    }
    algorithm.nodes.push_back(std::move(node));
  }
  absl::flat_hash_set<std::string> listed;
  for (const std::string& name : request.outputs) {
    if (!listed.insert(name).second) continue;
    const ValueType* type = work.TypeOf(name);
    algorithm.outputs.push_back({name, type == nullptr ? ValueType{} : *type});
  }
  ONWARD_RETURN_IF_ERROR(
      CarryFunctions(algorithm.nodes, environment, request.graph.opset(), &algorithm));
  return entry;
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "training_info/foreign_graph.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/inline.h"
#include "core/graph/verify.h"
#include "core/onnx_io/model.h"
#include "training_info/export.h"

namespace onward {

absl::StatusOr<Graph> ReadForeignGraph(const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(const Model model, ReadModel(path));
  const auto read = [&]() -> absl::StatusOr<Graph> {
    ONWARD_ASSIGN_OR_RETURN(const Graph raw, InferenceGraph(model));
    ONWARD_ASSIGN_OR_RETURN(Graph graph, InlineFunctions(raw));
    ONWARD_RETURN_IF_ERROR(FindingsToStatus(CheckGraph(graph)));
    if (graph.opset() >= kOldestWrittenOpset) return graph;
    return RaiseOpset(graph, kOldestWrittenOpset);
  };
  absl::StatusOr<Graph> graph = read();
  if (!graph.ok()) return Annotate(graph.status(), absl::StrCat("'", path, "'"));
  return graph;
}

absl::Status FitOpset(const std::string& path, const Graph& graph, Graph* foreign) {
  if (foreign->opset() > graph.opset()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is of opset ", foreign->opset(), ", the model of ",
                     graph.opset(), ": write it for opset ", graph.opset(), " or below"));
  }
  if (foreign->opset() == graph.opset()) return absl::OkStatus();
  ONWARD_ASSIGN_OR_RETURN(*foreign, RaiseOpset(*foreign, graph.opset()));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Expr>> InsertGraph(const Graph& foreign, const std::string& prefix,
                                              const std::vector<Expr>& inputs, GraphBuilder& b) {
  Function function;
  Node call;
  function.body.outputs = foreign.outputs;
  absl::flat_hash_set<std::string> bound;
  for (size_t i = 0; i < foreign.inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    bound.insert(foreign.inputs[i].name);
    function.body.inputs.push_back(foreign.inputs[i]);
    call.inputs.push_back(inputs[i].name());
  }
  // Functions have no initializers.
  for (const auto& [name, value] : foreign.initializers) {
    if (bound.contains(name)) continue;
    Node constant;
    constant.op_type = "Constant";
    constant.outputs = {name};
    constant.attributes["value"] = value;
    function.body.nodes.push_back(std::move(constant));
  }
  function.body.nodes.insert(function.body.nodes.end(), foreign.nodes.begin(), foreign.nodes.end());
  std::vector<Expr> outputs;
  for (const NamedType& out : foreign.outputs) {
    call.outputs.push_back(b.UniqueName(absl::StrCat(prefix, out.name)));
    outputs.emplace_back(&b, call.outputs.back());
  }
  for (const auto& [domain, version] : foreign.opsets) b.graph().opsets.emplace(domain, version);
  ONWARD_ASSIGN_OR_RETURN(std::vector<Node> nodes, ExpandCall(function, call, prefix, &b.names()));
  for (Node& node : nodes) b.Append(std::move(node));
  ONWARD_RETURN_IF_ERROR(b.status());
  return outputs;
}

}  // namespace onward

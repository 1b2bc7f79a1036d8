// SPDX-License-Identifier: Apache-2.0
#include "training_info/gradient_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/differentiate.h"
#include "core/base/status.h"
#include "core/graph/verify.h"
#include "training_info/export.h"
#include "training_info/lower.h"

namespace onward {
namespace {

bool IsComputed(const Graph& graph, const std::vector<std::string>& values) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& out) {
      return std::find(values.begin(), values.end(), out) != values.end();
    });
  });
}

// Adds the derivatives to the graph and returns their names.
absl::StatusOr<std::vector<std::string>> AddGradients(const std::string& y,
                                                      const std::vector<std::string>& xs,
                                                      int64_t orders,
                                                      const Environment& environment,
                                                      Graph* graph) {
  DifferentiateOptions options;
  options.operators = &environment.operators();
  options.rules = &environment.rules();
  // Values in one list are held apart: where one depends on another, it takes a
  // list for each to get whole derivatives.
  const bool apart = IsComputed(*graph, xs);
  std::vector<std::string> ys(xs.size(), y), results;
  for (int64_t order = 1; order <= orders; ++order) {
    std::vector<std::string> next;
    for (size_t i = 0; i < xs.size(); ++i) {
      const bool at_once = order == 1 && !apart;
      const std::vector<std::string> by = at_once ? xs : std::vector<std::string>{xs[i]};
      ONWARD_ASSIGN_OR_RETURN(Gradients gradients, Differentiate(*graph, ys[i], by, options));
      *graph = std::move(gradients.graph);
      next.insert(next.end(), gradients.values.begin(), gradients.values.end());
      if (at_once) break;
    }
    ys = next;
    results.insert(results.end(), next.begin(), next.end());
  }
  return results;
}

}  // namespace

absl::StatusOr<GradientModel> MakeGradientModel(const Model& model, const std::string& y,
                                                const std::vector<std::string>& xs, int64_t order,
                                                const Environment& environment) {
  if (xs.empty() || order < 1 || order > kHighestGradientOrder) {
    return absl::InvalidArgumentError(
        absl::StrCat("a gradient needs at least one value to differentiate by, and an order from 1 "
                     "to ",
                     kHighestGradientOrder, "; given are ", xs.size(), " and ", order));
  }
  ONWARD_ASSIGN_OR_RETURN(Graph graph, InferenceGraph(model));
  ONWARD_ASSIGN_OR_RETURN(graph, WritableGraph(graph, environment));
  ONWARD_ASSIGN_OR_RETURN(graph, ExpandGradients(graph, environment));
  auto names = AddGradients(y, xs, order, environment, &graph);
  if (!names.ok()) return Annotate(names.status(), absl::StrCat("'", model.path(), "'"));
  ONWARD_ASSIGN_OR_RETURN(graph, InlineOwnFunctions(graph, environment));
  for (const std::string& name : *names) {
    const ValueType* type = graph.TypeOf(name);
    graph.outputs.push_back({name, type == nullptr ? ValueType{} : *type});
  }
  std::vector<std::string> wanted;
  for (const NamedType& out : graph.outputs) wanted.push_back(out.name);
  Prune(&graph, wanted);
  return GradientModel{
      InferenceOnly(RebuildLike(model, graph, std::max(model.ir_version(), kWrittenIr))),
      *std::move(names)};
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Models of ai.onnx.ml, as scikit-learn's converters write them: their weights are attributes,
// which no binding can name, and their scores come out as dictionaries, which no loss takes.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/graph/attribute_lists.h"
#include "core/graph/constant.h"
#include "core/graph/infer.h"
#include "core/graph/inline.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

bool IsLinearModel(const Node& node) {
  return node.Is("LinearRegressor", kMlDomain) || node.Is("LinearClassifier", kMlDomain);
}

}  // namespace

std::vector<std::string> DropZipMaps(Graph* graph) {
  std::vector<std::string> dropped;
  for (Node& node : graph->nodes) {
    if (!node.Is("ZipMap", kMlDomain) || !node.HasInput(0) || !node.HasOutput(0)) continue;
    const std::string& name = node.outputs[0];
    auto out = std::find_if(graph->outputs.begin(), graph->outputs.end(),
                            [&](const NamedType& o) { return o.name == name; });
    if (out == graph->outputs.end()) continue;
    const int64_t classes =
        std::max(LengthOf(node, "classlabels_int64s"), LengthOf(node, "classlabels_strings"));
    ValueType scores = ValueType::Unranked(DType::kFloat);
    scores.has_rank = true;
    scores.dims = {Dim{}, Dim{classes, ""}};
    out->type = graph->types[name] = scores;
    dropped.push_back(name);
    node.op_type = "Identity";
    node.domain = "";
    node.attributes.clear();
  }
  return dropped;
}

absl::StatusOr<std::vector<std::string>> OpenLinearModels(const OperatorSet& operators,
                                                          Graph* graph) {
  std::vector<std::string> opened;
  if (std::none_of(graph->nodes.begin(), graph->nodes.end(), IsLinearModel)) return opened;
  ONWARD_RETURN_IF_ERROR(InferTypes(graph, operators));
  NameScope names;
  names.Reserve(*graph);
  std::vector<Node> nodes;
  for (Node& node : graph->nodes) {
    if (!IsLinearModel(node)) {
      nodes.push_back(std::move(node));
      continue;
    }
    std::vector<InputFact> facts;
    for (const std::string& input : node.inputs) facts.push_back({graph->TypeOf(input), nullptr});
    ONWARD_ASSIGN_OR_RETURN(const std::optional<Function> body,
                            operators.FunctionBody(node, facts, graph->opsets));
    if (!body.has_value()) {
      nodes.push_back(std::move(node));
      continue;
    }
    const std::string prefix = absl::StrCat(node.name.empty() ? node.op_type : node.name, "_");
    ONWARD_ASSIGN_OR_RETURN(std::vector<Node> expanded, ExpandCall(*body, node, prefix, &names));
    std::move(expanded.begin(), expanded.end(), std::back_inserter(nodes));
    opened.push_back(node.Describe());
  }
  graph->nodes = std::move(nodes);
  return opened;
}

}  // namespace onward

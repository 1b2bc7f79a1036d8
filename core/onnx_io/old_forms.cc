// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/old_forms.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/graph/constant.h"
#include "core/graph/name_scope.h"

namespace onward {
namespace {

// The factors of a Resize, where the graph tells them.
std::vector<double> KnownScales(const Graph& graph, const Node& resize) {
  const Tensor* scales = nullptr;
  if (resize.HasInput(2)) {
    const auto initializer = graph.initializers.find(resize.inputs[2]);
    if (initializer != graph.initializers.end()) scales = &initializer->second;
    for (const Node& node : graph.nodes) {
      const bool makes =
          node.Is("Constant") && node.HasOutput(0) && node.outputs[0] == resize.inputs[2];
      if (makes) scales = node.TensorAttribute("value");
    }
  }
  if (scales == nullptr) return {};
  absl::StatusOr<std::vector<double>> values = ToDoubles(*scales);
  return values.ok() ? *std::move(values) : std::vector<double>();
}

Node Named(const char* op, std::vector<std::string> inputs, std::string output) {
  Node node;
  node.op_type = op;
  node.inputs = std::move(inputs);
  node.outputs = {std::move(output)};
  return node;
}

// Until opset 10 Upsample and Resize count pixels from the corner, and take the one before a
// place, or where they shrink the one behind it. The converter leaves the choice to Resize-11,
// whose default is another one.
void ChooseCoordinates(const Graph& graph, Node* resize) {
  bool shrinks = false, grows = false;
  for (double scale : KnownScales(graph, *resize)) {
    shrinks |= scale < 1;
    grows |= scale > 1;
  }
  resize->attributes["coordinate_transformation_mode"] = "asymmetric";
  resize->attributes["nearest_mode"] = shrinks && !grows ? "ceil" : "floor";
}

// The converter makes floats of attributes that are numbers, whatever they go with.
void GiveType(const std::string& constant, DType dtype, Graph* graph) {
  const auto rounded = [&](const Tensor& t) {
    return t.dtype() == DType::kFloat && IsFloating(dtype) ? RoundedTo(dtype, t) : t;
  };
  if (auto it = graph->initializers.find(constant); it != graph->initializers.end()) {
    it->second = rounded(it->second);
  }
  for (Node& node : graph->nodes) {
    if (!node.HasOutput(0) || node.outputs[0] != constant) continue;
    if (std::optional<Tensor> value = ConstantValue(node)) {
      node.attributes = {{"value", rounded(*value)}};
    }
  }
}

// Whether the node, of opset `from`, may have integers that it may not have at opset `target`.
bool TakesNoMoreIntegers(const Node& node, int from, int target) {
  constexpr int kIntegerErfOpset = 12, kIntegerLogSumsOpset = 27;
  const auto until = [&](int last) { return from <= last && target > last; };
  if (node.Is("Erf")) return until(kIntegerErfOpset);
  const bool sums = node.Is("ReduceLogSum") || node.Is("ReduceLogSumExp");
  return sums && until(kIntegerLogSumsOpset);
}

}  // namespace

void WidenIntegers(const Graph& typed, int target, Graph* graph) {
  NameScope names(*graph);
  std::vector<Node> nodes;
  const auto cast = [&](const std::string& from, DType to, const std::string& result) {
    nodes.push_back(Named("Cast", {from}, result));
    nodes.back().attributes["to"] = static_cast<int64_t>(to);
  };
  for (Node& node : graph->nodes) {
    const bool widens = TakesNoMoreIntegers(node, graph->opset(), target);
    const ValueType* type = widens && node.HasInput(0) ? typed.TypeOf(node.inputs[0]) : nullptr;
    if (type == nullptr || !IsInteger(type->dtype) || !node.HasOutput(0)) {
      nodes.push_back(std::move(node));
      continue;
    }
    const std::string wide = names.Unique(node.outputs[0] + "__wide");
    const std::string result = node.outputs[0], exact = names.Unique(result + "__exact");
    cast(node.inputs[0], DType::kDouble, wide);
    node.inputs[0] = wide;
    node.outputs[0] = exact;
    nodes.push_back(std::move(node));
    cast(exact, type->dtype, result);
  }
  graph->nodes = std::move(nodes);
}

absl::StatusOr<Graph> WithFormsOfOpset10(Graph raised, const Graph& typed) {
  for (Node& node : raised.nodes) {
    ONWARD_RETURN_IF_ERROR(ChangeBodies(
        [&](Graph body) { return WithFormsOfOpset10(std::move(body), typed); }, &node));
    if (node.Is("Resize")) ChooseCoordinates(raised, &node);
    if (node.Is("Pad")) node.attributes.erase("value");
  }
  // By number: the nodes that make the constants change, too.
  for (size_t i = 0; i < raised.nodes.size(); ++i) {
    const Node node = raised.nodes[i];
    if (!node.Is("Clip") && !node.Is("Pad")) continue;
    const ValueType* type = node.HasInput(0) ? typed.TypeOf(node.inputs[0]) : nullptr;
    if (type == nullptr) continue;
    for (int operand = node.Is("Clip") ? 1 : 2; operand < 3; ++operand) {
      if (node.HasInput(operand)) GiveType(node.inputs[operand], type->dtype, &raised);
    }
  }
  return raised;
}

}  // namespace onward

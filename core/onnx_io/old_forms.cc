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

// The part of a Resize (its third input: scales) that shrinks, or the one that grows.
struct Part {
  const char* bound;  // of the scales: by 1
  const char* nearest;
  double (*limit)(double scale);
};
constexpr Part kShrink = {"Min", "ceil", [](double s) { return std::min(s, 1.0); }};
constexpr Part kGrow = {"Max", "floor", [](double s) { return std::max(s, 1.0); }};

// Adds the part of `resize` on `x`, and gives what makes its scales before it.
Node PartOf(const Node& resize, const Part& part, const std::vector<double>& scales,
            const std::string& x, const std::string& y, NameScope* names,
            std::vector<Node>* nodes) {
  const std::string limited = names->Unique(y + "__scales");
  if (scales.empty()) {
    const std::string one = names->Unique(y + "__one");
    nodes->push_back(Named("Constant", {}, one));
    nodes->back().attributes["value"] = Tensor::Scalar<float>(1);
    nodes->push_back(Named(part.bound, {resize.inputs[2], one}, limited));
  } else {
    Tensor values(DType::kFloat, {static_cast<int64_t>(scales.size())});
    for (size_t i = 0; i < scales.size(); ++i) {
      values.data<float>()[i] = static_cast<float>(part.limit(scales[i]));
    }
    nodes->push_back(Named("Constant", {}, limited));
    nodes->back().attributes["value"] = values;
  }
  Node node = resize;
  node.inputs[0] = x;
  node.inputs[2] = limited;
  node.outputs = {y};
  node.attributes["nearest_mode"] = part.nearest;
  return node;
}

// Until opset 10 Upsample and Resize count pixels from the corner, and take the one before a
// place, or along an axis that shrinks the one behind it. The converter leaves the choice to
// Resize-11, which has one for all axes and another default: axes of both kinds are two nodes.
void ChooseCoordinates(const Graph& graph, Node resize, NameScope* names,
                       std::vector<Node>* nodes) {
  resize.attributes["coordinate_transformation_mode"] = "asymmetric";
  const std::vector<double> scales = KnownScales(graph, resize);
  const auto any = [&](auto is) { return std::any_of(scales.begin(), scales.end(), is); };
  const bool known = !scales.empty();
  const bool shrinks = any([](double s) { return s < 1; });
  const bool grows = any([](double s) { return s > 1; });
  const bool nearest = resize.String("mode", "nearest") == "nearest" && resize.HasInput(2);
  if (!nearest || (known && !(shrinks && grows))) {
    resize.attributes["nearest_mode"] = shrinks ? kShrink.nearest : kGrow.nearest;
    nodes->push_back(std::move(resize));
    return;
  }
  const std::string x = resize.inputs[0], y = resize.outputs[0];
  const std::string between = names->Unique(y + "__shrunk");
  nodes->push_back(PartOf(resize, kShrink, scales, x, between, names, nodes));
  nodes->push_back(PartOf(resize, kGrow, scales, between, y, names, nodes));
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

// Repeats scale and bias of a GroupNormalization for all channels of their group.
void GiveChannelsScales(Node* node, NameScope* names, std::vector<Node>* nodes) {
  const std::string base = node->outputs[0];
  const auto add = [&](const char* op, std::vector<std::string> inputs, const char* what) {
    nodes->push_back(Named(op, std::move(inputs), names->Unique(base + what)));
    return nodes->back().outputs[0];
  };
  const auto ints = [&](std::initializer_list<int64_t> values, const char* what) {
    const std::string name = add("Constant", {}, what);
    nodes->back().attributes["value"] =
        Tensor::FromValues<int64_t>({static_cast<int64_t>(values.size())}, values);
    return name;
  };
  const int64_t count = node->Int("num_groups", 1);
  const std::string groups = ints({count}, "__groups"), column = ints({count, 1}, "__column");
  const std::string flat = ints({-1}, "__flat");
  const std::string channels = add("Shape", {node->inputs[0]}, "__channels");
  nodes->back().attributes = {{"end", 2}, {"start", 1}};
  const std::string width = add("Div", {channels, groups}, "__width");
  const std::string whole = add("Concat", {groups, width}, "__whole");
  nodes->back().attributes = {{"axis", 0}};
  for (int input : {1, 2}) {
    std::string value = add("Reshape", {node->inputs[input], column}, "__one");
    value = add("Expand", {value, whole}, "__each");
    node->inputs[input] = add("Reshape", {value, flat}, input == 1 ? "__scale" : "__bias");
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

void ReplaceUpsample(Graph* graph) {
  const auto inside = [](const Graph& body) -> absl::StatusOr<Graph> {
    Graph changed = body;
    ReplaceUpsample(&changed);
    return changed;
  };
  for (Node& node : graph->nodes) {
    if (node.Is("Upsample")) node.op_type = "Resize";
    ChangeBodies(inside, &node).IgnoreError();  // there is none
  }
}

absl::StatusOr<Graph> WithFormsOfOpset10(Graph raised, const Graph& typed) {
  NameScope names(raised);
  std::vector<Node> nodes;
  for (Node& node : raised.nodes) {
    ONWARD_RETURN_IF_ERROR(ChangeBodies(
        [&](Graph body) { return WithFormsOfOpset10(std::move(body), typed); }, &node));
    if (node.Is("Pad")) node.attributes.erase("value");
    if (node.Is("Resize")) {
      ChooseCoordinates(raised, node, &names, &nodes);
    } else {
      nodes.push_back(node);
    }
  }
  raised.nodes = std::move(nodes);
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

absl::StatusOr<Graph> WithScalesOfChannels(Graph raised, const Graph& typed) {
  NameScope names(raised);
  std::vector<Node> nodes;
  for (Node& node : raised.nodes) {
    const auto inside = [&](Graph body) { return WithScalesOfChannels(std::move(body), typed); };
    ONWARD_RETURN_IF_ERROR(ChangeBodies(inside, &node));
    if (node.Is("GroupNormalization") && node.HasInput(2)) {
      GiveChannelsScales(&node, &names, &nodes);
      const ValueType* type = typed.TypeOf(node.inputs[0]);
      if (type != nullptr && IsFloating(type->dtype)) {
        node.attributes["stash_type"] = static_cast<int64_t>(type->dtype);
      }
    }
    nodes.push_back(std::move(node));
  }
  raised.nodes = std::move(nodes);
  return raised;
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "core/graph/name_scope.h"
#include "training_info/surgery/surgery.h"

namespace onward {
namespace {

// How a weight is used: the operator that reads it, and at which input.
struct Use {
  std::string op;
  int input = 0;
  bool transposed = false;
};

// Follows a weight through changes of shape to its real reader.
Use FindUse(const Graph& graph, std::string value) {
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != value) continue;
      const bool passes = node.Is("Reshape") || node.Is("Identity") || node.Is("Transpose") ||
                          node.Is("Cast") || node.Is("Pad") || node.Is("Expand") ||
                          node.Is("Unsqueeze");
      if (passes && i == 0) {
        value = node.outputs[0];
        break;
      }
      return {node.op_type, static_cast<int>(i), node.Int("transB", 0) != 0};
    }
  }
  return {};
}

int64_t FanIn(const Use& use, const Shape& shape) {
  if (use.op == "Conv" || use.op == "ConvTranspose" || (use.op == "Gemm" && use.transposed)) {
    return shape.elements(1, shape.rank());
  }
  if (use.op == "LSTM" || use.op == "GRU" || use.op == "RNN") return shape[shape.rank() - 1];
  return shape.elements(0, shape.rank() - 1);
}

Node RandomNode(const std::string& output, const Tensor& like, double bound, bool normal) {
  Node node;
  node.op_type = normal ? "RandomNormal" : "RandomUniform";
  node.outputs = {output};
  node.attributes["dtype"] = static_cast<int64_t>(like.dtype());
  node.attributes["shape"] = std::vector<int64_t>(like.shape().begin(), like.shape().end());
  if (normal) {
    node.attributes["mean"] = 0.0f;
    node.attributes["scale"] = bound;
  } else {
    node.attributes["low"] = -bound;
    node.attributes["high"] = bound;
  }
  return node;
}

Node FillNode(const std::string& output, const std::string& shape_value, const Tensor& like,
              double value) {
  Node node;
  node.op_type = "ConstantOfShape";
  node.inputs = {shape_value};
  node.outputs = {output};
  node.attributes["value"] = ScalarOf(like.dtype(), value, Shape{1});
  return node;
}

Node ConstantNode(const std::string& output, Tensor value) {
  Node node;
  node.op_type = "Constant";
  node.outputs = {output};
  node.attributes["value"] = std::move(value);
  return node;
}

}  // namespace

void AddInitialization(const Graph& graph, const std::vector<std::string>& weights,
                       const std::vector<std::pair<std::string, Tensor>>& states,
                       TrainingEntry* entry) {
  Graph& init = entry->initialization;
  init.name = "initialization";
  init.opsets = graph.opsets;
  NameScope names;
  auto bind = [&](const std::string& variable, const Tensor& like) {
    const std::string value = names.Unique(absl::StrCat(variable, "__init"));
    init.outputs.push_back({value, ValueType::Of(like.dtype(), like.shape())});
    entry->initialization_bindings.push_back({variable, value});
    return value;
  };
  auto fill = [&](const std::string& value, const Tensor& like, double number) {
    const std::string shape = names.Unique(absl::StrCat(value, "__shape"));
    init.nodes.push_back(ConstantNode(
        shape, Tensor::FromValues<int64_t>(Shape{like.shape().rank()}, like.shape().dims())));
    init.nodes.push_back(FillNode(value, shape, like, number));
  };
  for (const std::string& name : weights) {
    const Tensor& weight = graph.initializers.at(name);
    const Use use = FindUse(graph, name);
    const std::string value = bind(name, weight);
    if (weight.shape().rank() >= 2 && use.op != "Add" && use.op != "Sub" && use.op != "PRelu") {
      const bool embedding = use.op == "Gather";
      const double bound = embedding ? 0.02
                                     : 1 / std::sqrt(static_cast<double>(
                                               std::max<int64_t>(1, FanIn(use, weight.shape()))));
      init.nodes.push_back(RandomNode(value, weight, bound, embedding));
      continue;
    }
    const bool scale = (use.op == "BatchNormalization" || use.op == "LayerNormalization" ||
                        use.op == "InstanceNormalization" || use.op == "GroupNormalization" ||
                        use.op == "Mul" || use.op == "Div") &&
                       use.input <= 1;
    fill(value, weight, scale ? 1 : use.op == "PRelu" ? 0.25 : 0);
  }
  for (const auto& [name, start] : states) {
    const std::string value = bind(name, start);
    const auto numbers = ToDoubles(start);
    // States start uniform; a scalar keeps its exact value as a constant.
    if (start.elements() == 1 || !numbers.ok() || numbers->empty()) {
      init.nodes.push_back(ConstantNode(value, start.Clone()));
    } else {
      fill(value, start, numbers->front());
    }
  }
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "training_info/initializers/layer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "training_info/adapters/adapter.h"
#include "training_info/surgery/flat_graph.h"
#include "training_info/weights/flow.h"

namespace onward {
namespace {

constexpr std::array kPasses = {"Reshape", "Identity", "Transpose", "Cast",
                                "Pad",     "Expand",   "Unsqueeze", "Squeeze"};
constexpr std::array kChangesCount = {"Pad", "Expand"};
constexpr std::array kConvolutions = {"Conv", "ConvTranspose", "DeformConv"};
constexpr std::array kAdds = {"Add", "Sub", "Sum"};

bool IsProduct(const Node& node) { return IsOneOf(node, kProducts) || node.Is("DeformConv"); }

// The input that is a bias where the operator has one.
size_t BiasInput(const Node& node) { return node.Is("DeformConv") ? 3 : 2; }

// Whether a matrix at this input has an output in each row: [out, in].
bool RowsAreOutputs(const Node& node, size_t input) {
  if (IsOneOf(node, kConvolutions)) return true;
  if (!node.Is("Gemm")) return input == 0;
  return (input == 0) != (node.Int(input == 0 ? "transA" : "transB", 0) != 0);
}

// nn.init's: of a kernel, times the elements of its window.
void SetFans(bool rows_are_outputs, bool convolution, WeightMatrix* m) {
  const Shape& shape = m->matrix;
  const int first = m->stacked;
  if (convolution) {
    m->fan_in = shape.elements(first + 1, shape.rank());
    m->fan_out = shape[first] * shape.elements(first + 2, shape.rank());
    return;
  }
  const int64_t rows = shape.elements(first, shape.rank() - 1), columns = shape[shape.rank() - 1];
  m->fan_in = rows_are_outputs ? columns : rows;
  m->fan_out = rows_are_outputs ? rows : columns;
}

}  // namespace

LayerFinder::LayerFinder(const Graph& graph) : graph_(graph), nodes_(FlatNodes(graph)) {
  for (const Node& node : nodes_) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      first_reader_.try_emplace(node.inputs[i], &node, i);
    }
    for (const std::string& out : node.outputs) producer_.emplace(out, &node);
  }
}

const Node* LayerFinder::Producer(const std::string& value) const {
  auto it = producer_.find(value);
  return it == producer_.end() ? nullptr : it->second;
}

Shape LayerFinder::ShapeOf(const std::string& value) const {
  auto it = graph_.initializers.find(value);
  if (it != graph_.initializers.end()) return it->second.shape();
  const ValueType* type = graph_.TypeOf(value);
  return type == nullptr ? Shape() : type->StaticShape().value_or(Shape());
}

LayerFinder::Use LayerFinder::FindUse(std::string value) const {
  Use use;
  for (int hop = 0; hop < kMostHops; ++hop) {
    auto reader = first_reader_.find(value);
    if (reader == first_reader_.end()) return {};
    use.node = reader->second.first;
    use.input = reader->second.second;
    use.value = value;
    if (use.input != 0 || !IsOneOf(*use.node, kPasses) || !use.node->HasOutput(0)) return use;
    use.turned ^= use.node->Is("Transpose");
    use.whole &= !IsOneOf(*use.node, kChangesCount);
    value = use.node->outputs[0];
  }
  return {};
}

WeightRole LayerFinder::RoleOf(const Use& use, const Shape& shape) const {
  if (use.node == nullptr) return WeightRole::kShift;
  const Node& node = *use.node;
  if (IsOneOf(node, kRecurrent)) {
    return use.input == 1   ? WeightRole::kRecurrentInput
           : use.input == 2 ? WeightRole::kRecurrentState
                            : WeightRole::kRecurrentBias;
  }
  if (IsProduct(node)) {
    const bool bias = !node.Is("Einsum") && use.input == BiasInput(node);
    return bias ? WeightRole::kBias : WeightRole::kMatrix;
  }
  if (IsOneOf(node, kGathers)) {
    return shape.rank() >= 2 ? WeightRole::kEmbedding : WeightRole::kShift;
  }
  if (IsOneOf(node, kNormalizations)) {
    return use.input == 1 ? WeightRole::kScale : WeightRole::kShift;
  }
  if (node.Is("Mul") || node.Is("Div")) return WeightRole::kScale;
  if (node.Is("PRelu")) return WeightRole::kSlope;
  if (IsOneOf(node, kAdds)) {
    return FanInOfBias(use) > 0 ? WeightRole::kBias : WeightRole::kShift;
  }
  if (shape.rank() < 2) return WeightRole::kShift;
  return node.Is("Concat") || node.Is("Where") ? WeightRole::kToken : WeightRole::kMatrix;
}

int64_t LayerFinder::FanInOfBias(const Use& use) const {
  const Node* product = use.node;
  if (IsOneOf(*product, kAdds)) {
    if (product->inputs.size() != 2) return 0;
    product = Producer(product->inputs[1 - use.input]);
    for (int hop = 0; hop < kMostHops && product != nullptr && IsOneOf(*product, kPasses); ++hop) {
      product = product->HasInput(0) ? Producer(product->inputs[0]) : nullptr;
    }
  }
  if (product == nullptr || !IsProduct(*product)) return 0;
  for (const size_t input : {1, 0}) {
    if (!product->HasInput(static_cast<int>(input))) continue;
    WeightMatrix m;
    m.matrix = ShapeOf(product->inputs[input]);
    const bool weight = graph_.initializers.contains(product->inputs[input]) || input == 1;
    if (!weight || m.matrix.rank() < 2) continue;
    const bool convolution = IsOneOf(*product, kConvolutions);
    m.stacked = convolution ? 0 : m.matrix.rank() - 2;
    SetFans(RowsAreOutputs(*product, input), convolution, &m);
    return m.fan_in;
  }
  return 0;
}

void LayerFinder::SetMatrix(const Use& use, WeightLayer* layer) const {
  WeightMatrix& m = layer->matrix;
  const Node& node = *use.node;
  const Shape read = ShapeOf(use.value);
  // The form in which it is read, unless its numbers are in another order there.
  if (!use.turned && use.whole && read.rank() > 0 && read.elements() == m.shape.elements())
    m.matrix = read;
  while (m.matrix.rank() < 2) m.matrix.push_back(1);
  const bool convolution = IsOneOf(node, kConvolutions) && m.matrix.rank() > 2;
  const bool stacks = node.Is("MatMul") || IsOneOf(node, kRecurrent);
  m.stacked = stacks ? m.matrix.rank() - 2 : 0;
  const bool rows = IsOneOf(node, kRecurrent) || RowsAreOutputs(node, use.input) != use.turned;
  SetFans(rows, convolution, &m);
}

WeightLayer LayerFinder::Find(const std::string& weight) const {
  const Tensor& tensor = graph_.initializers.at(weight);
  WeightLayer layer;
  layer.matrix = {.dtype = tensor.dtype(), .shape = tensor.shape(), .matrix = tensor.shape()};
  const Use use = FindUse(weight);
  layer.role = RoleOf(use, tensor.shape());
  if (use.node == nullptr) return layer;
  layer.op = use.node->op_type;
  if (layer.role == WeightRole::kBias) layer.matrix.fan_in = FanInOfBias(use);
  const bool matrix = layer.role == WeightRole::kMatrix ||
                      layer.role == WeightRole::kRecurrentInput ||
                      layer.role == WeightRole::kRecurrentState;
  if (matrix) SetMatrix(use, &layer);
  if (IsOneOf(*use.node, kRecurrent)) {
    const Shape state = ShapeOf(use.node->inputs.size() > 2 ? use.node->inputs[2] : "");
    layer.hidden_size =
        std::max<int64_t>(1, use.node->Int("hidden_size", state.rank() == 3 ? state[2] : 1));
  }
  const std::string part = graph_.ValueMetadata(weight, kLoraPartKey);
  if (part == kLoraDown) layer.role = WeightRole::kAdapterDown;
  if (part == kLoraUp) layer.role = WeightRole::kAdapterUp;
  return layer;
}

}  // namespace onward

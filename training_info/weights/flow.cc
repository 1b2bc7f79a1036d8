// SPDX-License-Identifier: Apache-2.0
#include "training_info/weights/flow.h"

#include "core/graph/constant.h"
#include "training_info/surgery/flat_graph.h"

namespace onward {
namespace {

bool TakesWeights(const Node& node) {
  return IsOneOf(node, kProducts) || IsOneOf(node, kRecurrent) || IsOneOf(node, kNormalizations) ||
         node.Is("Attention") || node.Is("PRelu");
}

}  // namespace

FlowGraph::FlowGraph(const Graph& graph) : graph_(graph), nodes_(FlatNodes(graph)) {
  for (const Node& node : nodes_) {
    for (const std::string& out : node.outputs) producer_.emplace(out, &node);
    for (const std::string& in : node.inputs) readers_[in].push_back(&node);
  }
  FindLayers();
  // What is fixed has to be known everywhere before a node is judged.
  for (const Node& node : nodes_) SetFlow(node, FlowThrough(node));
}

Flow FlowGraph::FlowOf(const std::string& value) const {
  if (auto it = flow_.find(value); it != flow_.end()) return it->second;
  return graph_.initializers.contains(value) ? Flow::kConstant : Flow::kInput;
}

const Node* FlowGraph::Producer(const std::string& value) const {
  auto it = producer_.find(value);
  return it == producer_.end() ? nullptr : it->second;
}

std::optional<Shape> FlowGraph::ShapeOf(const std::string& value) const {
  auto it = graph_.initializers.find(value);
  if (it != graph_.initializers.end()) return it->second.shape();
  if (const Node* node = Producer(value)) {
    if (const std::optional<Tensor> constant = ConstantValue(*node)) return constant->shape();
  }
  const ValueType* type = graph_.TypeOf(value);
  return type == nullptr ? std::nullopt : type->StaticShape();
}

int FlowGraph::Axes(const std::string& value) const {
  std::optional<Shape> shape = ShapeOf(value);
  if (!shape.has_value()) {
    const std::optional<Tensor> contents = Contents(value);
    if (!contents.has_value()) return -1;
    shape = contents->shape();
  }
  return static_cast<int>(
      std::count_if(shape->begin(), shape->end(), [](int64_t d) { return d != 1; }));
}

std::optional<Tensor> FlowGraph::Contents(std::string value) const {
  for (int hop = 0; hop < kMostHops; ++hop) {
    auto it = graph_.initializers.find(value);
    if (it != graph_.initializers.end()) return it->second;
    const Node* node = Producer(value);
    if (node == nullptr) return std::nullopt;
    if (std::optional<Tensor> constant = ConstantValue(*node)) return constant;
    if (!IsOneOf(*node, kSameNumbers) || !node->HasInput(0)) return std::nullopt;
    value = node->inputs[0];
  }
  return std::nullopt;
}

bool FlowGraph::Holds(std::string value, bool (*kind)(const Tensor&)) const {
  constexpr std::array kParts = {"Slice", "Expand", "Tile", "Gather", "Split"};
  for (int hop = 0; hop < kMostHops; ++hop) {
    if (const std::optional<Tensor> t = Contents(value)) return IsFloating(t->dtype()) && kind(*t);
    const Node* node = Producer(value);
    if (node == nullptr || !node->HasInput(0)) return false;
    if (!IsOneOf(*node, kParts) && !IsOneOf(*node, kSameNumbers)) return false;
    value = node->inputs[0];
  }
  return false;
}

const Node* FlowGraph::Maker(std::string value) const {
  for (int hop = 0; hop < kMostHops; ++hop) {
    const Node* node = Producer(value);
    if (node == nullptr || !IsOneOf(*node, kSameNumbers) || !node->HasInput(0)) return node;
    value = node->inputs[0];
  }
  return nullptr;
}

void FlowGraph::FindLayers() {
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    const bool leads =
        TakesWeights(*node) ||
        std::any_of(node->outputs.begin(), node->outputs.end(),
                    [&](const std::string& out) { return before_layer_.contains(out); });
    if (leads) before_layer_.insert(node->inputs.begin(), node->inputs.end());
  }
}

bool FlowGraph::LayerFollows(const Node& node) const {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](const std::string& out) { return before_layer_.contains(out); });
}

Flow FlowGraph::FlowThrough(const Node& node) const {
  if (node.Is("Shape") || node.Is("Size")) return Flow::kConstant;
  if (node.inputs.empty() || node.Is("Carry"))
    return node.Is("Constant") ? Flow::kConstant : Flow::kInput;
  Flow flow = Flow::kConstant;
  const size_t data = IsOneOf(node, kMovement) ? 1 : node.inputs.size();
  for (size_t i = 0; i < data; ++i) {
    if (node.HasInput(static_cast<int>(i))) flow = std::max(flow, FlowOf(node.inputs[i]));
  }
  if (IsOneOf(node, kGathers) && node.HasInput(1) && !IsFixed(node.inputs[1]))
    flow = std::max(flow, Flow::kInput);
  const bool counted = node.Is("Range") || (node.Is("Cast") && IsInteger(node.inputs[0]) &&
                                            Axes(node.inputs[0]) != 0 && !IsSize(node.inputs[0]));
  return counted ? std::max(flow, Flow::kPositions) : flow;
}

// Whether a constant is of integers, by its tensor, its type or what it is computed from.
bool FlowGraph::IsInteger(std::string value) const {
  for (int hop = 0; hop < kMostHops; ++hop) {
    const std::optional<Tensor> t = Contents(value);
    if (t.has_value()) return !IsFloating(t->dtype());
    if (const ValueType* type = graph_.TypeOf(value); type != nullptr && type->known())
      return type->is_tensor() && !IsFloating(type->dtype);
    const Node* node = Producer(value);
    if (node == nullptr || node->Is("Cast") || !node->HasInput(0)) return false;
    if (node->Is("Range") || node->Is("Shape") || node->Is("Size")) return true;
    value = node->inputs[0];
  }
  return false;
}

// Part of a shape: one number as a rule, whatever its rank.
bool FlowGraph::IsSize(std::string value) const {
  for (int hop = 0; hop < kMostHops; ++hop) {
    const Node* node = Producer(value);
    if (node == nullptr || !node->HasInput(0)) return false;
    if (node->Is("Shape") || node->Is("Size")) return true;
    value = node->inputs[0];
  }
  return false;
}

void FlowGraph::SetFlow(const Node& node, Flow flow) {
  for (const std::string& out : node.outputs) flow_[out] = flow;
}

bool FlowGraph::ReadsConstant(const Node& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const std::string& in) { return !in.empty() && IsFixed(in); });
}

bool FlowGraph::IsNormalized(const std::string& value) const {
  const Node* maker = Maker(value);
  if (maker == nullptr) return false;
  if (IsOneOf(*maker, kNormalizations)) return true;
  if (ComesFromRoot(value, 2)) return true;
  if (!maker->Is("Div") && !maker->Is("Mul")) return false;
  return std::any_of(maker->inputs.begin(), maker->inputs.end(),
                     [&](const std::string& in) { return !IsFixed(in) && ComesFromRoot(in, 4); });
}

bool FlowGraph::ComesFromRoot(const std::string& value, int depth) const {
  constexpr std::array kRoots = {"Sqrt", "ReduceL2"};
  constexpr std::array kOnTheWay = {"Reciprocal", "Add",    "Max",       "Clip",    "Cast",
                                    "Div",        "Expand", "Unsqueeze", "Reshape", "Identity"};
  const Node* node = Producer(value);
  if (node == nullptr || IsFixed(value)) return false;
  if (IsOneOf(*node, kRoots)) return true;
  if (depth == 0 || !IsOneOf(*node, kOnTheWay)) return false;
  for (size_t i = 0; i < std::min<size_t>(2, node->inputs.size()); ++i) {
    if (ComesFromRoot(node->inputs[i], depth - 1)) return true;
  }
  return false;
}

}  // namespace onward

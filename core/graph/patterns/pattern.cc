// SPDX-License-Identifier: Apache-2.0
#include "core/graph/patterns/pattern.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/graph/constant.h"

namespace onward {

bool Has(const Graph& graph, std::initializer_list<std::string_view> ops, std::string_view domain) {
  return absl::c_any_of(graph.nodes, [&](const Node& node) {
    return node.domain == domain && absl::c_linear_search(ops, node.op_type);
  });
}

PatternGraph::PatternGraph(Graph* graph, const absl::flat_hash_set<std::string>& keep)
    : graph_(graph), keep_(keep), fixed_(keep), names_(*graph), gone_(graph->nodes.size(), false) {
  names_.ReserveAll(keep);
  for (const NamedType& in : graph->inputs) inputs_.insert(in.name);
  for (const NamedType& out : graph->outputs) fixed_.insert(out.name);
  for (int i = 0; i < static_cast<int>(graph->nodes.size()); ++i) {
    const Node& node = graph->nodes[i];
    for (const std::string& out : node.outputs) producer_.emplace(out, i);
    for (const std::string& in : node.inputs) consumers_[in].push_back(i);
    ForEachBody(node, [&](const std::string&, const Graph& body) {
      for (const std::string& captured : CapturedValues(body)) consumers_[captured].push_back(i);
    });
  }
}

const Node* PatternGraph::Producer(const std::string& value, std::string_view op,
                                   int inputs) const {
  auto it = producer_.find(value);
  if (value.empty() || it == producer_.end()) return nullptr;
  const Node& node = graph_->nodes[it->second];
  if (gone(node) || !node.Is(op) || node.outputs.size() != 1) return nullptr;
  for (int i = 0; i < inputs; ++i) {
    if (!node.HasInput(i)) return nullptr;
  }
  return &node;
}

const Node* PatternGraph::OnlyConsumer(const std::string& value) const {
  if (value.empty() || fixed(value)) return nullptr;
  const std::vector<const Node*> consumers = Consumers(value);
  return consumers.size() == 1 ? consumers[0] : nullptr;
}

std::vector<const Node*> PatternGraph::Consumers(const std::string& value) const {
  std::vector<const Node*> consumers;
  auto it = consumers_.find(value);
  if (it == consumers_.end()) return consumers;
  for (int i : it->second) {
    if (!gone_[i]) consumers.push_back(&graph_->nodes[i]);
  }
  return consumers;
}

std::optional<Tensor> PatternGraph::Constant(const std::string& value) const {
  if (keep_.contains(value)) return std::nullopt;
  auto it = graph_->initializers.find(value);
  // A caller may feed another value for an initializer that is an input.
  if (it != graph_->initializers.end() && !inputs_.contains(value)) return it->second;
  const Node* node = Producer(value, "Constant", 0);
  return node == nullptr ? std::nullopt : ConstantValue(*node);
}

std::optional<double> PatternGraph::Number(const std::string& value) const {
  const std::optional<Tensor> tensor = Constant(value);
  if (!tensor.has_value() || tensor->elements() != 1) return std::nullopt;
  const absl::StatusOr<std::vector<double>> values = ToDoubles(*tensor);
  return values.ok() ? std::optional<double>((*values)[0]) : std::nullopt;
}

std::string PatternGraph::AddConstant(const Node& root, std::string_view hint, Tensor value) {
  Node node;
  node.op_type = "Constant";
  ValueType type = ValueType::Of(value.dtype(), value.shape());
  node.attributes["value"] = std::move(value);
  return AddBefore(root, hint, std::move(node), std::move(type));
}

std::string PatternGraph::NewName(const Node& root, std::string_view hint) {
  return names_.Unique(absl::StrCat(root.outputs[0], "__", std::string(hint)));
}

std::string PatternGraph::AddBefore(const Node& root, std::string_view hint, Node node,
                                    ValueType type) {
  const std::string name = NewName(root, hint);
  node.name = name;
  node.outputs = {name};
  graph_->types[name] = std::move(type);
  before_[Index(root)].push_back(std::move(node));
  return name;
}

bool PatternGraph::SameForm(const std::string& x, const std::string& y) const {
  const ValueType *tx = TypeOf(x), *ty = TypeOf(y);
  return tx != nullptr && ty != nullptr && tx->has_rank && ty->has_rank &&
         tx->rank() == ty->rank() && tx->dtype == ty->dtype && IsFloating(tx->dtype);
}

bool PatternGraph::Closed(const std::vector<const Node*>& nodes, const Node& root,
                          const std::vector<std::string>& inputs) const {
  const absl::flat_hash_set<const Node*> inside(nodes.begin(), nodes.end());
  for (const std::string& in : inputs) {
    auto it = producer_.find(in);
    if (it != producer_.end() && inside.contains(&graph_->nodes[it->second])) return false;
  }
  for (const Node* node : nodes) {
    if (node == &root) continue;
    const std::string& value = node->outputs[0];
    if (fixed_.contains(value)) return false;
    auto it = consumers_.find(value);
    if (it == consumers_.end()) continue;
    for (int i : it->second) {
      const Node& reader = graph_->nodes[i];
      if (!gone(reader) && &reader != &root && !inside.contains(&reader)) return false;
    }
  }
  return true;
}

void PatternGraph::Replace(const std::vector<const Node*>& nodes, const Node& root, Node node) {
  const int at = Index(root);
  std::vector<std::string> read = root.inputs;
  for (const Node* old : nodes) {
    if (old == &root) continue;
    read.insert(read.end(), old->inputs.begin(), old->inputs.end());
    gone_[Index(*old)] = true;
    graph_->types.erase(old->outputs[0]);
  }
  for (const std::string& in : root.inputs) std::erase(consumers_[in], at);
  if (node.name.empty()) node.name = root.name;
  node.origin = root.origin;
  if (node.outputs.empty()) node.outputs = root.outputs;
  for (const std::string& out : node.outputs) producer_[out] = at;
  for (const std::string& in : node.inputs) consumers_[in].push_back(at);
  for (const Node& before : before_[at]) {
    for (const std::string& in : before.inputs) consumers_[in].push_back(at);
  }
  ImportDomain(node.domain, graph_);
  graph_->nodes[at] = std::move(node);
  for (const std::string& value : read) DropIfUnused(value);
}

void PatternGraph::DropIfUnused(const std::string& value) {
  const Node* node = Producer(value, "Constant", 0);
  if (node == nullptr || fixed_.contains(value)) return;
  for (int reader : consumers_[value]) {
    if (!gone_[reader]) return;
  }
  gone_[Index(*node)] = true;
  graph_->types.erase(value);
}

void PatternGraph::Finish() {
  std::vector<Node> nodes;
  nodes.reserve(graph_->nodes.size());
  for (int i = 0; i < static_cast<int>(graph_->nodes.size()); ++i) {
    if (gone_[i]) continue;
    if (auto it = before_.find(i); it != before_.end()) {
      for (Node& node : it->second) nodes.push_back(std::move(node));
    }
    nodes.push_back(std::move(graph_->nodes[i]));
  }
  graph_->nodes = std::move(nodes);
}

}  // namespace onward

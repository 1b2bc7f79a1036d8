// SPDX-License-Identifier: Apache-2.0
#include "trainer/doctor/landmarks.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/graph/constant.h"
#include "training_info/weights/flow.h"
#include "training_info/weights/weights.h"

namespace onward {
namespace {

constexpr std::array kRectifiers = {"Relu", "ThresholdedRelu"};

bool IsLayer(const Node& node) { return IsOneOf(node, kProducts) || IsOneOf(node, kRecurrent); }

bool IsAdded(const Node& node, const std::string& value) {
  return node.Is("Add") || (node.Is("Gemm") && value != node.inputs[0] && value != node.inputs[1]);
}

bool IsFloat(const Graph& graph, const std::string& value) {
  const ValueType* type = graph.TypeOf(value);
  return type != nullptr && type->is_tensor() && IsFloating(type->dtype);
}

// Follows inputs through nodes that add nothing but constants.
class ReadFinder {
 public:
  ReadFinder(const Graph& graph, const std::set<std::string>& labels,
             const std::set<std::string>& variables)
      : graph_(graph) {
    for (const auto& [name, tensor] : graph.initializers) {
      if (!variables.contains(name)) fixed_.insert(name);
    }
    for (const NamedType& in : graph.FeedInputs()) {
      if (!labels.contains(in.name)) origin_[in.name] = in.name;
    }
  }

  std::vector<LayerRead> Find() {
    for (const Node& node : graph_.nodes) Visit(node);
    for (const NamedType& in : graph_.FeedInputs()) {
      if (!origin_.contains(in.name) || found_.contains(in.name)) continue;
      if (IsFloating(in.type.dtype)) reads_.push_back({in.name, in.name, "", ""});
    }
    return std::move(reads_);
  }

 private:
  void Visit(const Node& node) {
    const std::vector<std::string> inputs = AllInputs(node);
    std::string origin;
    bool fixed = true, plain = true;
    for (const std::string& value : inputs) {
      if (value.empty() || fixed_.contains(value)) continue;
      fixed = false;
      const auto it = origin_.find(value);
      if (it == origin_.end()) {
        plain = false;
        continue;
      }
      origin = it->second;
      if (IsLayer(node)) Read(node, value, origin);
      if (IsOneOf(node, kNormalizations)) found_.insert(origin);
    }
    if (IsLayer(node) || IsOneOf(node, kNormalizations)) return;
    for (const std::string& out : node.outputs) {
      if (fixed) fixed_.insert(out);
      if (!fixed && plain) origin_[out] = origin;
    }
  }

  void Read(const Node& node, const std::string& value, const std::string& origin) {
    if (!IsFloat(graph_, value) || !read_.insert(value).second) return;
    found_.insert(origin);
    reads_.push_back({origin, value, node.Describe(), node.outputs[0]});
  }

  const Graph& graph_;
  absl::flat_hash_set<std::string> fixed_;                // constants, and what is made of them
  absl::flat_hash_map<std::string, std::string> origin_;  // a value -> the input it is made of
  absl::flat_hash_set<std::string> found_, read_;         // inputs, values
  std::vector<LayerRead> reads_;
};

// Finds out on which axis the units of a value are.
class UnitFinder {
 public:
  explicit UnitFinder(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes) {
      for (const std::string& out : node.outputs) producer_[out] = &node;
    }
  }

  std::vector<UnitLayer> Find() const {
    std::vector<UnitLayer> layers;
    for (const Node& node : graph_.nodes) {
      if (!IsOneOf(node, kRectifiers) && !CutsBelowZero(node)) continue;
      const ValueType* type = graph_.TypeOf(node.outputs[0]);
      if (type == nullptr || type->rank() < 2) continue;
      layers.push_back({node.Describe(), node.outputs[0], type->rank(), Axis(node, type->rank())});
    }
    return layers;
  }

 private:
  // Relu6 and its kind.
  bool CutsBelowZero(const Node& node) const {
    if (!node.Is("Clip") || !node.HasInput(1)) return false;
    const std::optional<Tensor> low = Constant(node.inputs[1]);
    if (!low.has_value() || low->elements() != 1) return false;
    const auto value = ToDoubles(*low);
    return value.ok() && value->front() == 0;
  }

  std::optional<Tensor> Constant(const std::string& value) const {
    const auto initializer = graph_.initializers.find(value);
    if (initializer != graph_.initializers.end()) return initializer->second;
    const auto it = producer_.find(value);
    return it == producer_.end() ? std::nullopt : ConstantValue(*it->second);
  }

  // Products of matrices have their units last, convolutions and all else on axis 1.
  int Axis(const Node& node, int rank) const {
    const Node* at = &node;
    for (int hop = 0; hop < kMostHops && at->HasInput(0); ++hop) {
      const auto it = producer_.find(at->inputs[0]);
      if (it == producer_.end()) break;
      at = it->second;
      if (at->Is("MatMul") || at->Is("Gemm")) return rank - 1;
      if (IsLayer(*at)) break;
    }
    return 1;
  }

  const Graph& graph_;
  absl::flat_hash_map<std::string, const Node*> producer_;
};

}  // namespace

std::vector<LayerRead> FirstReads(const Graph& graph, const std::set<std::string>& labels,
                                  const std::set<std::string>& variables) {
  return ReadFinder(graph, labels, variables).Find();
}

std::vector<UnitLayer> UnitLayers(const Graph& graph) { return UnitFinder(graph).Find(); }

std::set<std::string> TrainedWeights(const TrainingSpec& spec) {
  std::set<std::string> weights;
  for (const TrainingEntry& entry : spec.entries) {
    for (const Binding& b : entry.update_bindings) {
      const auto it = spec.inference.initializers.find(b.variable);
      if (it == spec.inference.initializers.end() || b.value == b.variable) continue;
      if (IsFloating(it->second.dtype())) weights.insert(b.variable);
    }
  }
  for (const std::string& statistic : RunningStatistics(spec.inference)) weights.erase(statistic);
  return weights;
}

std::set<std::string> AddedWeights(const Graph& graph, const std::set<std::string>& weights) {
  std::set<std::string> added = weights;
  absl::flat_hash_map<std::string, std::string>
      origin;  // a value -> the weight whose numbers it has
  for (const std::string& weight : weights) origin[weight] = weight;
  for (const Node& node : graph.nodes) {
    for (const std::string& value : AllInputs(node)) {
      const auto it = origin.find(value);
      if (it == origin.end() || IsAdded(node, value)) continue;
      const std::string weight = it->second;
      if (IsOneOf(node, kSameNumbers) && value == node.inputs[0]) {
        origin[node.outputs[0]] = weight;
      } else {
        added.erase(weight);
      }
    }
  }
  return added;
}

std::vector<std::string> InForwardOrder(const Graph& graph, const std::set<std::string>& weights) {
  std::vector<std::string> ordered;
  absl::flat_hash_set<std::string> seen;
  for (const Node& node : graph.nodes) {
    for (std::string& value : AllInputs(node)) {
      if (weights.contains(value) && seen.insert(value).second) ordered.push_back(value);
    }
  }
  return ordered;
}

}  // namespace onward

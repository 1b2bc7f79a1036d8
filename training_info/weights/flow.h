// SPDX-License-Identifier: Apache-2.0
// What values are made of and where they go: the questions that telling weights takes.
#ifndef ONWARD_TRAINING_INFO_WEIGHTS_FLOW_H_
#define ONWARD_TRAINING_INFO_WEIGHTS_FLOW_H_

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/graph/graph.h"

namespace onward {

// What a value is made of, each including those before it.
enum class Flow {
  kConstant,   // constants alone
  kPositions,  // counted numbers: ranges, integer tables
  kInput,      // what is fed, before any weight
  kLayer,      // something that went through a weight
};

template <size_t n>
bool IsOneOf(const Node& node, const std::array<const char*, n>& ops) {
  return node.domain.empty() &&
         std::any_of(ops.begin(), ops.end(), [&](const char* op) { return node.op_type == op; });
}

// Only input 0 is data; the rest says where and how much.
inline constexpr std::array kMovement = {
    "Identity", "Reshape",  "Transpose", "Squeeze",      "Unsqueeze",      "Flatten",
    "Cast",     "CastLike", "Slice",     "Expand",       "Tile",           "Gather",
    "Pad",      "GatherND", "Trilu",     "DepthToSpace", "GatherElements", "Split",
    "Resize",   "Upsample", "Dropout",   "SpaceToDepth"};
// The same numbers, in the same order or another.
inline constexpr std::array kSameNumbers = {"Identity",  "Reshape", "Transpose", "Squeeze",
                                            "Unsqueeze", "Flatten", "Cast"};
inline constexpr std::array kElementwise = {"Add", "Sub", "Mul",  "Div", "Sum",
                                            "Max", "Min", "Mean", "Pow", "Mod"};
inline constexpr std::array kProducts = {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"};
inline constexpr std::array kNormalizations = {
    "LayerNormalization", "InstanceNormalization",     "GroupNormalization", "RMSNormalization",
    "BatchNormalization", "MeanVarianceNormalization", "LpNormalization"};
inline constexpr std::array kRecurrent = {"LSTM", "GRU", "RNN"};
inline constexpr std::array kGathers = {"Gather", "GatherElements", "GatherND"};

// Chains of nodes are followed so far, in files of any size.
inline constexpr int kMostHops = 12;

class FlowGraph {
 public:
  // Keeps a reference to the graph.
  explicit FlowGraph(const Graph& graph);

 protected:
  Flow FlowOf(const std::string& value) const;
  // Known without data: made of constants and positions.
  bool IsFixed(const std::string& value) const { return FlowOf(value) <= Flow::kPositions; }
  // From what flows in, before anything is known of weights.
  Flow FlowThrough(const Node& node) const;
  void SetFlow(const Node& node, Flow flow);

  const Node* Producer(const std::string& value) const;
  // The node that made the numbers of a value, behind changes of shape.
  const Node* Maker(std::string value) const;
  std::optional<Shape> ShapeOf(const std::string& value) const;
  // Axes along which the value varies; -1 if its shape is not known.
  int Axes(const std::string& value) const;
  // The tensor itself, seen through changes of shape.
  std::optional<Tensor> Contents(std::string value) const;
  // Whether the numbers are of a kind, also where a part of them is taken or repeated.
  bool Holds(std::string value, bool (*kind)(const Tensor&)) const;

  bool ReadsConstant(const Node& node) const;
  // Whether the results of a node reach another layer.
  bool LayerFollows(const Node& node) const;
  // Whether the value was divided by a size of its own: (x - mean) / sqrt(variance).
  bool IsNormalized(const std::string& value) const;

  const Graph& graph_;
  const std::vector<Node> nodes_;  // in order, those in bodies included
  absl::flat_hash_map<std::string, std::vector<const Node*>> readers_;

 private:
  void FindLayers();
  bool IsInteger(std::string value) const;
  bool IsSize(std::string value) const;
  bool ComesFromRoot(const std::string& value, int depth) const;

  absl::flat_hash_map<std::string, const Node*> producer_;
  absl::flat_hash_set<std::string> before_layer_;
  absl::flat_hash_map<std::string, Flow> flow_;
};

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_WEIGHTS_FLOW_H_

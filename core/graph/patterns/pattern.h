// SPDX-License-Identifier: Apache-2.0
// A graph as pattern matching sees it: from a value to its producer, its
// consumers and its constant value, and the replacement of several nodes by one.
#ifndef ONWARD_CORE_GRAPH_PATTERNS_PATTERN_H_
#define ONWARD_CORE_GRAPH_PATTERNS_PATTERN_H_

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/graph/graph.h"
#include "core/graph/name_scope.h"

namespace onward {

// Whether the graph has a node of one of these operators: a pattern that starts there cannot
// match otherwise, and need not look.
bool Has(const Graph& graph, std::initializer_list<std::string_view> ops,
         std::string_view domain = "");

class PatternGraph {
 public:
  // Both must outlive this. Until Finish(), nodes stay where they are, so that
  // pointers to them hold.
  PatternGraph(Graph* graph, const absl::flat_hash_set<std::string>& keep);

  const std::vector<Node>& nodes() const { return graph_->nodes; }
  const ValueType* TypeOf(const std::string& value) const { return graph_->TypeOf(value); }
  bool IsInitializer(const std::string& value) const {
    return graph_->initializers.contains(value);
  }
  // Whether the node was taken into a replacement.
  bool gone(const Node& node) const { return gone_[Index(node)]; }

  // The node that gives the value, if it is an `op` of ai.onnx with all of its first
  // `inputs` inputs; else null.
  const Node* Producer(const std::string& value, std::string_view op, int inputs = 2) const;
  // The one node that reads the value, once; null where there are more, where there is
  // none, and where the value has to stay.
  const Node* OnlyConsumer(const std::string& value) const;
  // The nodes that read the value, once per use.
  std::vector<const Node*> Consumers(const std::string& value) const;
  // Whether the value has to stay whatever reads it: an output, or kept.
  bool fixed(const std::string& value) const { return fixed_.contains(value); }

  // The value of a constant, and that of a constant with one element.
  std::optional<Tensor> Constant(const std::string& value) const;
  std::optional<double> Number(const std::string& value) const;

  // A constant for the node that will replace `root`; its name is made from `root`'s.
  std::string AddConstant(const Node& root, std::string_view hint, Tensor value);
  // A further node before the one that will replace `root`, with one output of this type.
  std::string AddBefore(const Node& root, std::string_view hint, Node node, ValueType type);

  // Whether x and y are floating-point tensors of one type and rank: then constants of
  // one element, of whatever rank, that x met on its way to y left its shape alone.
  bool SameForm(const std::string& x, const std::string& y) const;

  // Whether `nodes` (with the root) can go: nothing else reads what they compute,
  // except the root's output, and none of them computes one of `inputs`.
  bool Closed(const std::vector<const Node*>& nodes, const Node& root,
              const std::vector<std::string>& inputs) const;
  NameScope& names() { return names_; }
  // A name for a further output of the node that will replace `root`.
  std::string NewName(const Node& root, std::string_view hint);
  // Puts `node` in the root's place, with its outputs and name unless it has its own;
  // the others vanish.
  void Replace(const std::vector<const Node*>& nodes, const Node& root, Node node);
  // Rebuilds the list of nodes.
  void Finish();

 private:
  int Index(const Node& node) const { return static_cast<int>(&node - graph_->nodes.data()); }
  // Drops a Constant that nothing reads any more.
  void DropIfUnused(const std::string& value);

  Graph* graph_;
  const absl::flat_hash_set<std::string>& keep_;
  absl::flat_hash_set<std::string> fixed_;  // outputs of the graph, and `keep`
  absl::flat_hash_set<std::string> inputs_;
  NameScope names_;
  absl::flat_hash_map<std::string, int> producer_;
  absl::flat_hash_map<std::string, std::vector<int>> consumers_;  // once per use
  std::vector<bool> gone_;
  absl::flat_hash_map<int, std::vector<Node>> before_;  // root -> nodes to put before it
};

// Rewrite the chain whose normalisation `node` completes, the one whose Erf or Tanh
// `node` is, the one whose Softmax it is, and the one whose Conv; false if there is none.
bool MatchLayerNormalization(PatternGraph* graph, const Node& node);  // layer_norm.cc
bool MatchGelu(PatternGraph* graph, const Node& node);                // gelu.cc
bool MatchAttention(PatternGraph* graph, const Node& node);           // attention.cc
bool MatchPaddedConv(PatternGraph* graph, const Node& node);          // padded_conv.cc

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_PATTERNS_PATTERN_H_

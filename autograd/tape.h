// SPDX-License-Identifier: Apache-2.0
// The tape: the nodes between the xs and the ys, in order, each with its rule.
// Operators without a rule are replaced by the nodes of their function bodies.
#ifndef ONWARD_AUTOGRAD_TAPE_H_
#define ONWARD_AUTOGRAD_TAPE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "autograd/rule.h"
#include "core/graph/builder.h"
#include "core/graph/graph.h"
#include "core/graph/operator_set.h"

namespace onward {

// One node of the tape. A node of an expanded body stands in the graph as a
// copy with output names of its own, because the forward call still computes
// the call's outputs; here it has the names that gradients arrive under. What
// the bodies of If, Loop and Scan capture stands behind the node's own inputs.
struct Step {
  Node node;
  size_t index;        // of the node, or its copy, in the graph
  const Rule* rule;    // null: nothing tells its gradient
  std::string inside;  // the node of the forward graph whose body it is part of; "": none
};

class Tape {
 public:
  using ValueSet = absl::flat_hash_set<std::string>;

  // `builder` appends to the forward graph, `next_dim` counts names of unknown
  // dimensions. No gradient is handed on past a value of `stop`. Everything must
  // outlive the tape.
  Tape(GraphBuilder& builder, const RuleTable& rules, const std::string& prefix,
       const std::vector<std::string>& ys, const std::vector<std::string>& xs,
       const std::vector<std::string>& stop, int* next_dim)
      : b_(builder),
        graph_(builder.graph()),
        operators_(*builder.operators()),
        rules_(rules),
        prefix_(prefix),
        ys_(ys),
        xs_(xs.begin(), xs.end()),
        stop_(stop.begin(), stop.end()),
        next_dim_(next_dim) {}

  // Appends copies of the bodies' nodes to the graph.
  absl::Status Record();

  std::vector<Step>& steps() { return steps_; }
  const std::vector<Step>& steps() const { return steps_; }
  // A node where gradients end, because its derivative is zero or its results are no
  // floating-point numbers; it stands before a step.
  struct Flat {
    size_t index;  // in the graph
    size_t step;
  };
  const std::vector<Flat>& flats() const { return flats_; }
  const Node& NodeAt(size_t index) const { return graph_.nodes[index]; }
  // Whether some y is computed from the value.
  bool IsNeeded(const std::string& value) const { return needed_.contains(value); }
  bool IsX(const std::string& value) const { return xs_.contains(value); }
  // Whether gradients flow to a value: it depends on an x and is floating-point, or stands
  // for real numbers as QuantizeLinear's result does.
  bool IsActive(const std::string& value) const {
    return active_.contains(value) && Carries(value);
  }

  // "Gemm-13".
  std::string OpVersion(const Node& node) const;
  // Why its operator has no rule; "" where nobody said.
  std::string WhyNone(const Node& node) const;
  // One way from an x through the node to a y: "w -> h1 -> [fc2] -> h2 -> ... -> loss".
  std::string Path(const Node& node) const;

 private:
  std::vector<InputFact> Facts(const Node& node) const;
  bool Carries(const std::string& value) const;
  void MarkQuantized(const Node& node);
  void ExtendNeeded(const std::vector<Node>& nodes, ValueSet* needed);
  absl::Status RecordNode(const Node& node, size_t index, const ValueSet& needed, const Node& outer,
                          int depth);
  absl::Status RecordBody(const Node& call, const Function& body, const ValueSet& needed,
                          const Node& outer, int depth);
  absl::StatusOr<std::optional<Function>> Body(const Node& node) const;
  void ShareConstants(const Node& call, std::vector<Node>* nodes);

  GraphBuilder& b_;
  Graph& graph_;
  const OperatorSet& operators_;
  const RuleTable& rules_;
  const std::string& prefix_;
  const std::vector<std::string>& ys_;
  const ValueSet xs_, stop_;
  int* next_dim_;

  ValueSet needed_;     // what the ys are computed from, up to the xs
  ValueSet active_;     // what depends on an x
  ValueSet quantized_;  // integers that stand for real numbers
  // One way from each value to a y, and from each active value back to an x.
  absl::flat_hash_map<std::string, std::string> toward_y_, from_;
  std::vector<Step> steps_;
  std::vector<Flat> flats_;
};

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_TAPE_H_

// SPDX-License-Identifier: Apache-2.0
// The chains that compute scaled dot-product attention:
//   y = softmax(scale * (q k^T) + mask) v
// for stacks of matrices of rank 3 or 4. The scale is a constant factor of the
// product, of q or of k, or of several of them. Read from Softmax back to q and k.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/shape.h"
#include "core/graph/patterns/pattern.h"

namespace onward {
namespace {

constexpr int kDeepest = 12;  // operators that compute a constant

// Numbers that exporters compute in the graph: powers and quotients of constants
// and of known dimensions.
class Arithmetic {
 public:
  explicit Arithmetic(const PatternGraph& graph) : graph_(graph) {}

  // The value of one element, where it is known.
  std::optional<double> Number(const std::string& value, int depth = 0) const {
    if (std::optional<double> number = graph_.Number(value)) return number;
    const ValueType* type = graph_.TypeOf(value);
    if (depth > kDeepest || type == nullptr) return std::nullopt;
    const std::optional<Shape> shape = type->StaticShape();
    if (!shape.has_value() || shape->elements() != 1) return std::nullopt;
    if (std::optional<double> dim = Dimension(value)) return dim;
    for (const char* op : {"Identity", "Squeeze", "Unsqueeze", "Reshape"}) {
      if (const Node* node = graph_.Producer(value, op, 1)) {
        return Number(node->inputs[0], depth + 1);
      }
    }
    // Integers would have to be rounded.
    if (!IsFloating(type->dtype)) return std::nullopt;
    if (const Node* node = graph_.Producer(value, "Cast", 1)) {
      return Number(node->inputs[0], depth + 1);
    }
    for (const char* op : {"Sqrt", "Reciprocal"}) {
      const Node* node = graph_.Producer(value, op, 1);
      if (node == nullptr) continue;
      const std::optional<double> x = Number(node->inputs[0], depth + 1);
      if (!x.has_value()) return std::nullopt;
      return node->Is("Sqrt") ? std::sqrt(*x) : 1 / *x;
    }
    for (const char* op : {"Mul", "Div", "Pow"}) {
      const Node* node = graph_.Producer(value, op);
      if (node == nullptr) continue;
      const std::optional<double> a = Number(node->inputs[0], depth + 1);
      const std::optional<double> b = Number(node->inputs[1], depth + 1);
      if (!a.has_value() || !b.has_value()) return std::nullopt;
      return node->Is("Mul") ? *a * *b : node->Is("Div") ? *a / *b : std::pow(*a, *b);
    }
    return std::nullopt;
  }

 private:
  // One element of a Shape, taken by Gather, by Slice or by Shape itself.
  std::optional<double> Dimension(const std::string& value) const {
    const Node* taken = graph_.Producer(value, "Gather");
    if (taken == nullptr) taken = graph_.Producer(value, "Slice", 3);
    const Node* shape = graph_.Producer(taken == nullptr ? value : taken->inputs[0], "Shape", 1);
    const ValueType* type = shape == nullptr ? nullptr : graph_.TypeOf(shape->inputs[0]);
    if (type == nullptr || !type->has_rank) return std::nullopt;
    if (taken != nullptr && (shape->Has("start") || shape->Has("end"))) return std::nullopt;
    std::optional<double> at = shape->Int("start", 0);
    if (taken != nullptr) at = graph_.Number(taken->inputs[1]);
    if (!at.has_value() || std::fabs(*at) > type->rank()) return std::nullopt;
    const absl::StatusOr<int> axis = NormalizeAxis(static_cast<int64_t>(*at), type->rank());
    if (!axis.ok() || !type->dims[*axis].known()) return std::nullopt;
    return static_cast<double>(type->dims[*axis].value);
  }

  const PatternGraph& graph_;
};

class AttentionMatcher {
 public:
  explicit AttentionMatcher(PatternGraph* graph) : graph_(*graph), arithmetic_(*graph) {}

  bool Try(const Node& softmax) {
    if (!softmax.Is("Softmax") || softmax.inputs.size() != 1 || softmax.outputs.size() != 1 ||
        !OverLastAxis(softmax)) {
      return false;
    }
    const Node* root = graph_.OnlyConsumer(probabilities_);
    if (root == nullptr || !root->Is("MatMul") || root->inputs.size() != 2 ||
        root->inputs[0] != probabilities_ || !Argument(argument_)) {
      return false;
    }
    nodes_.insert(nodes_.end(), around_.begin(), around_.end());
    v_ = root->inputs[1];
    return Fits(*root) && Rewrite(*root);
  }

 private:
  // Whether the softmax is over the last axis. Raising a model from opset 12 puts it
  // between a Flatten and a Reshape to the shape before.
  bool OverLastAxis(const Node& softmax) {
    around_ = {&softmax};
    argument_ = softmax.inputs[0];
    probabilities_ = softmax.outputs[0];
    const Node* flatten = graph_.Producer(argument_, "Flatten", 1);
    const Node* back = graph_.OnlyConsumer(probabilities_);
    if (flatten == nullptr || back == nullptr || !back->Is("Reshape")) {
      return IsLastAxis(softmax, argument_, -1);
    }
    const Node* shape = back->HasInput(1) ? graph_.Producer(back->inputs[1], "Shape", 1) : nullptr;
    if (shape == nullptr || shape->inputs[0] != flatten->inputs[0] || shape->Has("start") ||
        shape->Has("end") || !IsLastAxis(softmax, argument_, -1)) {
      return false;
    }
    around_ = {&softmax, flatten, shape, back};
    argument_ = flatten->inputs[0];
    probabilities_ = back->outputs[0];
    return IsLastAxis(*flatten, argument_, 1);
  }

  // Whether the node's axis is the last one of `value`, whose rank is kept.
  bool IsLastAxis(const Node& node, const std::string& value, int64_t otherwise) {
    const ValueType* type = graph_.TypeOf(value);
    if (type == nullptr || !type->has_rank) return false;
    rank_ = type->rank();
    const absl::StatusOr<int> axis = NormalizeAxis(node.Int("axis", otherwise), rank_);
    return axis.ok() && *axis == rank_ - 1;
  }

  // scale * q k^T, with or without a mask
  bool Argument(const std::string& value) {
    if (Scores(value)) return true;
    const Node* add = graph_.Producer(value, "Add");
    if (add == nullptr) return false;
    for (int i : {0, 1}) {
      if (!Scores(add->inputs[i])) continue;
      mask_ = add->inputs[1 - i];
      nodes_.push_back(add);
      return true;
    }
    return false;
  }

  bool Scores(const std::string& value) {
    nodes_.clear();
    scale_ = 1;
    std::string product = value;
    while (Factor(&product)) {
    }
    const Node* multiply = graph_.Producer(product, "MatMul");
    if (multiply == nullptr) return false;
    nodes_.push_back(multiply);
    q_ = multiply->inputs[0];
    while (graph_.OnlyConsumer(q_) != nullptr && Factor(&q_)) {
    }
    Keys(multiply->inputs[1]);
    return true;
  }

  // The operand k^T: k_ with its axes in the order of order_ is k.
  void Keys(const std::string& turned) {
    k_ = turned;
    order_.resize(rank_);
    std::iota(order_.begin(), order_.end(), 0);
    if (rank_ >= 2) std::swap(order_[rank_ - 1], order_[rank_ - 2]);
    while (graph_.OnlyConsumer(k_) != nullptr) {
      if (Factor(&k_)) continue;
      const Node* transpose = graph_.Producer(k_, "Transpose", 1);
      if (transpose == nullptr) return;
      std::vector<int64_t> perm = transpose->Ints("perm");
      if (perm.empty()) {
        for (int i = rank_ - 1; i >= 0; --i) perm.push_back(i);
      }
      if (static_cast<int>(perm.size()) != rank_) return;
      for (int64_t& axis : order_) axis = perm[axis];
      nodes_.push_back(transpose);
      k_ = transpose->inputs[0];
    }
  }

  // Steps over a product with a constant, or a quotient by one.
  bool Factor(std::string* value) {
    if (const Node* node = graph_.Producer(*value, "Mul")) {
      for (int i : {0, 1}) {
        if (const std::optional<double> number = FactorOf(node->inputs[i], *value)) {
          return Step(*node, node->inputs[1 - i], *number, value);
        }
      }
    }
    if (const Node* node = graph_.Producer(*value, "Div")) {
      if (const std::optional<double> number = FactorOf(node->inputs[1], *value)) {
        return Step(*node, node->inputs[0], 1 / *number, value);
      }
    }
    return false;
  }

  // A number that leaves the shape of what it meets alone.
  std::optional<double> FactorOf(const std::string& factor, const std::string& result) const {
    const ValueType *type = graph_.TypeOf(factor), *met = graph_.TypeOf(result);
    if (type == nullptr || met == nullptr || !type->has_rank || type->rank() > met->rank()) {
      return std::nullopt;
    }
    return arithmetic_.Number(factor);
  }

  bool Step(const Node& node, const std::string& other, double factor, std::string* value) {
    if (!graph_.SameForm(other, *value)) return false;
    scale_ *= factor;
    nodes_.push_back(&node);
    *value = other;
    return true;
  }

  // Types that the function takes. Other float types would be rounded elsewhere.
  bool Fits(const Node& root) const {
    if ((rank_ != 3 && rank_ != 4) || !std::isfinite(static_cast<float>(scale_))) return false;
    for (const std::string& value : {q_, k_, v_, root.outputs[0]}) {
      const ValueType* type = graph_.TypeOf(value);
      if (type == nullptr || type->rank() != rank_ || type->dtype != DType::kFloat) return false;
    }
    if (mask_.empty()) return true;
    const ValueType* mask = graph_.TypeOf(mask_);
    return mask != nullptr && mask->has_rank && mask->rank() <= rank_;
  }

  bool Rewrite(const Node& root) {
    if (!graph_.Closed(nodes_, root, {q_, k_, v_, mask_})) return false;
    Node attention;
    attention.op_type = "ScaledDotProductAttention";
    attention.domain = std::string(kOnwardDomain);
    attention.inputs = {q_, InOrder(root), v_};
    if (!mask_.empty()) attention.inputs.push_back(mask_);
    attention.attributes["scale"] = static_cast<float>(scale_);
    graph_.Replace(nodes_, root, std::move(attention));
    return true;
  }

  std::string InOrder(const Node& root) {
    if (std::is_sorted(order_.begin(), order_.end())) return k_;
    const ValueType& from = *graph_.TypeOf(k_);
    ValueType type = from;
    for (int i = 0; i < rank_; ++i) type.dims[i] = from.dims[order_[i]];
    Node transpose;
    transpose.op_type = "Transpose";
    transpose.inputs = {k_};
    transpose.attributes["perm"] = order_;
    return graph_.AddBefore(root, "keys", std::move(transpose), std::move(type));
  }

  PatternGraph& graph_;
  const Arithmetic arithmetic_;
  std::vector<const Node*> nodes_, around_;
  int rank_ = 0;
  double scale_ = 1;
  std::string argument_, probabilities_;  // of the softmax
  std::string q_, k_, v_, mask_;
  std::vector<int64_t> order_;
};

}  // namespace

bool MatchAttention(PatternGraph* graph, const Node& node) {
  return AttentionMatcher(graph).Try(node);
}

}  // namespace onward

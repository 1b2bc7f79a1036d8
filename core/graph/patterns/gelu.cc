// SPDX-License-Identifier: Apache-2.0
// The chains that compute Gelu:
//   y = x/2 * (1 + erf(x / sqrt 2))
//   y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
// Products are compared as sets of factors, so that their order does not matter.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "core/graph/patterns/pattern.h"

namespace onward {
namespace {

// Whether a constant of the graph is this number, rounded to the graph's type.
bool IsRounded(double value, double exact, DType dtype) {
  double ulp = 0x1p-52;
  if (dtype == DType::kFloat) ulp = 0x1p-23;
  if (dtype == DType::kFloat16) ulp = 0x1p-10;
  if (dtype == DType::kBFloat16) ulp = 0x1p-7;
  return std::fabs(value - exact) <= 2 * ulp * std::fabs(exact);
}

// constant * x^power * rest
struct Factors {
  double constant = 1;
  int power = 0;
  std::vector<std::string> rest;
};

class GeluMatcher {
 public:
  explicit GeluMatcher(PatternGraph* graph) : graph_(*graph) {}

  // Rewrites the chain around `curve`, an Erf or Tanh.
  bool Try(const Node& curve) {
    const bool tanh = curve.Is("Tanh");
    if ((!tanh && !curve.Is("Erf")) || curve.inputs.size() != 1 || curve.outputs.size() != 1) {
      return false;
    }
    const ValueType* type = graph_.TypeOf(curve.outputs[0]);
    if (type == nullptr) return false;
    dtype_ = type->dtype;
    for (const std::string& x : tanh ? Operands(curve.inputs[0]) : Scaled(curve.inputs[0])) {
      nodes_ = {&curve};
      if (x != curve.inputs[0] && (tanh ? TanhArgument(curve, x) : ErfArgument(curve, x)) &&
          Rewrite(curve, x, tanh)) {
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr int kMostFactors = 8;

  // What may be x: the operands of a product by a constant,
  std::vector<std::string> Scaled(const std::string& value) const {
    for (const char* op : {"Mul", "Div"}) {
      if (const Node* node = graph_.Producer(value, op)) return node->inputs;
    }
    return {};
  }
  // and those of nested products and of the sums among their factors.
  std::vector<std::string> Operands(const std::string& value) const {
    std::vector<std::string> found, open = {value};
    while (!open.empty() && found.size() < 2 * kMostFactors) {
      const std::string at = std::move(open.back());
      open.pop_back();
      for (const char* op : {"Mul", "Div", "Add"}) {
        const Node* node = graph_.Producer(at, op);
        if (node == nullptr) continue;
        for (const std::string& in : node->inputs) {
          if (graph_.Number(in).has_value()) continue;
          if (std::find(found.begin(), found.end(), in) == found.end()) found.push_back(in);
          if (!node->Is("Add")) open.push_back(in);
        }
      }
    }
    return found;
  }

  // Multiplies `value` into `factors`; false for products of too many factors.
  bool Multiply(const std::string& value, const std::string& x, Factors* factors) {
    if (++steps_ > 2 * kMostFactors) return false;
    if (value == x) {
      ++factors->power;
      return true;
    }
    if (const std::optional<double> number = graph_.Number(value)) {
      factors->constant *= *number;
      return true;
    }
    if (const Node* node = graph_.Producer(value, "Mul")) {
      nodes_.push_back(node);
      return Multiply(node->inputs[0], x, factors) && Multiply(node->inputs[1], x, factors);
    }
    const Node* quotient = graph_.Producer(value, "Div");
    const Node* power = graph_.Producer(value, "Pow");
    const Node* node = quotient != nullptr ? quotient : power;
    const std::optional<double> number =
        node == nullptr ? std::nullopt : graph_.Number(node->inputs[1]);
    if (quotient != nullptr && number.has_value()) {
      nodes_.push_back(quotient);
      factors->constant /= *number;
      return Multiply(quotient->inputs[0], x, factors);
    }
    if (power != nullptr && power->inputs[0] == x && (number == 2.0 || number == 3.0)) {
      nodes_.push_back(power);
      factors->power += static_cast<int>(*number);
      return true;
    }
    factors->rest.push_back(value);
    return true;
  }

  std::optional<Factors> FactorsOf(const std::string& value, const std::string& x) {
    steps_ = 0;
    Factors factors;
    return Multiply(value, x, &factors) ? std::optional<Factors>(factors) : std::nullopt;
  }

  // constant * x^power and nothing else
  bool IsMonomial(const std::string& value, const std::string& x, double constant, int power) {
    const std::optional<Factors> f = FactorsOf(value, x);
    return f.has_value() && f->rest.empty() && f->power == power &&
           IsRounded(f->constant, constant, dtype_);
  }

  // x / sqrt 2
  bool ErfArgument(const Node& erf, const std::string& x) {
    return IsMonomial(erf.inputs[0], x, 1 / std::numbers::sqrt2, 1);
  }

  // c * (x + k*x^3) or c * x * (1 + k*x^2), with c = sqrt(2/pi)
  bool TanhArgument(const Node& tanh, const std::string& x) {
    constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    const std::optional<Factors> f = FactorsOf(tanh.inputs[0], x);
    if (!f.has_value() || f->power > 1 || f->rest.size() != 1) return false;
    const Node* sum = graph_.Producer(f->rest[0], "Add");
    if (sum == nullptr || !IsRounded(f->constant, kScale, dtype_)) return false;
    nodes_.push_back(sum);
    const size_t before = nodes_.size();
    for (int i : {0, 1}) {
      nodes_.resize(before);
      const std::string& first = sum->inputs[i];
      if (!(f->power == 0 ? first == x : graph_.Number(first) == 1.0)) continue;
      if (IsMonomial(sum->inputs[1 - i], x, 0.044715, 3 - f->power)) return true;
    }
    return false;
  }

  // x/2 * (1 + curve)
  bool Rewrite(const Node& curve, const std::string& x, bool tanh) {
    const Node* sum = graph_.OnlyConsumer(curve.outputs[0]);
    if (sum == nullptr || !sum->Is("Add") || sum->inputs.size() != 2) return false;
    const int other = sum->inputs[0] == curve.outputs[0] ? 1 : 0;
    if (graph_.Number(sum->inputs[other]) != 1.0) return false;
    nodes_.push_back(sum);
    const size_t before = nodes_.size();
    const Node* root = sum;
    for (int level = 0; level < 3; ++level) {
      root = graph_.OnlyConsumer(root->outputs[0]);
      if (root == nullptr || !(root->Is("Mul") || root->Is("Div"))) return false;
      nodes_.resize(before);
      const std::optional<Factors> f = FactorsOf(root->outputs[0], x);
      if (!f.has_value() || f->power != 1 || f->rest != sum->outputs ||
          !IsRounded(f->constant, 0.5, dtype_)) {
        continue;
      }
      if (!graph_.SameForm(x, root->outputs[0]) || !graph_.Closed(nodes_, *root, {x})) {
        return false;
      }
      Node gelu;
      gelu.op_type = "Gelu";
      gelu.inputs = {x};
      gelu.attributes["approximate"] = tanh ? "tanh" : "none";
      graph_.Replace(nodes_, *root, std::move(gelu));
      return true;
    }
    return false;
  }

  PatternGraph& graph_;
  std::vector<const Node*> nodes_;
  DType dtype_ = DType::kUndefined;
  int steps_ = 0;
};

}  // namespace

bool MatchGelu(PatternGraph* graph, const Node& node) { return GeluMatcher(graph).Try(node); }

}  // namespace onward

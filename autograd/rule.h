// SPDX-License-Identifier: Apache-2.0
// Gradient rules (vector-Jacobian products) and their table.
//
// A rule maps a node to the gradients of its inputs. It reads like its formula
// and may ignore broadcasting, accumulation and types: the engine sums each
// gradient to its input's shape, casts it, and adds it up. Only what is static
// may be smaller than the input (a scalar, dims of 1): the engine expands it.
#ifndef ONWARD_AUTOGRAD_RULE_H_
#define ONWARD_AUTOGRAD_RULE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/body.h"
#include "core/graph/builder.h"
#include "core/graph/function_library.h"
#include "core/graph/graph.h"

namespace onward {

// One entry per input of the node; nullopt = no gradient flows there. A shorter
// vector leaves the remaining inputs without gradient.
using Grads = std::vector<std::optional<Expr>>;

// g where the condition holds, else 0.
Expr ZeroUnless(const Expr& condition, const Expr& g);

// What a rule sees.
class Vjp {
 public:
  // Gives the forward node an output that the graph omits.
  using AddOutput = std::function<Expr(int output)>;
  // Puts another node in the place of the forward node, and nodes before it.
  using Replace = std::function<void(Node node, std::vector<Node> before)>;
  using DeriveBody = std::function<absl::StatusOr<BodyGradients>(const BodyRequest& request)>;

  Vjp(GraphBuilder& builder, const Node& node, std::vector<std::optional<Expr>> dys,
      std::vector<bool> needs, AddOutput add_output = nullptr, Replace replace = nullptr,
      DeriveBody derive_body = nullptr)
      : builder_(builder),
        node_(node),
        dys_(std::move(dys)),
        needs_(std::move(needs)),
        add_output_(std::move(add_output)),
        replace_(std::move(replace)),
        derive_body_(std::move(derive_body)) {}

  GraphBuilder& b() const { return builder_; }
  const Node& node() const { return node_; }
  int inputs() const { return static_cast<int>(node_.inputs.size()); }
  bool has_x(int i) const { return node_.HasInput(i); }
  // Input and output i; an error is kept where the node does not have it.
  Expr x(int i = 0) const;
  Expr y(int i = 0) const;
  // Output i, also where the graph omits it: the forward node then gets it
  // (Dropout's mask).
  Expr RequireOutput(int i) const;
  // All outputs of the forward node as a call of `function` (ai.onward), which
  // takes the same inputs and attributes and gives the same outputs, then more:
  // what the backward pass would have to compute again. The forward pass runs
  // that call in the node's place, or, if the node omits output 0, beside it (an
  // inference graph in a file cannot be given a new output).
  std::vector<Expr> ForwardAs(std::string_view function, int outputs) const;
  // Puts `node` in the place of the forward node: it computes the same outputs, which keep
  // their names, and new ones. Nodes in `before` give what it reads beyond the other's inputs.
  void Replaced(Node node, std::vector<Node> before = {}) const {
    replace_(std::move(node), std::move(before));
  }
  absl::StatusOr<BodyGradients> Derive(const BodyRequest& request) const {
    return derive_body_(request);
  }
  // Whether a gradient arrives through output i.
  bool has_dy(int i) const { return i < static_cast<int>(dys_.size()) && dys_[i].has_value(); }
  // That gradient (zeros where none arrives).
  Expr dy(int i = 0) const;
  // Whether the gradient of input i is wanted: ask only where work is costly.
  bool needs(int i) const { return i < static_cast<int>(needs_.size()) && needs_[i]; }
  int64_t attr(std::string_view name, int64_t otherwise) const {
    return node_.Int(name, otherwise);
  }
  float attr_float(std::string_view name, float otherwise) const {
    return node_.Float(name, otherwise);
  }

 private:
  GraphBuilder& builder_;
  const Node& node_;
  std::vector<std::optional<Expr>> dys_;
  std::vector<bool> needs_;
  AddOutput add_output_;
  Replace replace_;
  DeriveBody derive_body_;
};

using Rule = std::function<Grads(const Vjp&)>;

class RuleTable {
 public:
  void Add(std::string_view op, Rule rule, std::string_view domain = "");
  // The derivative is zero wherever it exists (Floor, Sign, comparisons, ...).
  void AddZero(std::string_view op, std::string_view domain = "");
  // Says why there is no rule.
  void AddNone(std::string_view op, std::string_view reason, std::string_view domain = "");
  struct Entry {
    Rule rule;  // null: zero
  };
  const Entry* Find(std::string_view op, std::string_view domain) const;
  // What AddNone said; null where it said nothing.
  const std::string* WhyNone(std::string_view op, std::string_view domain) const;
  const std::map<std::pair<std::string, std::string>, Entry>& all() const { return entries_; }
  const std::map<std::pair<std::string, std::string>, std::string>& reasons() const {
    return reasons_;
  }

 private:
  // (domain, op)
  std::map<std::pair<std::string, std::string>, Entry> entries_;
  std::map<std::pair<std::string, std::string>, std::string> reasons_;
};

// Every rule of autograd/rules.
void RegisterRules(RuleTable& table);

void RegisterElementwiseRules(RuleTable& table);
void RegisterActivationRules(RuleTable& table);
void RegisterReduceRules(RuleTable& table);
void RegisterShapeRules(RuleTable& table);
void RegisterIndexRules(RuleTable& table);
void RegisterRandomRules(RuleTable& table);
void RegisterMatMulRules(RuleTable& table);
void RegisterConvRules(RuleTable& table);
void RegisterPoolRules(RuleTable& table);
void RegisterNormRules(RuleTable& table);
void RegisterAttentionRules(RuleTable& table);
void RegisterRnnRules(RuleTable& table);
void RegisterLossRules(RuleTable& table);
void RegisterQuantizeRules(RuleTable& table);
void RegisterImageRules(RuleTable& table);
void RegisterSignalRules(RuleTable& table);
void RegisterMlRules(RuleTable& table);
void RegisterControlRules(RuleTable& table);
void RegisterSequenceRules(RuleTable& table);
// Why operators have no rule: every kernel has a rule, a body, a zero or a line here.
void RegisterReasons(RuleTable& table);

// The functions that those rules call (see docs/functions.md for signatures).
void RegisterGradientFunctions(FunctionLibrary& library);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_RULE_H_

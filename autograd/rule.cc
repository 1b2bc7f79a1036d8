// SPDX-License-Identifier: Apache-2.0
#include "autograd/rule.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autograd/shape_expr.h"
#include "autograd/values.h"

namespace onward {

Expr ZeroUnless(const Expr& condition, const Expr& g) {
  return Where(condition, g, g.builder().Scalar(0, g));
}

Expr Vjp::x(int i) const {
  if (node_.HasInput(i)) return builder_.Value(node_.inputs[i]);
  return builder_.Fail(absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing")));
}

Expr Vjp::y(int i) const {
  if (node_.HasOutput(i)) return builder_.Value(node_.outputs[i]);
  return builder_.Fail(absl::InvalidArgumentError(absl::StrCat("output ", i, " is missing")));
}

Expr Vjp::RequireOutput(int i) const {
  return node_.HasOutput(i) || !add_output_ ? y(i) : add_output_(i);
}

std::vector<Expr> Vjp::ForwardAs(std::string_view function, int outputs) const {
  if (node_.HasOutput(0) && replace_) {
    Node node = node_;
    node.op_type = std::string(function);
    node.domain = std::string(kOnwardDomain);
    node.outputs.resize(std::max<size_t>(outputs, node.outputs.size()));
    std::vector<Expr> values;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      std::string& out = node.outputs[i];
      if (out.empty()) out = builder_.UniqueName(function);
      values.push_back(builder_.Value(out));
    }
    replace_(std::move(node), {});
    return values;
  }
  std::vector<Expr> inputs;
  for (const std::string& in : node_.inputs) {
    inputs.push_back(in.empty() ? Expr() : builder_.Value(in));
  }
  return builder_.Ops(function, std::move(inputs), outputs, node_.attributes, kOnwardDomain);
}

Expr Vjp::dy(int i) const {
  if (has_dy(i)) return *dys_[i];
  return ZerosOf(RequireOutput(i));
}

void RuleTable::Add(std::string_view op, Rule rule, std::string_view domain) {
  entries_[{std::string(domain), std::string(op)}] = Entry{std::move(rule)};
}

void RuleTable::AddZero(std::string_view op, std::string_view domain) {
  entries_[{std::string(domain), std::string(op)}] = Entry{nullptr};
}

void RuleTable::AddNone(std::string_view op, std::string_view reason, std::string_view domain) {
  reasons_[{std::string(domain), std::string(op)}] = std::string(reason);
}

const std::string* RuleTable::WhyNone(std::string_view op, std::string_view domain) const {
  auto it = reasons_.find({std::string(domain), std::string(op)});
  return it == reasons_.end() ? nullptr : &it->second;
}

const RuleTable::Entry* RuleTable::Find(std::string_view op, std::string_view domain) const {
  auto it = entries_.find({std::string(domain), std::string(op)});
  return it == entries_.end() ? nullptr : &it->second;
}

void RegisterRules(RuleTable& table) {
  RegisterElementwiseRules(table);
  RegisterActivationRules(table);
  RegisterReduceRules(table);
  RegisterShapeRules(table);
  RegisterIndexRules(table);
  RegisterRandomRules(table);
  RegisterMatMulRules(table);
  RegisterConvRules(table);
  RegisterPoolRules(table);
  RegisterNormRules(table);
  RegisterAttentionRules(table);
  RegisterRnnRules(table);
  RegisterLossRules(table);
  RegisterQuantizeRules(table);
  RegisterImageRules(table);
  RegisterSignalRules(table);
  RegisterMlRules(table);
  RegisterControlRules(table);
  RegisterSequenceRules(table);
  RegisterReasons(table);
}

}  // namespace onward

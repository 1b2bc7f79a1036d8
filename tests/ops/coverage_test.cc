// SPDX-License-Identifier: Apache-2.0
// That nothing was forgotten: every kernel has a derivative or a reason, every
// rule a row that checks it.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "autograd/rule.h"
#include "environment/environment.h"
#include "tests/ops/cases.h"

namespace onward {
namespace {

bool OnValues(const std::string& op) {
  const auto* entries = DefaultEnvironment().cpu().kernels().Find(op, "");
  return entries != nullptr && entries->front().on_values;
}

// Operator -> why it has no derivative. Those on sequences and optionals have none yet.
const std::map<std::string, std::string>& NotYet() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"Constant", "has no inputs"},
      {"Adagrad", "a step of an optimizer, never inside a loss"},
      {"Adam", "a step of an optimizer, never inside a loss"},
      {"Momentum", "a step of an optimizer, never inside a loss"},
      {"MaxPoolWinners", "made by the compiler, when gradients are there already"},
      {"MaxPoolWinnersGrad", "made by the compiler, when gradients are there already"},
  };
  return *reasons;
}

// Operator with a rule -> why no row checks it.
const std::map<std::string, std::string>& NoRow() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"Cast", "its rule is CastLike's"},
  };
  return *reasons;
}

bool HasBody(const std::string& op, const std::string& domain) {
  if (domain == kOnwardDomain) {
    const FunctionDef* def = DefaultEnvironment().functions().Find(op);
    return def != nullptr && def->body;
  }
  Node node;
  node.op_type = op;
  node.domain = domain;
  node.outputs = {"y"};
  // A call that the operator takes: some want more inputs, some more axes.
  for (const Shape& shape : {Shape{2, 3}, Shape{1, 2, 3, 4}}) {
    const ValueType type = ValueType::Of(DType::kFloat, shape);
    for (size_t inputs = 1; inputs <= 3; ++inputs) {
      node.inputs.assign(inputs, "x");
      const std::vector<InputFact> facts(inputs, {&type, nullptr});
      auto body =
          DefaultEnvironment().operators().FunctionBody(node, facts, {{"", kCanonicalOpset}});
      if (body.ok() && body->has_value()) return true;
    }
  }
  return false;
}

TEST(Coverage, EveryKernelHasADerivativeOrAReason) {
  for (const auto& [key, entries] : DefaultEnvironment().cpu().kernels().all()) {
    const auto& [domain, op] = key;
    const bool derived =
        DefaultEnvironment().rules().Find(op, domain) != nullptr || HasBody(op, domain);
    if (OnValues(op)) continue;
    EXPECT_NE(derived, NotYet().contains(op)) << domain << " " << op;
  }
}

TEST(Coverage, EveryReasonBelongsToAKernel) {
  for (const auto& [op, reason] : NotYet()) {
    bool found = false;
    for (const auto& [key, entries] : DefaultEnvironment().cpu().kernels().all())
      found |= key.second == op;
    EXPECT_TRUE(found) << op;
  }
}

TEST(Coverage, EveryRuleHasARow) {
  std::set<std::string> checked;
  for (const OpCase& c : OpCases()) checked.insert(c.op);
  for (const auto& [key, entry] : DefaultEnvironment().rules().all()) {
    if (entry.rule == nullptr) continue;
    EXPECT_NE(checked.contains(key.second), NoRow().contains(key.second)) << key.second;
  }
}

TEST(Coverage, RowsHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const OpCase& c : OpCases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
}

}  // namespace
}  // namespace onward

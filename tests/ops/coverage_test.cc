// SPDX-License-Identifier: Apache-2.0
// That nothing was forgotten: every kernel has a derivative or a reason, every
// rule a row that checks it.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "autograd/rule.h"
#include "core/graph/attribute_lists.h"
#include "environment/environment.h"
#include "environment/operator_table.h"
#include "tests/ops/cases.h"

namespace onward::coverage_test {

// Operator with a rule -> why no row checks it.
const std::map<std::string, std::string>& NoRow() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"Cast", "its rule is CastLike's"},
      {"QuantizeLinear", "straight through; quantize_test.cc"},
      {"DequantizeLinear", "its schema knows no double; quantize_test.cc"},
      {"ConcatFromSequence", "tests/autograd/sequence_test.cc"},
      {"If", "tests/autograd/control_test.cc"},
      {"Loop", "tests/autograd/control_test.cc"},
      {"Optional", "tests/autograd/sequence_test.cc"},
      {"OptionalGetElement", "tests/autograd/sequence_test.cc"},
      {"Scan", "tests/autograd/control_test.cc"},
      {"SequenceAt", "tests/autograd/sequence_test.cc"},
      {"SequenceConstruct", "tests/autograd/sequence_test.cc"},
      {"SequenceErase", "tests/autograd/sequence_test.cc"},
      {"SequenceInsert", "tests/autograd/sequence_test.cc"},
      {"SequenceSum", "tests/autograd/sequence_test.cc"},
      {"SplitToSequence", "tests/autograd/sequence_test.cc"},
  };
  return *reasons;
}

TEST(Coverage, EveryKernelHasADerivativeOrAReason) {
  const auto& reasons = DefaultEnvironment().rules().reasons();
  for (const OperatorRow& row : OperatorTable(DefaultEnvironment())) {
    const auto* kernels = DefaultEnvironment().cpu().kernels().Find(row.name, row.domain);
    if (kernels == nullptr || kernels->front().on_values) continue;
    EXPECT_EQ(row.gradient == "none", reasons.contains({row.domain, row.name}))
        << row.FullName() << ": give it a rule (autograd/rules), or a line with the reason in "
        << "autograd/rules/reasons.cc";
  }
}

TEST(Coverage, EveryReasonBelongsToAnOperatorWithoutARule) {
  std::set<std::pair<std::string, std::string>> known;
  for (const OperatorRow& row : OperatorTable(DefaultEnvironment())) {
    known.insert({row.domain, row.name});
  }
  for (const auto& [key, reason] : DefaultEnvironment().rules().reasons()) {
    EXPECT_TRUE(known.contains(key)) << key.second << ": no such operator";
    EXPECT_EQ(DefaultEnvironment().rules().Find(key.second, key.first), nullptr)
        << key.second << " has a rule: its line in autograd/rules/reasons.cc is out of date";
  }
}

// Those of which the standard tags an input at this opset, all of them.
TEST(Coverage, EveryTaggedOperatorHasADerivative) {
  int tagged = 0;
  for (const OperatorRow& row : OperatorTable(DefaultEnvironment())) {
    if (!row.differentiable) continue;
    ++tagged;
    EXPECT_NE(row.gradient, "none") << row.FullName();
  }
  EXPECT_GE(tagged, 120);
}

TEST(Coverage, EveryRuleHasARow) {
  std::set<std::string> checked;
  for (const OpCase& c : OpCases()) checked.insert(c.op);
  for (const auto& [key, entry] : DefaultEnvironment().rules().all()) {
    if (entry.rule == nullptr) continue;
    EXPECT_NE(checked.contains(key.second), NoRow().contains(key.second)) << key.second;
  }
}

TEST(Coverage, EveryTaggedOperatorHasARow) {
  std::set<std::string> checked;
  for (const OpCase& c : OpCases()) checked.insert(c.op);
  for (const OpCase& c : SingleCases()) checked.insert(c.op);
  for (const OperatorRow& row : OperatorTable(DefaultEnvironment())) {
    if (!row.differentiable || row.gradient == "zero" || row.gradient == "none") continue;
    EXPECT_NE(checked.contains(row.name), NoRow().contains(row.name)) << row.FullName();
  }
}

TEST(Coverage, RowsHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const OpCase& c : OpCases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
}

}  // namespace onward::coverage_test

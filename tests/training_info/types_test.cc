// SPDX-License-Identifier: Apache-2.0
// What `check` says of types that do not fit: all of it at once, and nothing of what
// is merely unknown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/validate.h"

namespace onward::types_test {

using testing::ElementsAreArray;

struct Row {
  std::string name, text;
  std::vector<std::string> findings;  // rule and place
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class CheckedTypes : public testing::TestWithParam<Row> {};

TEST_P(CheckedTypes, AreFound) {
  auto findings = CheckModel(TextModel(GetParam().text), DefaultEnvironment());
  ASSERT_TRUE(findings.ok()) << findings.status();
  std::vector<std::string> found;
  for (const Finding& f : *findings) found.push_back(f.rule + ": " + f.place);
  EXPECT_THAT(found, ElementsAreArray(GetParam().findings));
}

INSTANTIATE_TEST_SUITE_P(
    Models, CheckedTypes,
    testing::Values(
        Row{"EveryNodeThatCannotBeTyped",
            R"(g (float[2, 3] x, float[4, 5] w) => (y)
               { y = MatMul(x, w) s = Softmax <axis = 7> (x) r = Relu(s) })",
            {"bad-types: graph, node '-> y' (MatMul)", "bad-types: graph, node '-> s' (Softmax)"}},
        Row{"OperandsOfDifferentTypes",
            "g (float[2] x, int64[2] w) => (y) { y = Add(x, w) }",
            {"bad-types: graph, node '-> y' (Add)"}},
        Row{"TypeThatTheOperatorDoesNotTake",
            "g (string[2] x) => (y) { y = Exp(x) }",
            {"bad-types: graph, node '-> y' (Exp)"}},
        Row{"DeclaredShape",
            "g (float[2, 3] x) => (float[2, 4] y) { y = Relu(x) }",
            {"declared-type: graph, node '-> y' (Relu)"}},
        Row{"DeclaredElementType",
            "g (float[2, 3] x) => (int64[2, 3] y) { y = Relu(x) }",
            {"declared-type: graph, node '-> y' (Relu)"}},
        Row{"DeclaredInnerValue",
            "g (float[2, 3] x) => (y) <float[3, 2] h> { h = Relu(x) y = Neg(h) }",
            {"declared-type: graph, node '-> h' (Relu)"}},
        Row{"NamesOfDimensionsMayDiffer",
            "g (float[N, 3] x) => (float[M, 3] y) <float[1, 3] h> { h = Relu(x) y = Neg(h) }",
            {}},
        Row{"UnknownTypesAreNoContradiction",
            R"(g (bool b, float[2] x) => (int64[7] y)
               { t = If (b) <then_branch = g1 () => (u) { u = Neg(x) }, else_branch = g2 () => (v) { v = Exp(x) }>
                 y = Identity(t) })",
            {}}),
    [](const auto& info) { return info.param.name; });

}  // namespace onward::types_test

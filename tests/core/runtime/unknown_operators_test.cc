// SPDX-License-Identifier: Apache-2.0
// Operators that nobody defines: all of them in one message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/runtime/executor.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

absl::Status RunText(const std::string& text) {
  auto graph = RunnableGraph(
      TextModel("<ir_version: 8, opset_import: [\"\" : 18, \"one\" : 1, \"two\" : 3]> " + text),
      DefaultEnvironment());
  if (!graph.ok()) return graph.status();
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  Session session(*std::move(graph), options);
  return session.Run({{"x", Floats({1})}}, nullptr).status();
}

TEST(UnknownOperators, AreReportedAllAtOnce) {
  const absl::Status status = RunText(R"(m (float[N] x) => (float[N] y, float[N] z) {
      a = one.Mystery(x) b = two.Riddle(a) c = Relu(b) d = two.Riddle(c) y = two.Mystery(d)
      z = one.Mystery(y) })");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("3 operators"), HasSubstr("nodes '-> a', '-> z' (one.Mystery), version 1"),
            HasSubstr("node '-> y' (two.Mystery), version 3"),
            HasSubstr("nodes '-> b', '-> d' (two.Riddle), version 3"), HasSubstr("--plugin"),
            HasSubstr("function"), Not(HasSubstr("Relu"))));
}

TEST(UnknownOperators, AreCountedWhereThereAreMany) {
  std::string nodes = "v0 = one.Mystery(x)";
  for (int i = 1; i < 100; ++i) absl::StrAppend(&nodes, " v", i, " = one.Mystery(v", i - 1, ")");
  const absl::Status status =
      RunText("m (float[N] x) => (float[N] y) { " + nodes + " y = Relu(v99) }");
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'-> v0'"), HasSubstr("and 92 more"), Not(HasSubstr("v99"))));
}

// What nobody asks for need not be known.
TEST(UnknownOperators, MatterWhereTheyAreNeeded) {
  EXPECT_TRUE(RunText("m (float[N] x) => (float[N] y) { y = Relu(x) a = one.Mystery(x) }").ok());
}

}  // namespace
}  // namespace onward

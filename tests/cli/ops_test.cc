// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward::ops_test {

using testing::HasSubstr;

TEST(Ops, TellsKernelsTypesAndDerivatives) {
  const CommandResult table = RunOnward(BuiltProgram(), "ops");
  EXPECT_EQ(table.exit_code, 0);
  for (const char* column : {"operator", "gradient", "second order", "cpu kernels", "types"}) {
    EXPECT_THAT(table.output.substr(0, table.output.find('\n')), HasSubstr(column));
  }
  const CommandResult json = RunOnward(BuiltProgram(), "ops --json");
  for (
      const char* row :
      {R"({"operator":"Floor","cpu":["reference"],"types":["float","double","float16","bfloat16"],)"
       R"("gradient":"zero","second_order":"zero","since":13})",
       R"({"operator":"Einsum","cpu":)", R"("gradient":"rule","second_order":"yes","since":)",
       R"("gradient":"body","second_order":"body","since":)",
       R"("gradient":"none","second_order":"none","since":25,"reason":"has no inputs"})"}) {
    EXPECT_THAT(json.output, HasSubstr(row));
  }
}

TEST(Recipes, TheirPageInDocsIsCurrent) {
  const std::string page = FileBytes(SourceFolder() + "/docs/training-recipes.md");
  for (const std::string kind : {"losses", "optimizers", "schedules", "initializers"}) {
    const CommandResult table = RunOnward(BuiltProgram(), kind + " --markdown");
    EXPECT_EQ(table.exit_code, 0);
    EXPECT_NE(page.find(table.output), std::string::npos)
        << "docs/training-recipes.md is stale; put there what this prints: build/onward " << kind
        << " --markdown";
    EXPECT_EQ(RunOnward(BuiltProgram(), kind).exit_code, 0);
    EXPECT_THAT(RunOnward(BuiltProgram(), kind + " --json").output, HasSubstr("\"default\":"));
  }
}

TEST(Ops, ThePageInDocsIsCurrent) {
  const CommandResult page = RunOnward(BuiltProgram(), "ops --markdown");
  EXPECT_EQ(page.exit_code, 0);
  // Not EXPECT_EQ: the message would be two long pages.
  EXPECT_TRUE(page.output == FileBytes(SourceFolder() + "/docs/operators.md"))
      << "docs/operators.md is stale; write it again: build/onward ops --markdown > "
         "docs/operators.md";
}

}  // namespace onward::ops_test

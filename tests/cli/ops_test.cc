// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/command.h"

namespace onward {
namespace {

using testing::HasSubstr;

TEST(Ops, TellsKernelsTypesAndDerivatives) {
  const CommandResult table = RunOnward(ONWARD_BINARY, "ops");
  EXPECT_EQ(table.exit_code, 0);
  for (const char* column : {"operator", "gradient", "second order", "cpu kernels", "types"}) {
    EXPECT_THAT(table.output.substr(0, table.output.find('\n')), HasSubstr(column));
  }
  const CommandResult json = RunOnward(ONWARD_BINARY, "ops --json");
  for (
      const char* row :
      {R"({"operator":"Floor","cpu":["reference"],"types":["float","double","float16","bfloat16"],)"
       R"("gradient":"zero","second_order":"zero"})",
       R"({"operator":"Einsum","cpu":[],"types":[],"gradient":"rule","second_order":"yes"})",
       R"("gradient":"body","second_order":"body"})"}) {
    EXPECT_THAT(json.output, HasSubstr(row));
  }
}

}  // namespace
}  // namespace onward

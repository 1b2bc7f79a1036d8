// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/terminal/statement.h"

#include <gtest/gtest.h>

namespace onward::statement_test {

TEST(TimeLine, TellsStepsInReadableUnits) {
  EXPECT_EQ(TimeLine(100, 0.0253), "time        about 0:03 (25.3 ms a step, evaluations apart)");
  EXPECT_EQ(TimeLine(60, 1.213), "time        about 1:13 (1.2 s a step, evaluations apart)");
}

}  // namespace onward::statement_test

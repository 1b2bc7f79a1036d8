// SPDX-License-Identifier: Apache-2.0
// How the program starts.
#include <gtest/gtest.h>

#include "tests/support/command.h"

namespace onward {
namespace {

// What libgomp says of its settings at the program's (last) start.
std::string OpenMpSettings(const std::string& environment) {
  const std::string binary = "env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose " +
                             environment + " " + ONWARD_BINARY;
  const std::string said = RunOnward(binary, "run --help").errors;
  return said.substr(said.rfind("OPENMP DISPLAY ENVIRONMENT BEGIN") + 1);
}

TEST(Start, WaitingThreadsSpinBriefly) {
  EXPECT_NE(OpenMpSettings("").find("GOMP_SPINCOUNT = '10000'"), std::string::npos);
}

TEST(Start, TheUsersWayOfWaitingIsKept) {
  EXPECT_NE(OpenMpSettings("GOMP_SPINCOUNT=77").find("GOMP_SPINCOUNT = '77'"), std::string::npos);
  EXPECT_NE(OpenMpSettings("OMP_WAIT_POLICY=passive").find("OMP_WAIT_POLICY = 'PASSIVE'"),
            std::string::npos);
}

}  // namespace
}  // namespace onward

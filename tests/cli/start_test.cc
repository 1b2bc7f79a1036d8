// SPDX-License-Identifier: Apache-2.0
// How the program starts, and what it says where it cannot go on.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace onward::start_test {

// What libgomp says of its settings at the program's (last) start.
std::string OpenMpSettings(const std::string& environment) {
  const std::string binary = "env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose " +
                             environment + " " + BuiltProgram();
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

// A message and exit code 2, at once.
void ExpectRefusal(const std::string& arguments, const std::string& message) {
  const CommandResult r = RunOnward("timeout -s KILL 20 " + BuiltProgram(), arguments);
  EXPECT_EQ(r.exit_code, 2) << arguments;
  EXPECT_NE(r.errors.find(message), std::string::npos) << arguments << ": " << r.errors;
}

TEST(Refusals, ComeBeforeAnythingIsLost) {
  const Scratch scratch;
  const std::string model = scratch.Path("cnn.onnx"), pipe = scratch.Path("pipe.npy");
  ASSERT_EQ(RunOnward(BuiltExamples() + "/make_cnn", model).exit_code, 0);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ExpectRefusal("run " + model + " -i " + pipe, "pipe or device");
  ExpectRefusal("eval " + model + " --data csv:/dev/zero?label=0", "pipe or device");
  ExpectRefusal("run " + model + " -i " + pipe + " --threads 100000", "an integer in [1, 1024]");
  ExpectRefusal("bench " + model + " --mode infer --batch 1000000000", "memory");
  const std::string train = "train " + model + " --data digits --steps 1 ";
  ExpectRefusal(train + "-o " + scratch.folder() + "/none/x.onnx", "does not exist");
  ExpectRefusal(train + "-o " + scratch.folder(), "is a folder");
  ExpectRefusal(train + "-o " + scratch.Path("x.onnx") + " --report /none/r.html", "--report");
}

}  // namespace onward::start_test

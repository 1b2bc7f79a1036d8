// SPDX-License-Identifier: Apache-2.0
// onward bench: sizes that a model leaves open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::bench_test {

using testing::HasSubstr;

class BenchSizes : public testing::Test {
 protected:
  BenchSizes() {
    scratch_.Write("m.onnx",
                   Bytes(TextModel("g (float[N, length] x, float[N, M] z) => (float[14] y, "
                                   "float[6] v) <int64[1] a = {14}, int64[1] b = {6}> { "
                                   "y = Reshape (x, a) v = Reshape (z, b) }")));
  }
  CommandResult Run(const std::string& flags) {
    return RunOnward(BuiltProgram(), "bench " + scratch_.Path("m.onnx") +
                                         " --mode infer --seconds 0 --json" + flags);
  }
  Scratch scratch_;
};

TEST_F(BenchSizes, AreGivenByNameOrPlace) {
  EXPECT_EQ(Run(" --batch 2 --size length=7 --size z.1=3").exit_code, 0);
  EXPECT_EQ(Run(" --batch 2 --size length=6 --size z.1=3").exit_code, 2);
  EXPECT_EQ(Run(" --size N=2 --size length=7 --size M=3").exit_code, 0);
}

TEST_F(BenchSizes, AreAskedForAndChecked) {
  EXPECT_THAT(Run("").errors, HasSubstr("--size length=N"));
  EXPECT_THAT(Run(" --size length=7").errors, HasSubstr("--size M=N"));
  const CommandResult unknown = Run(" --size width=7");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("the sizes that are open are M, N, length"));
  EXPECT_THAT(Run(" --size length=0").errors, HasSubstr("a whole number from 1"));
}

}  // namespace onward::bench_test

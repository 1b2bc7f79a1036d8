// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/onnx_io/model.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward {
namespace {

using testing::HasSubstr;

// make-trainable turns them into initializers; inspect says what it would find.
TEST(Inspect, CountsWeightsInConstantNodes) {
  const std::string path = TemporaryFolder() + "/m.onnx";
  ASSERT_TRUE(WriteModel(TextModel("g (float[N, 2] x) => (float[N, 1] y) { w = Constant <value = "
                                   "float[2, 1] {1, 2}> () y = MatMul(x, w) }"),
                         path)
                  .ok());
  const CommandResult result = RunOnward(ONWARD_BINARY, "inspect " + path);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("parameters: 2 "));
  EXPECT_THAT(result.output, HasSubstr("would train: 1 initializers\n  w: float[2, 1]"));
}

}  // namespace
}  // namespace onward

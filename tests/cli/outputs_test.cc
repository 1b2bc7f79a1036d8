// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/onnx_io/model.h"
#include "core/onnx_io/proto.h"
#include "data/arrays/npy.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::outputs_test {

TEST(Outputs, EveryOneGetsAFileOfItsOwn) {
  const std::string folder = TemporaryFolder(), longest(300, 'a');
  Model model = TextModel(
      "g (float x) => (float p, float q, float l) { p = Neg(x) q = Floor(x) l = Exp(x) }");
  auto* graph = model.proto().mutable_graph();
  const std::vector<std::string> names = {"a/b", "a_b", longest};
  for (int i = 0; i < 3; ++i) {
    graph->mutable_node(i)->set_output(0, names[i]);
    graph->mutable_output(i)->set_name(names[i]);
  }
  ASSERT_TRUE(WriteModel(model, folder + "/m.onnx").ok());
  const CommandResult run = RunOnward(
      BuiltProgram(), "run " + folder + "/m.onnx --input x=-2 --output-dir " + folder + "/out");
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, testing::HasSubstr("'a_b' is written as a_b_2.npy"));
  EXPECT_EQ(*ReadNpy(folder + "/out/a_b.npy").value().data<float>(), 2);
  EXPECT_EQ(*ReadNpy(folder + "/out/a_b_2.npy").value().data<float>(), -2);
  EXPECT_TRUE(ReadNpy(folder + "/out/" + std::string(200, 'a') + ".npy").ok());
}

}  // namespace onward::outputs_test

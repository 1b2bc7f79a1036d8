// SPDX-License-Identifier: Apache-2.0
// How a training is put together on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/onnx_io/model.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::recipes_test {

using testing::HasSubstr;

class MakeTrainableRecipe : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteModel(TextModel(R"(
      m (float[N, 2] x) => (float[N, 2] y, float[N, 2] z)
      <float[2, 2] W = {1, 2, 3, 4}, float[2, 2] V = {0.5, -1, 1, 0.25}, float[2] b = {0.5, 1}> {
        y = MatMul(x, W)
        p = MatMul(x, V)
        z = Add(p, b)
      })"),
                           Path("m.onnx"))
                    .ok());
    ASSERT_TRUE(WriteModel(TextModel(R"(
      l (float[N, 2] y, float[N, 2] target) => (float loss) {
        d = Sub(y, target)
        loss = ReduceSumSquare <keepdims = 0> (d)
      })"),
                           Path("loss.onnx"))
                    .ok());
    ASSERT_TRUE(WriteModel(TextModel(R"(
      o (float R, float[] X, float[] G) => (float[] X_new) { d = Mul(G, R) X_new = Sub(X, d) })"),
                           Path("optimizer.onnx"))
                    .ok());
  }
  std::string Path(const std::string& name) const { return scratch_.Path(name); }
  CommandResult Make(const std::string& flags) const {
    return RunOnward(BuiltProgram(), "make-trainable " + Path("m.onnx") + " --overwrite -o " +
                                         Path("t.onnx") + " " + flags);
  }

  const Scratch scratch_;
};

TEST_F(MakeTrainableRecipe, TakesSeveralLossesGroupsAndClipping) {
  const CommandResult made = Make(
      "--loss cross_entropy:label_smoothing=0.1@y --loss '0.1*l1@z' --optimizer "
      "nadam:lr=0.01,weight_decay=0.1 --schedule onecycle:total=10 --group 'W:lr=10x' "
      "--no-decay b --no-decay norm --clip-value 1 --clip-adaptive 0.1 --clip-norm 1 "
      "--freeze-statistics --label digit --label mask");
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_EQ(RunOnward(BuiltProgram(), "check " + Path("t.onnx")).exit_code, 0);
  const CommandResult inspected = RunOnward(BuiltProgram(), "inspect " + Path("t.onnx"));
  EXPECT_THAT(inspected.output, HasSubstr("mask"));
}

TEST_F(MakeTrainableRecipe, TakesFiles) {
  const CommandResult made = Make("--loss " + Path("loss.onnx") + " --optimizer " +
                                  Path("optimizer.onnx") + ":lr=0.5 --train W");
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_EQ(RunOnward(BuiltProgram(), "check " + Path("t.onnx")).exit_code, 0);
}

TEST_F(MakeTrainableRecipe, RefusesWhatItCannotMean) {
  for (const auto& [flags, message] : std::vector<std::pair<std::string, std::string>>{
           {"--loss mse@q", "'q' is not an output of the model"},
           {"--loss x*mse", "weight of the loss"},
           {"--loss mse --group W", "expected PATTERN:OPTION=VALUE"},
           {"--loss mse --group 'q*:lr=1'", "pattern 'q*' matches no trainable initializer"},
           {"--loss mse --optimizer sgd --group 'W:beta1=1'", "unknown option of optimizer 'sgd'"},
           {"--loss absent.onnx", "absent.onnx"},
           {"--loss mse --optimizer absent.onnx", "absent.onnx"},
           {"--loss mse --schedule multistep", "needs at=N/N"}}) {
    const CommandResult made = Make(flags);
    EXPECT_EQ(made.exit_code, 2) << flags;
    EXPECT_THAT(made.errors, HasSubstr(message)) << flags;
  }
}

TEST(MakeTrainableHelp, NamesEverything) {
  const std::string help = RunOnward(BuiltProgram(), "make-trainable --help").output;
  for (const char* name : {"ctc", "triplet", "adafactor", "muon", "cosine_restarts", "onecycle"}) {
    EXPECT_THAT(help, HasSubstr(name));
  }
}

}  // namespace onward::recipes_test

// SPDX-License-Identifier: Apache-2.0
// What `inspect` reads from a trainable file: what trains, how, and with what state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/onnx_io/model.h"
#include "data/arrays/npy.h"
#include "tests/cli/journey.h"
#include "tests/support/text_model.h"

namespace onward::inspect_training_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class InspectTraining : public Journey {
 protected:
  void SetUp() override {
    Write("m.onnx", R"(
        g (float[N, 2] x) => (float[N, 2] y)
        <float[2, 2] W = {1, 2, 3, 4}, float[2] b = {0, 0}, float[2, 2] V = {1, 0.5, 0.25, 2}>
        { h = Gemm(x, W, b) y = MatMul(h, V) })");
    ASSERT_TRUE(WriteNpy(Path("x.npy"), Floats({2, 2}, {1, 2, 3, 4})).ok());
    ASSERT_TRUE(WriteNpy(Path("label.npy"), Int64s({0, 1})).ok());
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteModel(TextModel(text), Path(name)).ok());
  }
  void Make(const std::string& flags) {
    Must("make-trainable " + Path("m.onnx") + " --overwrite -o " + Path("t.onnx") + " " + flags);
  }
  void Step(const std::string& x = "x.npy") {
    Must("step " + Path("t.onnx") + " --input x=" + Path(x) +
         " --input label=" + Path("label.npy") + " --overwrite -o " + Path("t.onnx"));
  }
  std::string Text() { return Onward("inspect " + Path("t.onnx")).output; }
  std::string Json() { return Onward("inspect --json " + Path("t.onnx")).output; }
};

TEST_F(InspectTraining, TellsLossesGroupsAndClipping) {
  Make(
      "--loss cross_entropy --optimizer adamw:lr=0.5 --group 'W:lr=5,beta1=0.5' --no-decay b "
      "--clip-norm 1 --clip-value 2 --freeze V");
  EXPECT_THAT(
      Text(),
      AllOf(HasSubstr("loss: loss = cross_entropy@y\n"), HasSubstr("group beta1=0.5,lr=10x: W\n"),
            HasSubstr("group weight_decay=0: b\n"), HasSubstr("clipping: value=2,norm=1\n"),
            HasSubstr("state: 5 variables beside the weights, 56 bytes\n"),
            Not(HasSubstr("precision:")), Not(HasSubstr("averages:"))));
  EXPECT_THAT(Json(),
              AllOf(HasSubstr(R"("losses":["cross_entropy@y"],"groups":[)"
                              R"({"options":"beta1=0.5,lr=10x","weights":["W"]},)"
                              R"({"options":"weight_decay=0","weights":["b"]}],)"
                              R"("clip":"value=2,norm=1","precision":null,"masters":{},)"
                              R"("loss_scale":null,"skipped_steps":null,"accumulate":1,)"
                              R"("accumulated":0,"ema":null,"averages":{},"state_bytes":56)"),
                    HasSubstr(R"("trained":["W","b"])")));
}

TEST_F(InspectTraining, TellsWhereAccumulationAndAveragesStand) {
  Make("--loss cross_entropy --optimizer sgd:lr=0.5 --accumulate 3 --ema 0.9");
  Step();
  EXPECT_THAT(Text(), AllOf(HasSubstr("accumulation: an update of 3 steps, 1 of them done\n"),
                            HasSubstr("averages: of 3 weights, decay 0.9\n")));
  EXPECT_THAT(Json(), AllOf(HasSubstr(R"("accumulate":3,"accumulated":1,"ema":0.9,)"),
                            HasSubstr(R"("averages":{"V__ema":"V","W__ema":"W","b__ema":"b"})")));
}

TEST_F(InspectTraining, TellsPrecisionScaleAndSkippedSteps) {
  Make("--loss cross_entropy --optimizer sgd:lr=0.01 --precision float16");
  EXPECT_THAT(Text(), HasSubstr("precision: products in float16, the loss is scaled by 65536, "
                                "skipped steps: 0\n"));
  ASSERT_TRUE(WriteNpy(Path("large.npy"), Floats({2, 2}, {1e6f, 2, 3, 4})).ok());
  Step("large.npy");
  EXPECT_THAT(Text(), HasSubstr("the loss is scaled by 32768, skipped steps: 1\n"));
  EXPECT_THAT(Json(), HasSubstr(R"("precision":"float16","masters":{},"loss_scale":32768,)"
                                R"("skipped_steps":1)"));
  Make("--loss cross_entropy --precision bfloat16");
  EXPECT_THAT(Text(), HasSubstr("precision: products in bfloat16\n"));
}

TEST_F(InspectTraining, TellsMasterCopies) {
  Write("m.onnx",
        "g (float16[N, 2] x) => (float16[N, 2] y) <float16[2, 2] W = {1, 2, 3, 4}> "
        "{ y = MatMul(x, W) }");
  Make("--loss cross_entropy --precision float16");
  EXPECT_THAT(Text(), HasSubstr("products in float16, float master copies of 1 weights, "));
  EXPECT_THAT(Json(), HasSubstr(R"("masters":{"W__master":"W"})"));
}

// Nothing is known of a file that others wrote but what it holds.
TEST_F(InspectTraining, SaysNothingOfWhatAFileDoesNotSay) {
  ASSERT_TRUE(WriteModel(TextModel("g (float[2] x) => (float[2] y) <float[2] W = {1, 2}> "
                                   "{ y = Mul(x, W) }",
                                   {{.algorithm = "a () => (float[2] n) <float[2] K = {1, 1}> "
                                                  "{ k = Mul(K, x) n = Add(W, k) }",
                                     .update = {{"W", "n"}}}}),
                         Path("t.onnx"))
                  .ok());
  EXPECT_THAT(Text(), AllOf(HasSubstr("  W <- n\n"), Not(HasSubstr("loss:")),
                            Not(HasSubstr("group")), Not(HasSubstr("state:"))));
  EXPECT_THAT(Json(), AllOf(HasSubstr(R"("losses":[],"groups":[],"clip":null)"),
                            HasSubstr(R"("state_bytes":0,"state":["W"])")));
}

}  // namespace onward::inspect_training_test

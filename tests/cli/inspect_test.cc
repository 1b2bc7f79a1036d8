// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/onnx_io/model.h"
#include "core/onnx_io/value_file.h"
#include "tests/support/classified.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"

namespace onward::inspect_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// make-trainable turns them into initializers; inspect says what it would find.
TEST(Inspect, CountsWeightsInConstantNodes) {
  const std::string path = TemporaryFolder() + "/m.onnx";
  ASSERT_TRUE(WriteModel(TextModel("g (float[N, 2] x) => (float[N, 1] y) { w = Constant <value = "
                                   "float[2, 1] {1, 2}> () y = MatMul(x, w) }"),
                         path)
                  .ok());
  const CommandResult result = RunOnward(BuiltProgram(), "inspect " + path);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("parameters: 2 "));
  EXPECT_THAT(result.output, HasSubstr("would train: 1 initializers\n  w: float[2, 1]"));
}

TEST(Inspect, TellsHowAFileIsTrainedAndHowFarItIs) {
  const Scratch scratch;
  ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(2, 2)), scratch.Path("m.onnx")).ok());
  scratch.Write("d.csv", ClassifiedCsv({"a", "b"}, 50));
  const std::string out = scratch.Path("t.onnx");
  ASSERT_EQ(RunOnward(BuiltProgram(), "train " + scratch.Path("m.onnx") +
                                          " --data 'csv:" + scratch.Path("d.csv") +
                                          "?label=label' --steps 3 --optimizer adam:lr=0.02 "
                                          "--schedule cosine --quiet -o " +
                                          out)
                .exit_code,
            0);
  EXPECT_THAT(RunOnward(BuiltProgram(), "inspect --json " + out).output,
              HasSubstr(R"("optimizer":"adam:lr=0.02","learning_rate":0.02,)"
                        R"("schedule":"cosine:total=3","steps_done":3,)"));
  EXPECT_THAT(RunOnward(BuiltProgram(), "inspect " + out).output,
              AllOf(HasSubstr("optimizer: adam: lr 0.02, beta1 0.9"),
                    HasSubstr("schedule: cosine:total=3\nsteps done: 3\n")));
}

class Report : public testing::Test {
 protected:
  // Of A, B and C only C gets a gradient; of the outputs only z can be computed.
  Report() {
    EXPECT_TRUE(
        WriteModel(
            TextModel(
                "<ir_version: 8, opset_import: [\"\" : 18, \"one\" : 1]> "
                "g (float[N, 2] x) => (float[N, 2] y, float[N, 2] z) "
                "<float[2, 2] A = {1, 2, 3, 4}, float[2, 2] B = {1, 2, 3, 4}, "
                "float[2, 2] C = {1, 2, 3, 5}, float[N, 2] b, float[N, 2] d> { a = MatMul(x, A) "
                "[puzzle] b = one.Riddle(a) c = MatMul(b, B) "
                "[quiz] d = one.Mystery(c) y = MatMul(d, C) z = Relu(x) }"),
            path_)
            .ok());
  }
  CommandResult Run(const std::string& arguments) { return RunOnward(BuiltProgram(), arguments); }
  const std::string path_ = TemporaryFolder() + "/m.onnx";
};

TEST_F(Report, TellsOfEveryWeightAndEveryNode) {
  const CommandResult text = Run("inspect " + path_);
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  for (const char* part :
       {"cannot run\n", "node 'quiz' (one.Mystery), version 1: nobody defines it",
        "outputs that do without: z", "gradients of 'y': 1 of 3 weights get one",
        "A: none, blocked by node 'puzzle' (one.Riddle)",
        "B: none, blocked by node 'quiz' (one.Mystery)", "one.Riddle at node 'puzzle'",
        "blocks A, B", "1 of 3 would get a gradient: C"}) {
    EXPECT_THAT(text.output, HasSubstr(part));
  }
  const CommandResult json = Run("inspect --json " + path_);
  for (
      const char* part :
      {R"("gradients":[{"name":"A","gradient":"blocked","reason":"blocked by)",
       R"({"name":"C","gradient":"flows","reason":""})", R"("blocks":["A","B"])",
       R"("cannot_run":[{"operator":"one.Mystery","version":1,"defined":false,"nodes":["'quiz'"]})",
       R"("outputs_that_run":["z"])"}) {
    EXPECT_THAT(json.output, HasSubstr(part));
  }
}

TEST_F(Report, IsOfTheLossAndTheWeightsThatAreNamed) {
  const CommandResult blocked = Run("inspect --loss mse --train A --train C " + path_);
  EXPECT_THAT(blocked.output, HasSubstr("gradients of 'loss': 1 of 2 weights get one"));
  const CommandResult free = Run("inspect --loss mse --train C " + path_);
  EXPECT_THAT(free.output, HasSubstr("gradients of 'loss': 1 of 1 weights get one"));
  EXPECT_EQ(Run("inspect --loss nonsense " + path_).exit_code, 2);
}

TEST_F(Report, IsTheErrorOfMakeTrainable) {
  const CommandResult made = Run("make-trainable " + path_ + " --loss mse -o " + path_ + ".out");
  EXPECT_EQ(made.exit_code, 2);
  for (const char* part : {"'puzzle'", "'quiz'", "blocks A, B", "would get a gradient: C"}) {
    EXPECT_THAT(made.errors, HasSubstr(part));
  }
}

// Forty nodes of one kind are told in as many lines as one.
TEST(Inspect, CountsNodesThatAreAlike) {
  std::string nodes, weights, last = "x";
  for (int k = 0; k < 40; ++k) {
    const std::string n = std::to_string(k);
    weights += (k == 0 ? "" : ", ") + ("float[2, 2] w" + n + " = {1, 2, 3, 4}, float[N, 2] r" + n);
    nodes += " [m" + n + "] h" + n + " = MatMul(" + last + ", w" + n + ") [q" + n + "] r" + n +
             " = one.Riddle(h" + n + ")";
    last = "r" + n;
  }
  const std::string path = TemporaryFolder() + "/m.onnx";
  ASSERT_TRUE(WriteModel(TextModel("<ir_version: 8, opset_import: [\"\" : 18, \"one\" : 1]> g "
                                   "(float[N, 2] x) => (float[N, 2] y) <" +
                                   weights + "> {" + nodes + " y = Relu(" + last + ") }"),
                         path)
                  .ok());
  const CommandResult r = RunOnward(BuiltProgram(), "inspect " + path);
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.output, HasSubstr("no gradient passes 40 nodes"));
  EXPECT_THAT(r.output, HasSubstr("at 40 nodes, the first node 'q0' (one.Riddle): "));
  EXPECT_THAT(r.output, HasSubstr("and 28 more"));
  EXPECT_THAT(r.output, Not(HasSubstr("one.Riddle at node 'q7'")));
}

// So are constants that are left for one reason.
TEST(Inspect, CountsConstantsThatAreAlike) {
  std::string nodes, constants, last = "x";
  for (int k = 0; k < 9; ++k) {
    const std::string n = std::to_string(k);
    constants += ", float c" + n + " = {2}";
    nodes += " h" + n + " = Mul(" + last + ", c" + n + ")";
    last = "h" + n;
  }
  const std::string path = TemporaryFolder() + "/m.onnx";
  ASSERT_TRUE(WriteModel(TextModel("g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {1, 2, "
                                   "3, 4}" +
                                   constants + "> {" + nodes + " y = MatMul(" + last + ", w) }"),
                         path)
                  .ok());
  const CommandResult r = RunOnward(BuiltProgram(), "inspect " + path);
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_THAT(r.output, HasSubstr("  9 x a single number in Mul: c0, c1, c2, c3 and 5 more\n"));
  EXPECT_THAT(r.output, HasSubstr("would train: 1 initializers\n  w: float[2, 2]"));
  EXPECT_THAT(r.output, Not(HasSubstr("c7")));
}

TEST(Inspect, JsonTellsTheRecipe) {
  const std::string folder = TemporaryFolder();
  ASSERT_TRUE(WriteModel(TextModel("g (float[N, 2] x) => (float[N, 1] y) <float[2, 1] w = {1, 2}> "
                                   "{ y = MatMul(x, w) }"),
                         folder + "/m.onnx")
                  .ok());
  const CommandResult plain = RunOnward(BuiltProgram(), "inspect --json " + folder + "/m.onnx");
  EXPECT_THAT(
      plain.output,
      HasSubstr(R"("optimizer":null,"learning_rate":null,"schedule":null,"steps_done":null)"));
  ASSERT_EQ(RunOnward(BuiltProgram(), "make-trainable " + folder + "/m.onnx --loss mse -o " +
                                          folder + "/t.onnx --optimizer sgd:lr=0.25 --schedule " +
                                          "step:every=5,factor=0.3")
                .exit_code,
            0);
  std::string csv = "a,b,c\n";
  for (int i = 0; i < 8; ++i) csv += std::to_string(i % 3) + ",1," + std::to_string(i % 2) + ".5\n";
  std::ofstream(folder + "/d.csv") << csv;
  ASSERT_EQ(
      RunOnward(BuiltProgram(), "train " + folder + "/t.onnx --data 'csv:" + folder +
                                    "/d.csv?label=c' --batch 4 --steps 3 -o " + folder + "/o.onnx")
          .exit_code,
      0);
  const CommandResult json = RunOnward(BuiltProgram(), "inspect --json " + folder + "/o.onnx");
  EXPECT_THAT(json.output, HasSubstr(R"("optimizer":"sgd:lr=0.25","learning_rate":0.25,)"
                                     R"("schedule":"step:every=5,factor=0.3","steps_done":3)"));
  const CommandResult text = RunOnward(BuiltProgram(), "inspect " + folder + "/o.onnx");
  EXPECT_THAT(text.output, HasSubstr("optimizer: sgd: lr 0.25\nschedule: step:every=5,factor=0.3\n"
                                     "steps done: 3\n"));
}

TEST_F(Report, OnlyWhatIsAskedForHasToRun) {
  const std::string x = path_ + ".x.pb";
  ASSERT_TRUE(WriteTensorFile(Floats(Shape{1, 2}, {-1, 2}), "x", x).ok());
  EXPECT_EQ(Run("run " + path_ + " --input x=" + x).exit_code, 2);
  const CommandResult z = Run("run " + path_ + " --only z --json --input x=" + x);
  EXPECT_EQ(z.exit_code, 0) << z.errors;
  EXPECT_THAT(z.output, HasSubstr(R"("output":"z")"));
  EXPECT_THAT(Run("run " + path_ + " --only w --input x=" + x).errors,
              HasSubstr("'w' is not an output; valid: y, z"));
}

}  // namespace onward::inspect_test

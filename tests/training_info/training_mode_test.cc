// SPDX-License-Identifier: Apache-2.0
// Files that were exported in training mode: BatchNormalization that updates its statistics,
// Dropout that drops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_replace.h"
#include "environment/environment.h"
#include "onnx/onnx_pb.h"
#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/export.h"
#include "training_info/import.h"

namespace onward::training_mode_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// As PyTorch's exporter writes it with training=TrainingMode.TRAINING.
constexpr char kTraining[] = R"(m (float[N, 2] x) => (float[N, 2] y)
    <float[2] s = {1, 1.5}, float[2] b = {0, 0.5}, float[2] mean = {0, 0.25}, float[2] var = {1, 1.25},
     float[2, 2] W = {1, 2, 3, 5}> {
      n, mean_out, var_out = BatchNormalization <momentum = 0.75, training_mode = 1> (x, s, b, mean, var)
      y = MatMul(n, W)
    })";

std::string InInference(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"n, mean_out, var_out =", "n ="}, {", training_mode = 1", ""}});
}

TensorMap Batch() { return {{"x", Floats({2, 2}, {1, 10, 3, 30})}, {"label", Int64s({0, 1})}}; }

AuthorResult Made(const Model& model) {
  auto made = MakeTrainable(model, {}, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : AuthorResult{};
}

TEST(TrainingMode, StatisticsAreWrittenBack) {
  const AuthorResult made = Made(TextModel(kTraining));
  EXPECT_THAT(made.trained, UnorderedElementsAre("s", "b", "W"));
  EXPECT_THAT(made.notes, Contains(HasSubstr("in training mode (1 BatchNormalization)")));
  auto model = Open(Reread(made.model));
  ASSERT_TRUE(model->Step(Batch()).ok());
  // Batch mean (2, 20), variance (1, 100).
  EXPECT_THAT(ValueOf(*model, "mean"), ElementsAre(0.5, 5.1875));
  EXPECT_THAT(ValueOf(*model, "var"), ElementsAre(1, 25.9375));
}

// The file trains as the same network exported for inference does.
TEST(TrainingMode, TrainsAsTheInferenceFileDoes) {
  auto training = Open(Made(TextModel(kTraining)).model);
  auto inference = Open(Made(TextModel(InInference(kTraining))).model);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(training->Step(Batch()).ok());
    ASSERT_TRUE(inference->Step(Batch()).ok());
  }
  EXPECT_TRUE(SameVariables(training->variables(), inference->variables()));
  const TensorMap feed = {{"x", Floats({1, 2}, {1, 2})}};
  EXPECT_EQ(Values(training->Infer(feed)->at("y")), Values(inference->Infer(feed)->at("y")));
  const Graph exported = InferenceGraph(InferenceOnly(*training->Export())).value();
  EXPECT_EQ(exported.nodes[0].Int("training_mode", 0), 0);
  EXPECT_EQ(exported.nodes[0].outputs.size(), 1u);
}

TEST(TrainingMode, ActiveDropoutDropsInTrainingOnly) {
  const AuthorResult made = Made(TextModel(R"(m (float[N, 2] x) => (float[N, 2] y)
      <float[2, 2] W = {1, 2, 3, 5}, float ratio = {0.5}, bool on = {1}> {
        d = Dropout(x, ratio, on)
        y = MatMul(d, W)
      })"));
  EXPECT_THAT(made.notes, Contains(HasSubstr("in training mode (1 Dropout)")));
  auto model = Open(made.model);
  EXPECT_THAT(Values(model->Infer({{"x", Floats({1, 2}, {1, 2})}})->at("y")), ElementsAre(7, 12));
  double first = 0;
  bool differs = false;
  for (int i = 0; i < 8; ++i) {
    const double loss = Values(model->Step(Batch(), {"loss"})->at("loss"))[0];
    differs = differs || (i > 0 && std::abs(loss - first) > 1e-2);
    if (i == 0) first = loss;
  }
  EXPECT_TRUE(differs);
}

struct Form {
  const char *text, *expected;
  int normalizations, dropouts;
};

TEST(TrainingMode, FilesGoToInferenceMode) {
  const Form forms[] = {
      {"m (float[N, 2] x) => (float[N, 2] y) <float[2] s = {1, 2}, float[2] m = {1, 2}> { y, a, b "
       "= "
       "BatchNormalization <training_mode = 1> (x, s, s, m, m) }",
       "y = BatchNormalization <training_mode = 0> (x, s, s, m, m)\n", 1, 0},
      // Older forms tell it by the number of outputs.
      {"<ir_version: 8, opset_import: [\"\" : 9]> m (float[N, 2] x) => (float[N, 2] y) <float[2] s "
       "= {1, 2}, float[2] m = {1, 2}> { y, a, b, c, d = BatchNormalization(x, s, s, m, m) }",
       "y = BatchNormalization (x, s, s, m, m)\n", 1, 0},
      // Statistics that are given out are those that went in.
      {"m (float[N, 2] x) => (float[N, 2] y, float[2] a) <float[2] s = {1, 2}, float[2] m = {1, "
       "2}> { y, a, b = "
       "BatchNormalization <training_mode = 1> (x, s, s, m, m) }",
       "y = BatchNormalization <training_mode = 0> (x, s, s, m, m)\na = Identity (m)\n", 1, 0},
      {"m (float[N, 2] x) => (float[N, 2] y) { r = Constant <value_float = 0.5> () t = Constant "
       "<value = bool {1}> () y = Dropout(x, r, t) }",
       "y = Dropout (x, r)\n", 0, 1},
      {"m (float[N, 2] x) => (float[N, 2] y) <bool t = {1}> { y = Dropout(x, , t) }",
       "y = Dropout (x)\n", 0, 1},
      {"m (float[N, 2] x, bool t) => (float[N, 2] y) { y = Dropout(x, , t) }",
       "y = Dropout (x, , t)\n", 0, 0},
      {"m (float[N, 2] x, bool c) => (float[N, 2] y) <bool t = {1}> { y = If(c) <then_branch = a "
       "() "
       "=> (float[N, 2] p) { p = Dropout(x, , t) }, else_branch = b () => (float[N, 2] q) { q = "
       "Relu(x) }> }",
       "p = Dropout (x)", 0, 1},
  };
  for (const Form& form : forms) {
    Model model = TextModel(form.text);
    const std::string before = Bytes(model);
    auto change = ToInferenceMode(&model);
    ASSERT_TRUE(change.ok()) << change.status();
    EXPECT_EQ(change->normalizations, form.normalizations) << form.text;
    EXPECT_EQ(change->dropouts, form.dropouts) << form.text;
    EXPECT_EQ(Bytes(model) == before, !change->any()) << form.text;
    std::string nodes;
    const Graph graph = InferenceGraph(model).value();
    for (const Node& node : graph.nodes) nodes += ToText(node) + "\n";
    EXPECT_THAT(nodes, HasSubstr(form.expected)) << form.text;
    EXPECT_FALSE(ToInferenceMode(&model)->any());
  }
}

constexpr char kData[] = "a,b,label\n1,10,0\n3,30,1\n2,5,1\n4,1,0\n";

// `export` and `eval` of a file in training mode that never was trained here.
TEST(TrainingMode, CommandsSayAndUseInferenceMode) {
  const Scratch scratch;
  const std::string training = scratch.Path("t.onnx"), inference = scratch.Path("i.onnx");
  ASSERT_TRUE(WriteModel(TextModel(kTraining), training).ok());
  ASSERT_TRUE(WriteModel(TextModel(InInference(kTraining)), inference).ok());
  const std::string data = " --data csv:" + scratch.Write("d.csv", kData) + "?label=label --json";
  const CommandResult of_training = RunOnward(BuiltProgram(), "eval " + training + data);
  const CommandResult of_inference = RunOnward(BuiltProgram(), "eval " + inference + data);
  EXPECT_EQ(of_training.exit_code, 0) << of_training.errors;
  EXPECT_EQ(absl::StrReplaceAll(of_training.output, {{"t.onnx", "i.onnx"}}), of_inference.output);

  const std::string out = scratch.Path("o.onnx");
  CommandResult result = RunOnward(BuiltProgram(), "export " + training + " -o " + out);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors,
              HasSubstr("is in training mode (1 BatchNormalization); inference mode is written"));
  EXPECT_EQ(InferenceGraph(*ReadModel(out))->nodes[0].outputs.size(), 1u);

  // Into the original go weights and statistics; its mode is its own.
  const std::string trained = scratch.Path("trained.onnx");
  result = RunOnward(BuiltProgram(),
                     "train " + training + data + " --steps 2 --batch 2 --quiet -o " + trained);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  result = RunOnward(BuiltProgram(), "export " + trained + " --like " + training + " -o " + out);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("and stays so; without --like inference mode is written"));
  const Graph like = InferenceGraph(*ReadModel(out)).value();
  EXPECT_EQ(like.nodes[0].Int("training_mode", 0), 1);
  EXPECT_NE(Values(like.initializers.at("mean")), (std::vector<double>{0, 0.25}));
}

}  // namespace onward::training_mode_test

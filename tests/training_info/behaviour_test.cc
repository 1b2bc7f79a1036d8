// SPDX-License-Identifier: Apache-2.0
// docs/training-info.md: infer, step, initialize; a step is all or nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/onnx_io/proto.h"
#include "tests/support/text_model.h"

namespace onward::behaviour_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = x*W; a step adds x to W.
constexpr char kScale[] = "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }";
const EntryText kAddInput = {"a () => (float[2] W_new) { W_new = Add(W, x) }", {{"W", "W_new"}}};
// Gather fails in the step where `at` is out of range.
constexpr char kPick[] =
    "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] V = {3, 4}> { y = Mul(x, W) }";
const EntryText kPickV = {"a (int64[2] at) => (float[2] V_new) { V_new = Gather(W, at) }",
                          {{"V", "V_new"}}};

TEST(TrainingInfo, InferHasNoSideEffects) {
  auto model = Open(TextModel(kScale, {kAddInput}));
  const RandomState random = model->random();
  for (int i = 0; i < 2; ++i) {
    auto out = model->Infer({{"x", Floats({10, 10})}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values(out->at("y")), ElementsAre(10, 20));
  }
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(1, 2));
  EXPECT_EQ(model->random().step, random.step);
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_THAT(Values(model->Infer({{"x", Floats({10, 10})}})->at("y")), ElementsAre(20, 30));
}

TEST(TrainingInfo, StepAssignsThroughUpdateBinding) {
  auto model = Open(TextModel(kScale, {kAddInput}));
  auto out = model->Step({{"x", Floats({5, 6})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(6, 8));
  // Outputs are those of the step's graph, computed before the assignment.
  EXPECT_THAT(Values(out->at("y")), ElementsAre(5, 12));
  EXPECT_THAT(Values(out->at("W_new")), ElementsAre(6, 8));
}

// Two entries, of which the second reads what the first assigned.
Model TwoEntries() {
  return TextModel(
      "m (float[1] x) => (float[1] y) <float[1] A = {1}, float[1] B = {10}> { y = Mul(x, A) }",
      {{"a0 () => (float[1] A_new) { A_new = Add(A, x) }", {{"A", "A_new"}}},
       {"a1 () => (float[1] B_new) { B_new = Mul(B, A) }", {{"B", "B_new"}}}});
}

TEST(TrainingInfo, EntriesRunInOrder) {
  auto model = Open(TwoEntries());
  ASSERT_TRUE(model->Step({{"x", Floats({2})}}).ok());
  EXPECT_THAT(ValueOf(*model, "A"), ElementsAre(3));
  EXPECT_THAT(ValueOf(*model, "B"), ElementsAre(30));
}

TEST(TrainingInfo, OneEntryAlone) {
  auto model = Open(TwoEntries());
  EXPECT_EQ(model->entries(), 2);
  ASSERT_TRUE(model->StepEntry(1, {{"x", Floats({2})}}).ok());
  EXPECT_THAT(ValueOf(*model, "A"), ElementsAre(1));
  EXPECT_THAT(ValueOf(*model, "B"), ElementsAre(10));
  ASSERT_TRUE(model->StepEntry(0, {{"x", Floats({2})}}).ok());
  ASSERT_TRUE(model->StepEntry(1, {{"x", Floats({2})}}).ok());
  EXPECT_THAT(ValueOf(*model, "B"), ElementsAre(30));
  for (int entry : {-1, 2}) EXPECT_FALSE(model->StepEntry(entry, {{"x", Floats({2})}}).ok());
}

TEST(TrainingInfo, InitializeResetsThenAssigns) {
  auto model =
      Open(TextModel("m (float[1] x) => (float[1] y) <float[1] A = {1}, float[1] B = {2}, float[1] "
                     "C = {3}> { y = Sum(x, A, B, C) }",
                     {{"a0 () => (float[1] n) { n = Add(A, x) }",
                       {{"A", "n"}},
                       "i0 () => (float[1] b) <float[1] b = {7}> {}",
                       {{"B", "b"}}},
                      {"a1 () => (float[1] k) { k = Add(C, x) }",
                       {{"C", "k"}},
                       "i1 () => (float[1] b1) <float[1] b1 = {8}> {}",
                       {{"B", "b1"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({100})}}).ok());
  EXPECT_THAT(ValueOf(*model, "A"), ElementsAre(101));
  ASSERT_TRUE(model->Initialize().ok());
  EXPECT_THAT(ValueOf(*model, "A"), ElementsAre(1));
  EXPECT_THAT(ValueOf(*model, "B"), ElementsAre(8));  // the last entry's
  EXPECT_THAT(ValueOf(*model, "C"), ElementsAre(3));
}

TEST(TrainingInfo, FailedInitializeChangesNothing) {
  auto model = Open(TextModel(
      kScale,
      {{"a () => (float[2] n) { n = Add(W, x) }",
        {{"W", "n"}},
        "i () => (float[2] w) <float[2] s = {5, 6}, int64[2] at = {0, 9}> { w = Gather(s, at) }",
        {{"W", "w"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_FALSE(model->Initialize().ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(2, 3));
}

TEST(TrainingInfo, StartsFromInitializers) {
  EntryText entry = kAddInput;
  entry.initialization = "i () => (float[2] w) <float[2] w = {50, 60}> {}";
  entry.initialize = {{"W", "w"}};
  auto model = Open(TextModel(kScale, {entry}));
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(1, 2));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(2, 3));
}

// A quadratic loss, minimised by the standard's Adam.
Model AdamModel() {
  return TextModel(
      "m (float[3] x) => (float[3] y) <float[3] W = {0.5, -1.25, 2}> { y = Mul(x, W) }",
      {{R"(a (float[3] label) => (float loss, float[3] W1, float[3] V1, float[3] H1, int64 T1)
           <float R = {0.1}, int64 T = {1}, int64 one = {1}, float[3] V = {0, 0, 0}, float[3] H = {0, 0, 0}> {
             e = Sub(y, label)
             loss = ReduceSumSquare <keepdims = 0> (e)
             G = ai.onnx.preview.training.Gradient <xs = ["W"], y = "loss"> (W)
             W1, V1, H1 = ai.onnx.preview.training.Adam (R, T, W, G, V, H)
             T1 = Add(T, one)
           })",
        {{"W", "W1"}, {"V", "V1"}, {"H", "H1"}, {"T", "T1"}}}});
}

TEST(TrainingInfo, ResumeContinuesBitForBit) {
  auto through = Open(AdamModel());
  auto first = Open(AdamModel());
  auto feeds = [](int i) {
    const float v = 1 + 0.25f * static_cast<float>(i);
    return TensorMap{{"x", Floats({v, 2, -v})}, {"label", Floats({1, v, 3})}};
  };
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(through->Step(feeds(i)).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(first->Step(feeds(i)).ok());
  auto exported = first->Export();
  ASSERT_TRUE(exported.ok()) << exported.status();
  auto second = Open(Reread(*exported));
  for (int i = 3; i < 6; ++i) ASSERT_TRUE(second->Step(feeds(i)).ok());
  EXPECT_TRUE(SameVariables(through->variables(), second->variables()));
  EXPECT_THAT(ValueOf(*second, "T"), ElementsAre(7));
}

TEST(TrainingInfo, EmptyAlgorithmChangesNothing) {
  auto model = Open(
      TextModel(kScale, {{"", {}, "i () => (float[2] w) <float[2] w = {5, 6}> {}", {{"W", "w"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(1, 2));
  ASSERT_TRUE(model->Initialize().ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(5, 6));
}

TEST(TrainingInfo, RefusesModelWithoutTraining) {
  EXPECT_THAT(Refusal(TextModel(kScale)), HasSubstr("onward make-trainable"));
}

TEST(TrainingInfo, SwapUsesSnapshot) {
  const char* graph =
      "m (float[2] x) => (float[2] y) <float[2] A = {1, 2}, float[2] B = {3, 4}> { y = Sum(x, A, "
      "B) }";
  const std::vector<EntryText> swaps = {
      {"a () => (float[2] a1, float[2] b1) { a1 = Identity(B) b1 = Identity(A) }",
       {{"A", "a1"}, {"B", "b1"}}},
      // Initializers themselves as outputs: no node in between.
      {"a () => (float[2] B, float[2] A) {}", {{"A", "B"}, {"B", "A"}}},
      {"a () => (float[2] a1, float[2] b1) { z = Sub(x, x) a1 = Add(B, z) b1 = Add(A, z) }",
       {{"A", "a1"}, {"B", "b1"}}},
  };
  for (const EntryText& swap : swaps) {
    auto model = Open(TextModel(graph, {swap}));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(model->Step({{"x", Floats({9, 9})}}).ok());
    EXPECT_THAT(ValueOf(*model, "A"), ElementsAre(3, 4)) << swap.algorithm;
    EXPECT_THAT(ValueOf(*model, "B"), ElementsAre(1, 2)) << swap.algorithm;
  }
}

// An optimizer may write in place, but not before another value has read.
TEST(TrainingInfo, SnapshotHoldsForOptimizersToo) {
  auto model = Open(TextModel(
      "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] Old = {0, 0}> { y = Mul(x, W) "
      "}",
      {{R"(a () => (float[2] W1, float[2] H1, float[2] kept) <float R = {1}, int64 T = {0}, float[2] H = {0, 0}> {
             W1, H1 = ai.onnx.preview.training.Adagrad <epsilon = 0.0> (R, T, W, x, H)
             kept = Identity(W)
           })",
        {{"W", "W1"}, {"H", "H1"}, {"Old", "kept"}}}}));
  ASSERT_TRUE(model->Step({{"x", Floats({3, 4})}}).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(0, 1));
  EXPECT_THAT(ValueOf(*model, "H"), ElementsAre(9, 16));
  EXPECT_THAT(ValueOf(*model, "Old"), ElementsAre(1, 2));
}

TEST(TrainingInfo, FailedStepChangesNothing) {
  auto model = Open(TextModel(kPick, {{"a (int64[2] at) => (float[2] W_new, float[2] V_new) { "
                                       "W_new = Add(W, x) V_new = Gather(W, at) }",
                                       {{"W", "W_new"}, {"V", "V_new"}}}}));
  auto failed = model->Step({{"x", Floats({1, 1})}, {"at", Int64s({0, 7})}});
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(1, 2));
  EXPECT_THAT(ValueOf(*model, "V"), ElementsAre(3, 4));
  EXPECT_EQ(model->random().step, 0u);
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}, {"at", Int64s({1, 0})}}).ok());
  EXPECT_THAT(ValueOf(*model, "V"), ElementsAre(2, 1));
}

TEST(TrainingInfo, FailedIterationRestoresAll) {
  auto model = Open(TextModel(kPick, {kAddInput, kPickV}));
  auto failed = model->Step({{"x", Floats({1, 1})}, {"at", Int64s({0, 7})}});
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("training_info[1]"));
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(1, 2));
  EXPECT_THAT(ValueOf(*model, "V"), ElementsAre(3, 4));
  ASSERT_TRUE(model->Step({{"x", Floats({1, 1})}, {"at", Int64s({0, 1})}}).ok());
  EXPECT_THAT(ValueOf(*model, "V"), ElementsAre(2, 3));
}

TEST(TrainingInfo, NonFiniteLossFailsTheStep) {
  Model file = TextModel(kScale, {{"a () => (float loss, float[2] W_new) "
                                   "{ loss = ReduceSum <keepdims = 0> (y) W_new = Add(W, x) }",
                                   {{"W", "W_new"}}}});
  const float inf = std::numeric_limits<float>::infinity();
  // 3e38 * W overflows, W + 3e38 does not.
  auto unnamed = Open(file);
  EXPECT_TRUE(unnamed->Step({{"x", Floats({1, 3e38f})}}).ok());
  file.SetMetadata(kMetaLoss, "loss");
  auto named = Open(file);
  // Also where the caller asks for something else.
  for (const std::vector<std::string>& outputs : {std::vector<std::string>{}, {"y"}}) {
    auto failed = named->Step({{"x", Floats({inf, 1})}}, outputs);
    ASSERT_FALSE(failed.ok());
    EXPECT_THAT(std::string(failed.status().message()), HasSubstr("'loss' is not finite"));
    EXPECT_THAT(ValueOf(*named, "W"), ElementsAre(1, 2));
  }
  EXPECT_TRUE(named->Step({{"x", Floats({1, 1})}}).ok());
}

TEST(TrainingInfo, CancelledStepChangesNothing) {
  auto model = Open(TextModel(kScale, {kAddInput}));
  const std::atomic<bool> cancel = true;
  EXPECT_FALSE(model->Step({{"x", Floats({1, 1})}}, {}, &cancel).ok());
  EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(1, 2));
}

// y = x*W with a weight that models share rather than copy; a step adds x to it.
Model LargeScale() {
  Model model = TextModel("m (float[512] x) => (float[512] y) { y = Mul(x, W) }",
                          {{"a () => (float[512] W_new) { W_new = Add(W, x) }", {{"W", "W_new"}}}});
  onnx::TensorProto* w = model.proto().mutable_graph()->add_initializer();
  TensorToProto(ScalarOf(DType::kFloat, 0, {512}), "W", w);
  return Reread(model);
}

double FirstOf(const Model& model) {
  return Values(InferenceGraph(model)->initializers.at("W"))[0];
}

TEST(TrainingInfo, StepsChangeNothingThatWasReadOrExported) {
  Model file = LargeScale();
  const Model same = file;
  const Graph graph = InferenceGraph(file).value();
  auto model = Open(std::move(file));
  const TensorMap ones = {{"x", ScalarOf(DType::kFloat, 1, {512})}};
  std::vector<Model> exported;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(model->Step(ones).ok());
    exported.push_back(*model->Export());
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(FirstOf(exported[i]), i + 1);
  EXPECT_EQ(FirstOf(same), 0);
  EXPECT_EQ(Values(graph.initializers.at("W"))[0], 0);
  // No initialization computes W, so it gets the file's value, and exports keep theirs.
  ASSERT_TRUE(model->Initialize().ok());
  EXPECT_EQ(ValueOf(*model, "W")[0], 0);
  EXPECT_EQ(FirstOf(exported[2]), 3);
  // Set from outside, too.
  const Model before = *model->Export();
  model->variables().at("W").data<float>()[0] = 9;
  EXPECT_EQ(FirstOf(before), 0);
  EXPECT_EQ(FirstOf(*model->Export()), 9);
  // Two at once, of which one is gone before the step.
  const Model kept = *model->Export();
  EXPECT_TRUE(model->Export().ok());
  ASSERT_TRUE(model->Step(ones).ok());
  EXPECT_EQ(FirstOf(kept), 9);
  EXPECT_EQ(ValueOf(*model, "W")[0], 10);
}

// The values of a file, its counters, and nothing of what happened since.
TEST(TrainingInfo, ResetGoesBackToAFile) {
  const Model start = TextModel(
      "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float[2] V = {3, 4}> { y = Mul(x, W) }",
      {{"a () => (float[2] n) { n = Add(W, x) }",
        {{"W", "n"}},
        "i () => (float[2] w) { w = RandomUniform <shape = [2]> () }",
        {{"W", "w"}}}});
  auto model = Open(start);
  const TensorMap feeds = {{"x", Floats({1, 1})}};
  ASSERT_TRUE(model->Step(feeds).ok());
  auto later = model->Export();
  ASSERT_TRUE(later.ok());
  ASSERT_TRUE(model->Initialize().ok());
  ASSERT_TRUE(model->Step(feeds).ok());
  ASSERT_TRUE(model->Reset(start).ok());
  EXPECT_EQ(ValueOf(*model, "W"), (std::vector<double>{1, 2}));
  EXPECT_EQ(model->random().step, 0u);
  ASSERT_TRUE(model->Reset(*later).ok());
  EXPECT_EQ(ValueOf(*model, "W"), (std::vector<double>{2, 3}));
  EXPECT_EQ(model->random().step, 1u);
  EXPECT_FALSE(model->Reset(TextModel("m (float[2] x) => (float[2] y) { y = Neg(x) }")).ok());
  EXPECT_EQ(ValueOf(*model, "W"), (std::vector<double>{2, 3}));
}

TEST(TrainingInfo, EvaluateChangesNothing) {
  auto model = Open(TextModel(
      "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }",
      {{"a () => (float[2] n, float l) { n = Add(W, x) l = ReduceSum <keepdims = 0> (y) }",
        {{"W", "n"}}}}));
  const TensorMap feeds = {{"x", Floats({1, 1})}};
  for (const std::vector<std::string>& outputs : {std::vector<std::string>{"l"}, {}}) {
    for (int i = 0; i < 2; ++i) {
      auto out = model->Evaluate(feeds, outputs);
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ(Values(out->at("l"))[0], 3);
      EXPECT_EQ(ValueOf(*model, "W"), (std::vector<double>{1, 2}));
      EXPECT_EQ(model->random().step, 0u);
    }
  }
}

}  // namespace onward::behaviour_test

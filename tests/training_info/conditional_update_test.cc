// SPDX-License-Identifier: Apache-2.0
// Variables that an If assigns: in place where it is due, and not touched where it is not. The
// results are those of the If as it stands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <ostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/far_training.h"
#include "tests/support/text_model.h"

namespace onward::conditional_update_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

constexpr char kHeader[] =
    "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.preview.training\" : 1, "
    "\"ai.onward\" : 1]>\n";
constexpr char kModel[] =
    "m (float[3] x) => (float[3] y) <float[3] W = {1, 2, 3}, float[3] A = {10, 20, 30}> "
    "{ y = Mul(x, W) }";

struct Row {
  std::string name;
  std::string algorithm;  // fed with x, R and the bool c
  BindingTexts bindings;
  bool opens = true;  // the If is taken apart
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

std::vector<Row> Rows() {
  return {
      {"OneBranchUpdates",
       R"(a (bool c, float R) => (float[3] W_new) { W_new = If (c) <
            then_branch = t () => (float[3] u) { u = ai.onward.SgdStep (R, W, x) },
            else_branch = e () => (float[3] k) { k = Identity (W) }> })",
       {{"W", "W_new"}}},
      {"TheOtherBranchUpdates",
       R"(a (bool c, float R) => (float[3] W_new) { W_new = If (c) <
            then_branch = t () => (float[3] k) { i = Identity (W) k = Identity (i) },
            else_branch = e () => (float[3] u) { u = ai.onward.SgdStep (R, W, x) }> })",
       {{"W", "W_new"}}},
      {"BothBranchesUpdate",
       R"(a (bool c, float R) => (float[3] W_new, float[3] A_new) { s = Add (A, x)
            W_new, A_new = If (c) <
            then_branch = t () => (float[3] u, float[3] z)
              { u = ai.onward.SgdStep (R, W, s) z = Sub (A, A) },
            else_branch = e () => (float[3] k, float[3] v) { k = Identity (W) v = Identity (s) }> })",
       {{"W", "W_new"}, {"A", "A_new"}}},
      {"HandsOnAnotherVariable",
       R"(a (bool c, float R) => (float[3] W_new, float[3] A_new) { W_new, A_new = If (c) <
            then_branch = t () => (float[3] u, float[3] v) { u = Identity (A) v = Identity (W) },
            else_branch = e () => (float[3] k, float[3] l) { k = Identity (W) l = Identity (A) }> })",
       {{"W", "W_new"}, {"A", "A_new"}}},
      {"OneValueForTwo",
       R"(a (bool c, float R) => (float[3] W_new, float[3] A_new) { W_new, A_new = If (c) <
            then_branch = t () => (float[3] u, float[3] v) { u = Add (W, x) v = Identity (u) },
            else_branch = e () => (float[3] k, float[3] l) { k = Identity (W) l = Identity (A) }> })",
       {{"W", "W_new"}, {"A", "A_new"}}},
      {"TwoIfs",
       R"(a (bool c, float R) => (float[3] W_new, float[3] A_new) { n = Not (c)
            W_new = If (c) <
              then_branch = t () => (float[3] u) { u = ai.onward.SgdStep (R, W, x) },
              else_branch = e () => (float[3] k) { k = Identity (W) }>
            A_new = If (n) <
              then_branch = t2 () => (float[3] v) { d = Mul (x, x) v = Add (A, d) },
              else_branch = e2 () => (float[3] l) { l = Identity (A) }> })",
       {{"W", "W_new"}, {"A", "A_new"}}},
      {"IfInAnIf",
       R"(a (bool c, float R) => (float[3] W_new) { zero = Constant <value = float {0}> ()
            p = Greater (R, zero) W_new = If (c) <
            then_branch = t () => (float[3] u) { u = If (p) <
              then_branch = t2 () => (float[3] v) { v = ai.onward.SgdStep (R, W, x) },
              else_branch = e2 () => (float[3] w) { w = Neg (W) }> },
            else_branch = e () => (float[3] k) { k = Identity (W) }> })",
       {{"W", "W_new"}}},
      {"ConditionBehindData",
       R"(a (bool c, float R) => (float[3] W_new) { one = Constant <value = int64 {1}> ()
            row = Constant <value_ints = [1]> () b = Reshape (c, row) at = NonZero (b) n = Size (at) d = Equal (n, one) W_new = If (d) <
            then_branch = t () => (float[3] u) { u = ai.onward.SgdStep (R, W, x) },
            else_branch = e () => (float[3] k) { k = Identity (W) }> })",
       {{"W", "W_new"}}},
      {"DrawsNumbers",
       R"(a (bool c, float R) => (float[3] W_new) { W_new = If (c) <
            then_branch = t () => (float[3] u) { r = RandomNormalLike (W) u = Add (W, r) },
            else_branch = e () => (float[3] k) { k = Identity (W) }> })",
       {{"W", "W_new"}},
       false},
      {"ResultIsReadElsewhere",
       R"(a (bool c, float R) => (float[3] W_new, float[3] A_new) { W_new = If (c) <
            then_branch = t () => (float[3] u) { u = ai.onward.SgdStep (R, W, x) },
            else_branch = e () => (float[3] k) { k = Identity (W) }> A_new = Add (A, W_new) })",
       {{"W", "W_new"}, {"A", "A_new"}},
       false},
  };
}

Model ModelOf(const std::string& algorithm, const BindingTexts& bindings) {
  return TextModel(absl::StrCat(kHeader, kModel), {{algorithm, bindings}});
}

TensorMap Feeds(bool due, std::initializer_list<float> x, float rate = 0.5f) {
  return {{"x", Floats(x)}, {"R", Tensor::Scalar<float>(rate)}, {"c", Tensor::Scalar<bool>(due)}};
}

std::string PlanOf(TrainingModel* model, const TensorMap& feeds) {
  auto executor = model->PrepareStep(0, feeds, {"y"});
  EXPECT_TRUE(executor.ok()) << executor.status();
  return executor.ok() ? (*executor)->plan().ToText() : "";
}

class ConditionalUpdates : public testing::TestWithParam<Row> {};

// With outputs named the If is taken apart; without, its results are outputs too.
TEST_P(ConditionalUpdates, GiveWhatTheIfGives) {
  auto opened = Open(ModelOf(GetParam().algorithm, GetParam().bindings));
  auto whole = Open(ModelOf(GetParam().algorithm, GetParam().bindings));
  int step = 0;
  for (const bool due : {false, true, true, false, true, false, false, true}) {
    const float v = 1 + 0.5f * static_cast<float>(step++);
    const TensorMap feeds = Feeds(due, {v, -v, 2 * v});
    auto a = opened->Step(feeds, {"y"}), b = whole->Step(feeds);
    ASSERT_TRUE(a.ok()) << a.status();
    ASSERT_TRUE(b.ok()) << b.status();
    EXPECT_TRUE(SameVariables(opened->variables(), whole->variables())) << "step " << step;
  }
}

// The plans of a device with memory of its own, too.
TEST_P(ConditionalUpdates, AreTheSameOnADevice) {
  const Far far({FarOptions{}});
  const Model model = ModelOf(GetParam().algorithm, GetParam().bindings);
  auto here = Open(model, DefaultEnvironment()), there = Open(model, *far.environment);
  int step = 0;
  for (const bool due : {false, true, true, false, true, false, false, true}) {
    const float v = 1 + 0.5f * static_cast<float>(step++);
    const TensorMap feeds = Feeds(due, {v, -v, 2 * v});
    for (TrainingModel* each : {here.get(), there.get()}) {
      const auto done = each->Step(feeds, {"y"});
      ASSERT_TRUE(done.ok()) << done.status();
    }
    EXPECT_TRUE(SameVariables(std::as_const(*there).variables(), std::as_const(*here).variables()))
        << "step " << step;
  }
}

TEST_P(ConditionalUpdates, AreTakenApart) {
  auto model = Open(ModelOf(GetParam().algorithm, GetParam().bindings), DefaultEnvironment());
  const std::string plan = PlanOf(model.get(), Feeds(true, {1, 2, 3}));
  if (absl::StrContains(plan, "then, for the types of")) return;  // of a later plan
  EXPECT_EQ(absl::StrContains(plan, "  if ") || absl::StrContains(plan, "  unless "),
            GetParam().opens)
      << plan;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ConditionalUpdates, testing::ValuesIn(Rows()),
                         [](const auto& info) { return info.param.name; });

TEST(ConditionalUpdate, WritesInPlaceAndWaitsWithAllThatOnlyItNeeds) {
  auto model = Open(ModelOf(
                        R"(a (bool c, float R) => (float[3] W_new) {
           e = Exp (x) d = Softmax (e) W_new = If (c) <
             then_branch = t () => (float[3] u) { u = ai.onward.SgdStep (R, W, d) },
             else_branch = e () => (float[3] k) { k = Identity (W) }> })",
                        {{"W", "W_new"}}),
                    DefaultEnvironment());
  const std::string plan = PlanOf(model.get(), Feeds(true, {1, 2, 3}));
  EXPECT_THAT(plan, HasSubstr("d = Softmax(e)  if c"));
  EXPECT_THAT(plan, HasSubstr("e = Exp(x)  if c"));
  EXPECT_THAT(plan, HasSubstr("commit:\n  W_new__then = SgdStep(R, W, d)  if c\n"));
}

// A condition that is a variable is what it was before the step, its new value what it will be.
TEST(ConditionalUpdate, TheConditionIsAVariableThatChanges) {
  const auto weights = [](const std::string& condition) {
    auto model = Open(TextModel(
        absl::StrCat(kHeader,
                     "m (float[3] x) => (float[3] y) <float[3] W = {1, 2, 3}, bool first = {1}> "
                     "{ y = Mul(x, W) }"),
        {{absl::StrCat("a () => (bool turned, float[3] W_new) { turned = Not (first) W_new = If (",
                       condition,
                       R"() <then_branch = t () => (float[3] u) { u = Add (W, x) },
                            else_branch = e () => (float[3] k) { k = Identity (W) }> })"),
          {{"first", "turned"}, {"W", "W_new"}}}}));
    std::vector<double> seen;
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(model->Step({{"x", Floats({1, 1, 1})}}, {"y"}).ok());
      seen.push_back(ValueOf(*model, "W")[0]);
    }
    return seen;
  };
  EXPECT_THAT(weights("first"), ElementsAre(2, 2, 3, 3));
  EXPECT_THAT(weights("turned"), ElementsAre(1, 2, 2, 3));
}

// A branch that is not taken may do what it likes.
TEST(ConditionalUpdate, OnlyWhatIsAssignedMustBeFinite) {
  const Row row = Rows()[0];
  for (const std::vector<std::string>& outputs : {std::vector<std::string>{"y"}, {}}) {
    auto model = Open(ModelOf(row.algorithm, row.bindings));
    for (int i = 0; i < 2; ++i) {
      auto idle = model->Step(Feeds(false, {1, kInf, 1}), outputs);
      EXPECT_TRUE(idle.ok()) << idle.status();
      auto refused = model->Step(Feeds(true, {1, kInf, 1}), outputs);
      EXPECT_EQ(refused.status().code(), absl::StatusCode::kOutOfRange);
      EXPECT_THAT(std::string(refused.status().message()),
                  HasSubstr("the new value of 'W' is not finite"));
    }
    EXPECT_THAT(ValueOf(*model, "W"), ElementsAre(1, 2, 3));
  }
}

// Plans for two batch sizes write the same variable: what one noted of it is void after a run in
// which it sat out and the other had written.
TEST(ConditionalUpdate, NotesOfOtherTimesAreForgotten) {
  auto model = Open(TextModel(
      absl::StrCat(kHeader,
                   "m (float[N, 2] x) => (float[N, 2] y) <float[2] W = {0, 0}> { y = Mul(x, W) }"),
      {{R"(a (bool c, float R) => (float[2] W_new) {
             axis = Constant <value_ints = [0]> () g = ReduceSum <keepdims = 0> (x, axis)
             W_new = If (c) <
               then_branch = t () => (float[2] u) { u = ai.onward.SgdStep (R, W, g) },
               else_branch = e () => (float[2] k) { k = Identity (W) }> })",
        {{"W", "W_new"}}}}));
  const auto step = [&](bool due, const Tensor& x) {
    return model
        ->Step({{"x", x}, {"R", Tensor::Scalar<float>(1)}, {"c", Tensor::Scalar<bool>(due)}}, {"y"})
        .status();
  };
  const Tensor small = Floats({1, 2}, {-1, -1}), large = Floats({1, 2}, {-1e38f, -1e38f});
  ASSERT_TRUE(step(true, small).ok());
  ASSERT_TRUE(step(true, small).ok());
  ASSERT_TRUE(step(true, Floats({2, 2}, {-1.5e38f, -1, -1.5e38f, -1})).ok());
  ASSERT_TRUE(step(false, small).ok());
  EXPECT_EQ(step(true, large).code(), absl::StatusCode::kOutOfRange);
}

TEST(ConditionalUpdate, TheConditionIsOneBool) {
  const auto error = [](const std::string& condition) {
    auto model = TrainingModel::Create(
        ModelOf(absl::StrCat(R"(a (bool c, float R) => (float[3] W_new) { )", condition,
                             R"( W_new = If (d) <
            then_branch = t () => (float[3] u) { u = Add (W, x) },
            else_branch = e () => (float[3] k) { k = Identity (W) }> })"),
                {{"W", "W_new"}}),
        DefaultEnvironment());
    if (!model.ok()) return std::string(model.status().message());
    auto step = (*model)->Step(Feeds(true, {1, 2, 3}), {"y"});
    EXPECT_FALSE(step.ok());
    return std::string(step.status().message());
  };
  EXPECT_THAT(error("zero = Constant <value = float {0}> () d = Greater (x, zero)"),
              HasSubstr("the condition 'd' of an If is bool[3], not one bool"));
  EXPECT_THAT(error("d = Identity (R)"), HasSubstr("input 0 (cond) is tensor(float)"));
}

}  // namespace onward::conditional_update_test

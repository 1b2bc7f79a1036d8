// SPDX-License-Identifier: Apache-2.0
// Variables that are assigned in some steps only, on an accelerator: bit for bit what the CPU does,
// whether a step is recorded, replayed or sat out, and nothing at all where it fails on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/plan/plan.h"
#include "environment/environment.h"
#include "tests/support/far_device.h"
#include "tests/support/far_training.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/loss_scale.h"
#include "training_info/step.h"

namespace onward::device_guard_test {

using testing::HasSubstr;

// Nothing of it is fused on the CPU, so that both compute alike.
Model Perceptron(const AuthorOptions& options) {
  const Model model = TextModel("g (float[N,4] x) => (float[N,3] y) <float[4,6] w1 = {" +
                                FarNumbers(24) + "}, float[6,3] w2 = {" + FarNumbers(18) +
                                "}> { a = MatMul(x, w1) b = Tanh(a) y = MatMul(b, w2) }");
  return MakeTrainable(model, options, DefaultEnvironment()).value().model;
}

TensorMap FeedsOf(int step, float factor) {
  Tensor x(DType::kFloat, Shape{4, 4}), label(DType::kInt64, Shape{4});
  for (int i = 0; i < 16; ++i) {
    x.data<float>()[i] = factor * static_cast<float>((i * 7 + step * 3) % 11 - 5) / 8;
  }
  for (int i = 0; i < 4; ++i) label.data<int64_t>()[i] = (i + step) % 3;
  return {{"x", x}, {"label", label}};
}

struct Row {
  std::string name;
  std::function<void(AuthorOptions*)> set;
  std::string without = "";  // an operator that the device has no kernel for
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

AuthorOptions OptionsOf(const Row& row) {
  AuthorOptions options;
  options.optimizer = OptimizerSpec{"adamw", {}};
  row.set(&options);
  return options;
}

class GuardedUpdates : public testing::TestWithParam<Row> {};

// Every fourth batch is too large for float16: its step is skipped there. At the end the device
// has recorded all there is, and only replays it.
TEST_P(GuardedUpdates, AreThoseOfTheCpu) {
  const Far far({{.without = {GetParam().without}}});
  {
    const Model model = Perceptron(OptionsOf(GetParam()));
    auto here = Open(model, DefaultEnvironment()), there = Open(model, *far.environment);
    int recordings = 0;
    for (int step = 0; step < 24; ++step) {
      if (step == 12) recordings = far.counters->recordings;
      const TensorMap feeds = FeedsOf(step, step % 4 == 2 ? 1e6f : 1.0f);
      const auto expected = here->Step(feeds, {"loss"}), found = there->Step(feeds, {"loss"});
      ASSERT_TRUE(expected.ok()) << expected.status();
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(Bytes(std::as_const(*there).Export().value()),
                Bytes(std::as_const(*here).Export().value()))
          << step;
    }
    if (const auto skipped = SkippedSteps(*here)) {
      EXPECT_GE(*skipped, 6);
    }
    EXPECT_GT(recordings, 0);
    EXPECT_EQ(far.counters->recordings, recordings);
    const auto executor = there->PrepareStep(0, FeedsOf(0, 1), {"loss"});
    ASSERT_TRUE(executor.ok()) << executor.status();
    const Plan& plan = (*executor)->plan();
    EXPECT_FALSE(plan.commits_in_stretch);
    EXPECT_THAT(plan.ToText(), HasSubstr("  if ")) << "or it shows nothing";
  }
  EXPECT_EQ(far.counters->live_bytes, 0);
}

// The k-th call fails, for every k, in steps that assign and in steps that wait.
TEST_P(GuardedUpdates, ChangeNothingWhereTheyFail) {
  const Far far({{.without = {GetParam().without}}});
  {
    const Model model = Perceptron(OptionsOf(GetParam()));
    auto expected = Open(model, *far.environment), tried = Open(model, *far.environment);
    for (int step = 0; step < 5; ++step) {
      const TensorMap feeds = FeedsOf(step, step == 2 ? 1e6f : 1.0f);
      for (int k = 1;; ++k) {
        far.counters->calls = 0;
        far.counters->fail_at = k;
        const auto result = tried->Step(feeds, {"loss"});
        far.counters->fail_at = 0;
        if (result.ok()) break;
        EXPECT_THAT(result.status().message(), HasSubstr("the far device failed"));
        ASSERT_TRUE(
            SameVariables(std::as_const(*tried).variables(), std::as_const(*expected).variables()))
            << "call " << k << " of step " << step;
      }
      ASSERT_TRUE(expected->Step(feeds, {"loss"}).ok());
      ASSERT_TRUE(
          SameVariables(std::as_const(*tried).variables(), std::as_const(*expected).variables()))
          << step;
    }
  }
  EXPECT_EQ(far.counters->live_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, GuardedUpdates,
    testing::ValuesIn(std::vector<Row>{
        {"Accumulation", [](AuthorOptions* o) { o->accumulate = 3; }},
        {"AccumulationByNorm",
         [](AuthorOptions* o) {
           o->accumulate = 2;
           o->clip_norm = 0.5;
         }},
        {"Averages",
         [](AuthorOptions* o) {
           o->accumulate = 2;
           o->ema = 0.5;
         }},
        {"ScaledLoss", [](AuthorOptions* o) { o->precision = DType::kFloat16; }},
        {"ScaledAndAccumulated",
         [](AuthorOptions* o) {
           o->precision = DType::kFloat16;
           o->accumulate = 2;
         }},
        // Optimizer and sums on the host, the rest there.
        {"UpdatesOnTheHost", [](AuthorOptions* o) { o->accumulate = 3; }, "AdamW"},
        {"SumsOnTheHost", [](AuthorOptions* o) { o->accumulate = 3; }, "Add"},
    }),
    [](const auto& info) { return info.param.name; });

// One weight that is assigned where c says so: 1 / d, and the device computes it.
Model Divides() {
  return TextModel(
      "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }",
      {{"a (bool c, float[2] d) => (float s, float[2] next) { s = ReduceSum <keepdims = 0> (w) "
        "e = Div(w, d) q = Softmax(e) next = If (c) <then_branch = t () => (float[2] u) { u = "
        "Div(q, d) }, else_branch = o () => (float[2] k) { k = Identity(w) }> }",
        {{"w", "next"}}}});
}

TensorMap Divisors(bool due, float second) {
  return {{"c", Tensor::Scalar<bool>(due)}, {"d", Floats({2, second})}, {"x", Floats({1, 1})}};
}

TEST(GuardedAssignment, IsLookedAtOnlyWhereItIsDue) {
  const Far far({FarOptions{}});
  auto model = Open(Divides(), *far.environment);
  for (int round = 0; round < 3; ++round) {
    const std::vector<double> before = ValueOf(*model, "w");
    const auto idle = model->Step(Divisors(false, 0), {"s"});
    EXPECT_TRUE(idle.ok()) << idle.status();
    EXPECT_EQ(ValueOf(*model, "w"), before);
    const auto bad = model->Step(Divisors(true, 0), {"s"});
    EXPECT_THAT(bad.status().message(), HasSubstr("the new value of 'w' is not finite"));
    EXPECT_EQ(ValueOf(*model, "w"), before);
    ASSERT_TRUE(model->Step(Divisors(true, 2), {"s"}).ok());
    EXPECT_NE(ValueOf(*model, "w"), before);
  }
}

// A stretch of the device has one guard, and one that is not due is not queued.
TEST(GuardedStretch, IsDoneAsAWholeOrNotAtAll) {
  const Far far({FarOptions{}});
  auto model = Open(Divides(), *far.environment);
  const auto executor = model->PrepareStep(0, Divisors(true, 2), {"s"});
  ASSERT_TRUE(executor.ok()) << executor.status();
  const Plan& plan = (*executor)->plan();
  int guarded = 0;
  for (const Stretch& stretch : plan.stretches) {
    guarded += !stretch.guard.always();
    for (int s = stretch.begin; s < stretch.end; ++s) {
      EXPECT_TRUE(plan.compute[s].guard == stretch.guard) << plan.ToText();
    }
  }
  EXPECT_EQ(guarded, 1) << plan.ToText();
  EXPECT_THAT(plan.ToText(), HasSubstr("q = Softmax(e)  @far  if c"));
  // What is fed is on its way before anybody knows.
  EXPECT_THAT(plan.ToText(), HasSubstr("d = Copy(d)  @cpu -> far\n"));
  for (int step = 0; step < 6; ++step) {
    const bool due = step % 2 == 1;
    const int kernels = far.counters->kernels;
    ASSERT_TRUE(model->Step(Divisors(due, 2), {"s"}).ok());
    EXPECT_EQ(far.counters->kernels - kernels, due ? 4 : 1) << step;
  }
}

}  // namespace onward::device_guard_test

// SPDX-License-Identifier: Apache-2.0
// One update from several calls of a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/validate.h"

namespace onward::accumulate_test {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kCalls = 4, kPart = 8, kWhole = kCalls * kPart;

constexpr char kLinear[] = R"(
  m (float[N, 3] x) => (float[N, 2] y) <float[3, 2] W = {1, 2, -3, 4, 0, 5}, float[2] b = {1, -1}>
  { y = Gemm(x, W, b) })";

constexpr char kPerceptron[] = R"(
  m (float[N, 3] x) => (float[N, 2] y)
  <float[3, 4] W1 = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.1, -0.3, 0.2, 0.6, -0.5},
   float[4] b1 = {0.1, 0.2, 0.3, 0.4},
   float[4, 2] W2 = {0.7, -0.1, 0.2, 0.3, -0.4, 0.5, 0.6, -0.2}, float[2] b2 = {0, 0}> {
    p = Gemm(x, W1, b1)
    h = Tanh(p)
    y = Gemm(h, W2, b2)
  })";

// Whole numbers, so that sums of products are exact.
Tensor Numbers(const Shape& shape, int seed) {
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < t.elements(); ++i) {
    t.data<float>()[i] = static_cast<float>((i * 7 + seed * 11 + i * i % 5) % 9 - 4);
  }
  return t;
}

Tensor Rows(const Tensor& t, int64_t begin, int64_t count) {
  const int64_t width = t.elements() / t.shape()[0];
  Shape shape = t.shape();
  shape[0] = count;
  return Tensor::FromValues<float>(
      shape, absl::MakeConstSpan(t.data<float>() + begin * width, count * width));
}

AuthorOptions Options(const std::string& optimizer) {
  AuthorOptions options;
  options.loss = ParseLoss("mse").value();
  options.optimizer = ParseOptimizer(optimizer).value();
  return options;
}

std::unique_ptr<TrainingModel> Made(const char* text, const AuthorOptions& options) {
  auto made = MakeTrainable(TextModel(text), options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  auto findings = CheckModel(made->model, DefaultEnvironment());
  EXPECT_TRUE(findings.ok()) << findings.status();
  EXPECT_THAT(*findings, IsEmpty());
  return Open(Reread(made->model));
}

struct Pair {
  std::unique_ptr<TrainingModel> whole, parts;

  // `parts` takes in pieces what `whole` takes at once.
  void Update(int number) {
    const Tensor x = Numbers({kWhole, 3}, number), label = Numbers({kWhole, 2}, number + 50);
    auto once = whole->Step({{"x", x}, {"label", label}}, {"loss"});
    ASSERT_TRUE(once.ok()) << once.status();
    double loss = 0;
    for (int i = 0; i < kCalls; ++i) {
      auto part = parts->Step(
          {{"x", Rows(x, i * kPart, kPart)}, {"label", Rows(label, i * kPart, kPart)}}, {"loss"});
      ASSERT_TRUE(part.ok()) << part.status();
      loss += Values(part->at("loss"))[0] / kCalls;
    }
    EXPECT_NEAR(loss, Values(once->at("loss"))[0], 1e-5 * std::abs(loss));
  }
};

Pair MadePair(const char* text, AuthorOptions options) {
  Pair pair;
  pair.whole = Made(text, options);
  options.accumulate = kCalls;
  pair.parts = Made(text, options);
  return pair;
}

TEST(Accumulation, IsExactWhereSumsAre) {
  Pair pair = MadePair(kLinear, Options("sgd:lr=0.03125"));
  for (int i = 0; i < 2; ++i) pair.Update(i);
  for (const char* name : {"W", "b"}) {
    EXPECT_TRUE(Identical(pair.whole->variables().at(name), pair.parts->variables().at(name)));
  }
}

class AccumulatedBy : public testing::TestWithParam<std::string> {};

TEST_P(AccumulatedBy, FollowsOneLargeBatch) {
  AuthorOptions options = Options(GetParam());
  options.clip_norm = 0.5;
  options.schedule = ParseSchedule("linear:total=10,warmup=2").value();
  options.groups = {ParseGroup("b*:lr=2x").value()};
  Pair pair = MadePair(kPerceptron, options);
  const std::vector<double> before = ValueOf(*pair.whole, "W1");
  for (int i = 0; i < 3; ++i) pair.Update(i);
  EXPECT_NE(before, ValueOf(*pair.whole, "W1"));
  for (const char* name : {"W1", "b1", "W2", "b2"}) {
    const std::vector<double> a = ValueOf(*pair.whole, name), b = ValueOf(*pair.parts, name);
    for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 2e-6) << name << " " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Accumulation, AccumulatedBy, testing::ValuesIn(OptimizerNames()),
                         [](const auto& info) { return info.param; });

TEST(Accumulation, CountsUpdates) {
  AuthorOptions options = Options("adamw");
  options.schedule = ParseSchedule("exponential:gamma=0.5").value();
  options.accumulate = 3;
  auto model = Made(kLinear, options);
  std::vector<double> rates, steps, calls;
  for (int i = 0; i < 7; ++i) {
    const std::vector<double> weights = ValueOf(*model, "W"),
                              moments = ValueOf(*model, "W__first_moment");
    auto out =
        model->Step({{"x", Numbers({4, 3}, i)}, {"label", Numbers({4, 2}, i)}}, {"learning_rate"});
    ASSERT_TRUE(out.ok()) << out.status();
    rates.push_back(Values(out->at("learning_rate"))[0] / 1e-3);
    steps.push_back(ValueOf(*model, "onward_step")[0]);
    calls.push_back(ValueOf(*model, "onward_accumulated")[0]);
    const bool due = i % 3 == 2;
    EXPECT_EQ(weights == ValueOf(*model, "W"), !due) << i;
    EXPECT_EQ(moments == ValueOf(*model, "W__first_moment"), !due) << i;
    if (due) {
      EXPECT_THAT(ValueOf(*model, "W__sum"), Each(0)) << i;
    }
  }
  EXPECT_THAT(rates, testing::Pointwise(testing::DoubleNear(1e-6), {1., 1., 1., .5, .5, .5, .25}));
  EXPECT_THAT(steps, ElementsAre(1, 1, 2, 2, 2, 3, 3));
  EXPECT_THAT(calls, ElementsAre(1, 2, 0, 1, 2, 0, 1));
}

TEST(Accumulation, RunningStatisticsChangeAtEveryCall) {
  AuthorOptions options = Options("sgd");
  options.accumulate = 2;
  auto model = Made(R"(m (float[N, 3] x) => (float[N, 2] y)
      <float[3, 2] W = {1, 2, -3, 4, 0, 5}, float[2] s = {1, 1}, float[2] b = {0, 0},
       float[2] mean = {0, 0}, float[2] var = {1, 1}>
      { h = MatMul(x, W) y = BatchNormalization(h, s, b, mean, var) })",
                    options);
  std::vector<double> before = ValueOf(*model, "mean");
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(
        model->Step({{"x", Numbers({4, 3}, i)}, {"label", Numbers({4, 2}, i)}}, {"loss"}).ok());
    EXPECT_NE(before, ValueOf(*model, "mean"));
    before = ValueOf(*model, "mean");
  }
}

// What is not due is not computed: neither the mean, nor the clipping, nor the optimizer.
TEST(Accumulation, TheUpdateWaits) {
  AuthorOptions options = Options("adamw");
  options.accumulate = 2;
  options.clip_norm = 1;
  auto model = Made(kPerceptron, options);
  auto executor =
      model->PrepareStep(0, {{"x", Numbers({4, 3}, 0)}, {"label", Numbers({4, 2}, 0)}}, {"loss"});
  ASSERT_TRUE(executor.ok()) << executor.status();
  const Plan& plan = (*executor)->plan();
  int clipping = 0;
  for (const PlanStep& step : plan.compute) {
    const bool clips = absl::StrContains(step.node.op_type, "ReduceSumSquare");
    clipping += clips ? 1 : 0;
    EXPECT_FALSE(clips && step.guard.always());
    EXPECT_NE(step.node.op_type, "If");
  }
  EXPECT_EQ(clipping, 4);
  // The counter is an integer, which the host adds to beside a device.
  EXPECT_EQ(plan.commit.size(), OnDevice() ? 2u : 1u) << plan.ToText();
  EXPECT_EQ(absl::c_count_if(plan.commit,
                             [](const PlanStep& s) { return s.node.op_type == "AdamWStep"; }),
            1);
  for (const PlanStep& step : plan.commit) EXPECT_FALSE(step.guard.always());
}

TEST(Accumulation, NeedsAtLeastOneCall) {
  AuthorOptions options;
  options.accumulate = 0;
  auto made = MakeTrainable(TextModel(kLinear), options, DefaultEnvironment());
  EXPECT_THAT(std::string(made.status().message()), testing::HasSubstr("accumulate is 0"));
}

}  // namespace onward::accumulate_test

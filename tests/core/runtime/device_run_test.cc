// SPDX-License-Identifier: Apache-2.0
// How a plan runs on an accelerator: recorded once, queued as a whole, waited for once; what is fed
// goes there meanwhile; and a step that fails on the way changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/runtime/plan/plan.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/far_device.h"
#include "tests/support/far_training.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"
#include "training_info/step.h"

namespace onward::device_run_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Graph GraphOf(const std::string& text, const Environment& environment) {
  return RunnableGraph(TextModel(text), environment).value();
}

// The lines of a plan's text that name its stretches and phases.
std::vector<std::string> Headings(const std::string& text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!line.empty() && line.back() == ':') lines.emplace_back(line);
  }
  return lines;
}

std::string TextOfStep(TrainingModel& model) {
  return (*model.PrepareStep(0, FarBatch(0), {}))->plan().ToText();
}

TEST(DeviceGraphs, HoldTheWholeStep) {
  const Far far({FarOptions{}});
  auto model = Open(FarNetwork(), *far.environment);
  const std::vector<std::string> headings = Headings(TextOfStep(*model));
  // The counter is the host's.
  ASSERT_EQ(headings.size(), 4u) << TextOfStep(*model);
  EXPECT_THAT(headings[1], StartsWith("host, "));
  EXPECT_THAT(headings[2], StartsWith("graph 1 of far, "));
  EXPECT_EQ(headings[3], "commit, in graph 1:");
  for (int step = 0; step < 5; ++step) {
    const int recordings = far.counters->recordings, replays = far.counters->replays,
              waits = far.counters->waits;
    ASSERT_TRUE(model->Step(FarBatch(step)).ok());
    // The first run records what it assigns alone, the second one all, those after it nothing.
    EXPECT_EQ(far.counters->recordings - recordings, step < 2 ? 1 : 0) << step;
    EXPECT_EQ(far.counters->replays - replays, 1) << step;
    EXPECT_EQ(far.counters->waits - waits, 1) << step;
  }
}

TEST(DeviceGraphs, AreSplitByTheHost) {
  const Far far({{.without = {"Erf"}}});
  const Graph graph = GraphOf(
      "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = MatMul(x, w) b = Erf(a) y = "
      "MatMul(b, w) }",
      *far.environment);
  std::string text;
  CompileOptions options = far.environment->compile_options();
  options.planned = [&](const Plan& plan) { text = plan.ToText(); };
  Session session(graph, options);
  for (int run = 0; run < 4; ++run) {
    TensorMap feeds = {{"x", Tensor::Zeros(DType::kFloat, {4, 8})},
                       {"w", Tensor::Zeros(DType::kFloat, {8, 8})}};
    for (int i = 0; i < 32; ++i) feeds["x"].data<float>()[i] = static_cast<float>(i % 5 + run) / 9;
    for (int i = 0; i < 64; ++i) feeds["w"].data<float>()[i] = static_cast<float>(i % 7) / 8;
    const auto found = session.Run(feeds, nullptr);
    const auto expected =
        Session(graph, DefaultEnvironment().compile_options()).Run(feeds, nullptr);
    ASSERT_TRUE(found.ok() && expected.ok()) << found.status();
    EXPECT_TRUE(Identical(found->at("y"), expected->at("y"))) << run;
  }
  EXPECT_THAT(Headings(text), ElementsAre("compute:", "graph 1 of far, 4 steps:", "host, 1 step:",
                                          "graph 2 of far, 3 steps:", "commit:"))
      << text;
  EXPECT_EQ(far.counters->recordings, 2);
  EXPECT_EQ(far.counters->replays, 2 * 3);
}

// What is fed is there before what the host computes, whatever is read first: the copy of h, which
// gives a type alone once its reader is part of a chain, must not come to lie where w is.
TEST(DeviceGraphs, BeginWithWhatIsFed) {
  const Far far({{.without = {"Erf"}}});
  const Graph graph = GraphOf(
      "g (double[4,4] x, float[4,4] z, double[4,4] w) => (double[4,4] y, double[4,4] h) { h = "
      "Erf(x) a = Abs(z) c = CastLike(a, h) m = MatMul(w, w) y = Add(m, c) }",
      *far.environment);
  std::string text;
  CompileOptions options = far.environment->compile_options();
  options.planned = [&](const Plan& plan) { text = plan.ToText(); };
  Session session(graph, options);
  TensorMap feeds = {{"x", Tensor::Zeros(DType::kDouble, {4, 4})},
                     {"z", Tensor::Zeros(DType::kFloat, {4, 4})},
                     {"w", Tensor::Zeros(DType::kDouble, {4, 4})}};
  for (int i = 0; i < 16; ++i) {
    feeds["x"].data<double>()[i] = i % 3;
    feeds["z"].data<float>()[i] = static_cast<float>(i % 5 - 2);
    feeds["w"].data<double>()[i] = i % 7;
  }
  const auto expected = Session(graph, DefaultEnvironment().compile_options()).Run(feeds, nullptr);
  for (int run = 0; run < 3; ++run) {
    const auto found = session.Run(feeds, nullptr);
    ASSERT_TRUE(found.ok() && expected.ok()) << found.status();
    EXPECT_TRUE(Identical(found->at("y"), expected->at("y"))) << run << "\n" << text;
  }
  EXPECT_LT(text.find("  w = Copy(w)"), text.find("  h = Copy(h)")) << text;
}

// What a step brings to the host is there for the next one, also where each is waited for.
TEST(DeviceGraphs, AreProfiledStepByStep) {
  const Far far({{.without = {"Erf"}}});
  const Graph graph = GraphOf(
      "g (float[4,8] x, float[8,8] w) => (float[4,8] y) { a = MatMul(x, w) b = Erf(a) y = "
      "MatMul(b, w) }",
      *far.environment);
  Session there(graph, far.environment->compile_options());
  Session here(graph, DefaultEnvironment().compile_options());
  for (int run = 0; run < 3; ++run) {
    TensorMap feeds = {{"x", Tensor::Zeros(DType::kFloat, {4, 8})},
                       {"w", Tensor::Zeros(DType::kFloat, {8, 8})}};
    for (int i = 0; i < 32; ++i) feeds["x"].data<float>()[i] = static_cast<float>(i % 5 + run) / 9;
    for (int i = 0; i < 64; ++i) feeds["w"].data<float>()[i] = static_cast<float>(i % 7) / 8;
    int steps = 0;
    RunOptions options;
    options.on_step = [&](const PlanStep&, int64_t) { ++steps; };
    const auto found = there.Run(feeds, nullptr, options), expected = here.Run(feeds, nullptr);
    ASSERT_TRUE(found.ok() && expected.ok()) << found.status();
    EXPECT_TRUE(Identical(found->at("y"), expected->at("y"))) << run;
    EXPECT_EQ(steps, 8);
  }
}

TEST(DeviceGraphs, AreMadeAgainForOtherAddresses) {
  const Far far({FarOptions{}});
  auto here = Open(FarNetwork()), there = Open(FarNetwork(), *far.environment);
  for (int step = 0; step < 6; ++step) {
    ASSERT_TRUE(here->Step(FarBatch(step)).ok());
    ASSERT_TRUE(there->Step(FarBatch(step)).ok());
    // Whoever may have changed the variables makes the device read them again, to the same place.
    if (step == 3) {
      here->variables();
      there->variables();
    }
  }
  EXPECT_EQ(far.counters->recordings, 2);
  for (const auto& [name, tensor] : std::as_const(*here).variables()) {
    EXPECT_THAT(ValueOf(*there, name),
                testing::Pointwise(testing::DoubleNear(1e-5), Values(tensor)))
        << name;
  }
}

// A step fails at its k-th call, for every k, when it is run for the first, the second and the
// third time.
TEST(DeviceFaults, ChangeNothing) {
  const Far far({FarOptions{}});
  {
    auto expected = Open(FarNetwork(), *far.environment);
    auto model = Open(FarNetwork(), *far.environment);
    for (int step = 0; step < 3; ++step) {
      int failures = 0;
      for (bool failed = true; failed;) {
        far.counters->calls = 0;
        far.counters->fail_at = failures + 1;
        const auto result = model->Step(FarBatch(step));
        far.counters->fail_at = 0;
        failed = !result.ok();
        if (!failed) break;
        ++failures;
        EXPECT_THAT(result.status().message(), HasSubstr("the far device failed"));
        ASSERT_TRUE(
            SameVariables(std::as_const(*model).variables(), std::as_const(*expected).variables()))
            << "call " << failures << " of step " << step;
      }
      EXPECT_GT(failures, step == 2 ? 3 : 50);
      ASSERT_TRUE(expected->Step(FarBatch(step)).ok());
      ASSERT_TRUE(
          SameVariables(std::as_const(*model).variables(), std::as_const(*expected).variables()))
          << step;
    }
  }
  EXPECT_EQ(far.counters->live_bytes, 0);
}

// One weight; the step divides by what it is fed.
Model Divides(const std::string& target) {
  return TextModel(
      "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }",
      {{absl::StrCat("a (float[2] d) => (float loss, float[2] next) { next = Div(w, d) s = "
                     "ReduceSum <keepdims = 0> (w) loss = ",
                     target, " }"),
        {{"w", "next"}}}});
}

TEST(DeviceRuns, AssignNothingThatIsNotFinite) {
  const Far far({FarOptions{}});
  auto model = Open(Divides("Identity(s)"), *far.environment);
  for (int step = 0; step < 4; ++step) {
    const std::vector<double> before = ValueOf(*model, "w");
    const auto bad = model->Step({{"d", Floats({2, 0})}, {"x", Floats({1, 1})}});
    EXPECT_THAT(bad.status().message(), HasSubstr("the new value of 'w' is not finite"));
    EXPECT_EQ(ValueOf(*model, "w"), before) << step;
    ASSERT_TRUE(model->Step({{"d", Floats({2, 2})}, {"x", Floats({1, 1})}}).ok());
    EXPECT_EQ(ValueOf(*model, "w")[0], before[0] / 2) << step;
  }
}

TEST(DeviceRuns, FindWhatIsFedOnTheWay) {
  const Far far({FarOptions{}});
  auto here = Open(FarNetwork()), there = Open(FarNetwork(), *far.environment);
  std::vector<TensorMap> batches;
  for (int step = 0; step < 6; ++step) batches.push_back(FarBatch(step));
  for (int step = 0; step < 6; ++step) {
    int kernels = -1;
    if (step < 5) {
      there->set_meanwhile([&] {
        const int before = far.counters->kernels;
        ASSERT_TRUE(there->Stage(batches[step + 1]).ok());
        // Nothing of the step is done yet: the host has not waited.
        kernels = far.counters->kernels - before;
      });
    }
    const auto expected = here->Step(batches[step]), found = there->Step(batches[step]);
    ASSERT_TRUE(expected.ok() && found.ok()) << found.status();
    EXPECT_EQ(kernels, step < 5 ? 0 : -1) << step;
    for (const auto& [name, tensor] : *expected) {
      EXPECT_THAT(Values(found->at(name)),
                  testing::Pointwise(testing::DoubleNear(1e-5), Values(tensor)))
          << name << " in step " << step;
    }
  }
  // A step that is fed something else than what was put there takes what it is fed.
  TensorMap other = FarBatch(7);
  ASSERT_TRUE(there->Stage(FarBatch(8)).ok());
  const auto expected = here->Step(other), found = there->Step(other);
  ASSERT_TRUE(expected.ok() && found.ok());
  for (const auto& [name, tensor] : *expected) {
    EXPECT_THAT(Values(found->at(name)),
                testing::Pointwise(testing::DoubleNear(1e-5), Values(tensor)))
        << name;
  }
}

}  // namespace onward::device_run_test

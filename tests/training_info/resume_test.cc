// SPDX-License-Identifier: Apache-2.0
// Six steps are the same, bit for bit, as three, a file, and three more: with every optimizer
// and every schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/loss_scale.h"

namespace onward::resume_test {

Model Perceptron() {
  return TextModel(R"(
    m (float[N, 2] x) => (float[N, 2] y)
    <float[2, 3] W1 = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6}, float[3] b1 = {0.1, 0.2, 0.3},
     float[3, 2] W2 = {0.7, -0.1, 0.2, 0.3, -0.4, 0.5}, float[2] b2 = {0, 0}> {
      p = Gemm(x, W1, b1)
      h = Tanh(p)
      y = Gemm(h, W2, b2)
    })");
}

TensorMap Feeds(int i) {
  const float v = 1 + 0.25f * static_cast<float>(i);
  return {{"x", Floats({4, 2}, {v, 2, -1, 0.5, 3, -v, 0.25, 1})}, {"label", Int64s({0, 1, 1, 0})}};
}

void Train(TrainingModel* model, int from, int to) {
  for (int i = from; i < to; ++i) {
    const auto out = model->Step(Feeds(i), {"loss"});
    ASSERT_TRUE(out.ok()) << out.status();
  }
}

void ExpectResumes(const AuthorOptions& options) {
  auto made = MakeTrainable(Perceptron(), options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  auto through = Open(Reread(made->model)), first = Open(Reread(made->model));
  Train(through.get(), 0, 6);
  EXPECT_FALSE(SameVariables(first->variables(), through->variables()));
  Train(first.get(), 0, 3);
  auto exported = first->Export();
  ASSERT_TRUE(exported.ok()) << exported.status();
  auto second = Open(Reread(*exported));
  Train(second.get(), 3, 6);
  EXPECT_TRUE(SameVariables(through->variables(), second->variables()));
  auto once = through->Export(), again = second->Export();
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_EQ(Bytes(*once), Bytes(*again));
}

std::vector<std::string> AllOptimizers() {
  std::vector<std::string> specs = OptimizerNames();
  specs.insert(specs.end(), {"sgd:momentum=0.9,nesterov=1", "adam:amsgrad=1", "adamw:amsgrad=1",
                             "rmsprop:centered=1,momentum=0.5", "muon:nesterov=0"});
  return specs;
}

class EveryOptimizer : public testing::TestWithParam<std::string> {};

TEST_P(EveryOptimizer, Resumes) {
  AuthorOptions options;
  options.optimizer = ParseOptimizer(GetParam()).value();
  options.schedule = ParseSchedule("linear:total=10,warmup=2").value();
  ExpectResumes(options);
  options.gradient = GradientForm::kExpanded;
  ExpectResumes(options);
}

INSTANTIATE_TEST_SUITE_P(Resume, EveryOptimizer, testing::ValuesIn(AllOptimizers()),
                         [](const auto& info) { return std::to_string(info.index); });

class EverySchedule : public testing::TestWithParam<const char*> {};

TEST_P(EverySchedule, Resumes) {
  AuthorOptions options;
  options.schedule = ParseSchedule(GetParam()).value();
  ExpectResumes(options);
}

const char* const kSchedules[] = {"constant",
                                  "constant:warmup=4",
                                  "cosine:total=8,warmup=2",
                                  "cosine_restarts:period=2,factor=2",
                                  "exponential:gamma=0.8",
                                  "linear:total=8",
                                  "multistep:at=2/4,factor=0.5",
                                  "onecycle:total=8,max=0.1",
                                  "onecycle:total=8,three_phase=1,warmup=1",
                                  "polynomial:total=8,power=2",
                                  "reduce_on_plateau:warmup=2",
                                  "step:every=2"};

TEST(Schedules, AreInTheTable) {
  for (const std::string& name : ScheduleNames()) {
    EXPECT_THAT(kSchedules, testing::Contains(testing::StartsWith(name))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Resume, EverySchedule, testing::ValuesIn(kSchedules),
                         [](const auto& info) { return std::to_string(info.index); });

struct Extras {
  std::string precision;
  int64_t accumulate;
  double ema, clip_norm;
  GradientForm gradient;
};

std::vector<Extras> AllExtras() {
  std::vector<Extras> all;
  for (const char* precision : {"", "bfloat16", "float16"}) {
    for (const int64_t accumulate : {1, 2}) {
      for (const double ema : {0., 0.9}) {
        for (const double clip : {0., 0.5}) {
          for (const GradientForm form : {GradientForm::kOperator, GradientForm::kExpanded}) {
            all.push_back({precision, accumulate, ema, clip, form});
          }
        }
      }
    }
  }
  return all;
}

class Combination : public testing::TestWithParam<Extras> {};

// Three of six calls end in the middle of an accumulation.
TEST_P(Combination, Resumes) {
  const Extras& extras = GetParam();
  AuthorOptions options;
  if (!extras.precision.empty()) {
    options.precision = extras.precision == "float16" ? DType::kFloat16 : DType::kBFloat16;
  }
  options.accumulate = extras.accumulate;
  options.ema = extras.ema;
  options.clip_norm = extras.clip_norm;
  options.gradient = extras.gradient;
  ExpectResumes(options);
}

INSTANTIATE_TEST_SUITE_P(Resume, Combination, testing::ValuesIn(AllExtras()),
                         [](const auto& info) { return std::to_string(info.index); });

// The factor of the rate is written behind the If that waits for an update.
TEST(Plateau, ResumesInTheMiddleOfAnAccumulation) {
  AuthorOptions options;
  options.schedule = ParseSchedule("reduce_on_plateau").value();
  options.accumulate = 2;
  options.ema = 0.9;
  ExpectResumes(options);
}

// The scale is on its way down when the file is written: steps before and after it overflow.
TEST(LossScaling, ResumesAmongOverflows) {
  AuthorOptions options;
  options.precision = DType::kFloat16;
  options.accumulate = 2;
  options.ema = 0.9;
  auto made = MakeTrainable(Perceptron(), options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  auto start = Open(Reread(made->model));
  *start->variables().at("onward_loss_scale").data<float>() = std::ldexp(1.f, 22);
  const Model large = start->Export().value();
  auto through = Open(Reread(large)), first = Open(Reread(large));
  Train(through.get(), 0, 16);
  Train(first.get(), 0, 3);
  EXPECT_EQ(SkippedSteps(*first), 3);
  auto second = Open(Reread(first->Export().value()));
  Train(second.get(), 3, 16);
  EXPECT_GT(*SkippedSteps(*second), 3);
  EXPECT_LT(*SkippedSteps(*second), 14);
  EXPECT_EQ(Bytes(through->Export().value()), Bytes(second->Export().value()));
}

TEST(Groups, Resume) {
  AuthorOptions options;
  options.groups = {ParseGroup("W1:lr=10x").value(), ParseGroup("b*:lr=0.01,beta1=0.5").value()};
  options.no_decay = {"b*"};
  options.clip_norm = 1;
  options.clip_value = 0.5;
  options.clip_adaptive = 0.1;
  ExpectResumes(options);
}

}  // namespace onward::resume_test

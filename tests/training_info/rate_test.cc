// SPDX-License-Identifier: Apache-2.0
// The learning rate of a file that is trainable already.
#include "training_info/rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/validate.h"

namespace onward::rate_test {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr char kModel[] = R"(
  m (float[N, 2] x) => (float[N, 1] y) <float[2, 1] W = {1, 2}, float[1] b = {0.5}> {
    p = MatMul(x, W)
    y = Add(p, b)
  })";

Model Made(const char* optimizer, const char* schedule, const char* group = nullptr) {
  AuthorOptions options;
  options.loss = {"mse", {}};
  options.optimizer = ParseOptimizer(optimizer).value();
  options.schedule = ParseSchedule(schedule).value();
  if (group != nullptr) options.groups = {ParseGroup(group).value()};
  auto made = MakeTrainable(TextModel(kModel), options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  return Reread(made->model);
}

// The rates of the next steps.
std::vector<float> Rates(TrainingModel* model, int steps) {
  std::vector<float> rates;
  for (int i = 0; i < steps; ++i) {
    auto out =
        model->Step({{"x", Floats({1, 2}, {1, 2})}, {"label", Floats({1, 1}, {1})}}, {kRateOutput});
    EXPECT_TRUE(out.ok()) << out.status();
    if (out.ok()) rates.push_back(*out->at(kRateOutput).data<float>());
  }
  return rates;
}

void ExpectSound(const Model& model) {
  const auto findings = CheckModel(model, DefaultEnvironment());
  ASSERT_TRUE(findings.ok()) << findings.status();
  EXPECT_TRUE(findings->empty()) << findings->front().ToString();
}

TEST(Rate, IsStoredAsItWasChosen) {
  const RateRecipe rate =
      StoredRate(Made("sgd:lr=0.123456789", "multistep:at=2/3,factor=0.5")).value();
  EXPECT_EQ(OptimizerChoiceText(rate.optimizer), "sgd:lr=0.123456789");
  EXPECT_EQ(ScheduleText(rate.schedule), "multistep:at=2/3,factor=0.5");
  EXPECT_FALSE(StoredRate(TextModel(kModel)).ok());
}

TEST(RateFactor, OfOneChangesNoBit) {
  for (const char* optimizer : {"sgd:lr=0.1", "adam:lr=0.1", "adamw:lr=0.1"}) {
    Model changed = Made(optimizer, "cosine:total=9,warmup=2");
    const auto plain = Open(changed);
    ASSERT_TRUE(AddRateFactor(DefaultEnvironment(), &changed).ok());
    changed = Reread(changed);
    ExpectSound(changed);
    const auto scaled = Open(changed);
    ASSERT_TRUE(HasRateFactor(*scaled));
    EXPECT_EQ(Rates(plain.get(), 6), Rates(scaled.get(), 6));
    EXPECT_EQ(ValueOf(*plain, "W"), ValueOf(*scaled, "W")) << optimizer;
    // A second time there is nothing to do.
    const std::string before = Bytes(changed);
    ASSERT_TRUE(AddRateFactor(DefaultEnvironment(), &changed).ok());
    EXPECT_EQ(Bytes(changed), before);
  }
}

TEST(RateFactor, ScalesAndIsKept) {
  Model model = Made("sgd:lr=0.1", "constant");
  ASSERT_TRUE(AddRateFactor(DefaultEnvironment(), &model).ok());
  auto training = Open(model);
  EXPECT_EQ(RateFactor(*training), 1);
  SetRateFactor(0.25, training.get());
  EXPECT_THAT(Rates(training.get(), 2), ElementsAre(0.025f, 0.025f));
  const auto reopened = Open(Reread(training->Export().value()));
  EXPECT_EQ(RateFactor(*reopened), 0.25);
  EXPECT_THAT(Rates(reopened.get(), 1), ElementsAre(0.025f));
}

TEST(ReplaceRate, GoesOnFromTheStepThatIsReached) {
  for (const char* optimizer : {"sgd:lr=0.1", "adam:lr=0.1"}) {
    auto begun = Open(Made(optimizer, "constant"));
    EXPECT_THAT(Rates(begun.get(), 2), ElementsAre(0.1f, 0.1f));
    Model model = begun->Export().value();
    ASSERT_TRUE(
        ReplaceRate(0.4, ParseSchedule("linear:total=8").value(), DefaultEnvironment(), &model)
            .ok());
    model = Reread(model);
    ExpectSound(model);
    EXPECT_THAT(Rates(Open(model).get(), 3),
                Pointwise(FloatNear(1e-7f), std::vector<float>{0.3f, 0.25f, 0.2f}));
    EXPECT_THAT(OptimizerChoiceText(StoredRate(model)->optimizer), HasSubstr("lr=0.4"));
    ASSERT_TRUE(
        ReplaceRate(0.2, ParseSchedule("constant").value(), DefaultEnvironment(), &model).ok());
    EXPECT_THAT(Rates(Open(Reread(model)).get(), 1), ElementsAre(0.2f));
  }
}

TEST(ReplaceRate, GroupsKeepTheirRatio) {
  Model model = Made("sgd:lr=0.1", "constant", "b:lr=10x");
  ASSERT_TRUE(
      ReplaceRate(0.01, ParseSchedule("constant").value(), DefaultEnvironment(), &model).ok());
  const auto changed = Open(model), made = Open(Made("sgd:lr=0.01", "constant", "b:lr=10x"));
  Rates(changed.get(), 3);
  Rates(made.get(), 3);
  EXPECT_EQ(ValueOf(*changed, "b"), ValueOf(*made, "b"));
}

TEST(ReplaceRate, PlateauBringsItsFactor) {
  Model model = Made("sgd:lr=0.1", "constant");
  ASSERT_TRUE(
      ReplaceRate(0.1, ParseSchedule("reduce-on-plateau").value(), DefaultEnvironment(), &model)
          .ok());
  EXPECT_TRUE(HasRateFactor(*Open(Reread(model))));
  EXPECT_TRUE(HasRateFactor(*Open(Made("sgd:lr=0.1", "reduce_on_plateau"))));
}

// The scaled loss is named by the Gradient node alone, which reads nothing of it.
TEST(ReplaceRate, KeepsWhatGradientsName) {
  AuthorOptions options;
  options.loss = {"mse", {}};
  options.optimizer = {"sgd", {{"lr", 0.125}}};
  options.precision = DType::kFloat16;
  Model model = MakeTrainable(TextModel(kModel), options, DefaultEnvironment()).value().model;
  ASSERT_TRUE(
      ReplaceRate(0.5, ParseSchedule("reduce_on_plateau").value(), DefaultEnvironment(), &model)
          .ok());
  ExpectSound(Reread(model));
  EXPECT_THAT(Rates(Open(Reread(model)).get(), 2), ElementsAre(0.5f, 0.5f));
  options.schedule = ParseSchedule("reduce_on_plateau").value();
  const Model planned =
      MakeTrainable(TextModel(kModel), options, DefaultEnvironment()).value().model;
  EXPECT_THAT(Rates(Open(Reread(planned)).get(), 1), ElementsAre(0.125f));
}

TEST(ReplaceRate, RefusesFilesOfOthers) {
  Model other = TextModel(kModel, {{.algorithm = "a () => (float[2, 1] new) <float two = {2}> "
                                                 "{ new = Mul(W, two) }",
                                    .update = {{"W", "new"}}}});
  const absl::Status status = AddRateFactor(DefaultEnvironment(), &other);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no value 'learning_rate'"));
  Model taken = Made("sgd", "constant");
  taken.SetMetadata(kMetaSchedule, "wave");
  EXPECT_THAT(std::string(StoredRate(taken).status().message()), HasSubstr("onward.schedule"));
}

}  // namespace onward::rate_test

// SPDX-License-Identifier: Apache-2.0
// Moving averages of weights: kept by the file, exported and evaluated instead of the weights.
#include "training_info/averages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/export.h"
#include "training_info/validate.h"

namespace onward::averages_test {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

constexpr char kNormalized[] = R"(
  m (float[N, 3] x) => (float[N, 2] y)
  <float[3, 2] W = {1, 2, -3, 4, 0, 5}, float[2] s = {1, 1}, float[2] b = {0, 0},
   float[2] mean = {0, 0}, float[2] var = {1, 1}>
  { h = MatMul(x, W) y = BatchNormalization(h, s, b, mean, var) })";

TensorMap Feeds(int i) {
  const float v = 1 + 0.5f * static_cast<float>(i);
  return {{"x", Floats({4, 3}, {v, 2, -1, 0.5, 3, -v, 0.25, 1, 2, -2, v, 1})},
          {"label", Int64s({0, 1, 1, 0})}};
}

AuthorOptions Options() {
  AuthorOptions options;
  options.optimizer = ParseOptimizer("sgd:lr=0.1").value();
  options.ema = 0.75;
  return options;
}

std::unique_ptr<TrainingModel> Made(const Model& model, const AuthorOptions& options) {
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  auto findings = CheckModel(made->model, DefaultEnvironment());
  EXPECT_TRUE(findings.ok()) << findings.status();
  EXPECT_THAT(*findings, IsEmpty());
  return Open(Reread(made->model));
}

void Step(TrainingModel* model, int i) {
  auto out = model->Step(Feeds(i), {"loss"});
  ASSERT_TRUE(out.ok()) << out.status();
}

TEST(Averages, FollowTheNewWeights) {
  auto model = Made(TextModel(kNormalized), Options());
  std::vector<double> expected = ValueOf(*model, "W");
  EXPECT_EQ(ValueOf(*model, "W__ema"), expected);
  for (int i = 0; i < 5; ++i) {
    Step(model.get(), i);
    const std::vector<double> now = ValueOf(*model, "W");
    for (size_t k = 0; k < now.size(); ++k) expected[k] = 0.75 * expected[k] + 0.25 * now[k];
    EXPECT_THAT(ValueOf(*model, "W__ema"), Pointwise(DoubleNear(1e-6), expected));
  }
}

TEST(Averages, CountUpdatesAlone) {
  AuthorOptions options = Options();
  options.accumulate = 2;
  auto model = Made(TextModel(kNormalized), options);
  const std::vector<double> start = ValueOf(*model, "W__ema");
  Step(model.get(), 0);
  EXPECT_EQ(ValueOf(*model, "W__ema"), start);
  Step(model.get(), 1);
  EXPECT_NE(ValueOf(*model, "W__ema"), start);
}

TEST(Averages, BeginAtTheWeightsThatAreDrawn) {
  auto model = Made(TextModel(kNormalized), Options());
  Step(model.get(), 0);
  ASSERT_TRUE(model->Initialize().ok());
  for (const char* name : {"W", "s", "b"}) {
    EXPECT_EQ(ValueOf(*model, std::string(name) + "__ema"), ValueOf(*model, name)) << name;
  }
}

// Statistics are those of training: averages of their own already.
TEST(Averages, TakeThePlaceOfTheWeights) {
  auto model = Made(TextModel(kNormalized), Options());
  for (int i = 0; i < 3; ++i) Step(model.get(), i);
  auto trained = model->Export();
  ASSERT_TRUE(trained.ok());
  Model averaged = Reread(*trained);
  ASSERT_TRUE(UseAverages(&averaged).ok());
  auto plain = ExportPlain(averaged);
  ASSERT_TRUE(plain.ok());
  auto graph = InferenceGraph(Reread(plain->model));
  ASSERT_TRUE(graph.ok());
  for (const char* name : {"W", "s", "b"}) {
    EXPECT_EQ(Values(graph->initializers.at(name)), ValueOf(*model, std::string(name) + "__ema"));
    EXPECT_NE(Values(graph->initializers.at(name)), ValueOf(*model, name)) << name;
  }
  EXPECT_EQ(Values(graph->initializers.at("mean")), ValueOf(*model, "mean"));
  const Variables used = model->AveragedVariables();
  EXPECT_TRUE(Identical(used.at("W"), graph->initializers.at("W")));
  EXPECT_TRUE(Identical(used.at("var"), model->variables().at("var")));
}

TEST(Averages, OfWeightsOf16BitsAreFloat) {
  // 1, 2, -3, 4, 0, 5 in bits, as ONNX's text has it.
  auto model = Made(TextModel(R"(
      m (float16[N, 3] x) => (float16[N, 2] y)
      <float16[3, 2] W = {15360, 16384, 49664, 17408, 0, 17664}>
      { y = MatMul(x, W) })"),
                    Options());
  EXPECT_EQ(model->variables().at("W__ema").dtype(), DType::kFloat);
  TensorMap feeds = Feeds(0);
  feeds["x"] = RoundedTo(DType::kFloat16, feeds["x"]);
  ASSERT_TRUE(model->Step(feeds, {"loss"}).ok());
  const Variables used = model->AveragedVariables();
  EXPECT_EQ(used.at("W").dtype(), DType::kFloat16);
  EXPECT_THAT(Values(used.at("W")), Pointwise(DoubleNear(0.01), ValueOf(*model, "W__ema")));
}

TEST(Averages, AreNotInEveryFile) {
  AuthorOptions options = Options();
  options.ema = 0;
  auto made = MakeTrainable(TextModel(kNormalized), options, DefaultEnvironment());
  ASSERT_TRUE(made.ok());
  Model model = made->model;
  EXPECT_THAT(std::string(UseAverages(&model).message()),
              HasSubstr("holds no averages of its weights"));
  options.ema = 1;
  auto bad = MakeTrainable(TextModel(kNormalized), options, DefaultEnvironment());
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("ema is 1"));
}

}  // namespace onward::averages_test

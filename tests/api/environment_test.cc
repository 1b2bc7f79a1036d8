// SPDX-License-Identifier: Apache-2.0
// Environments and plugins through the public interface alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onward/onward.h"

namespace {

using onward::Environment;
using onward::InferenceSession;
using onward::Model;
using onward::StatusCode;
using onward::Tensor;
using testing::AllOf;
using testing::HasSubstr;

std::vector<std::string> Plugins() {
  return {ONWARD_EXAMPLES "/libsquared_relu.so", ONWARD_EXAMPLES "/libsoftclip.so"};
}

Model Classifier() { return Model::Read(ONWARD_PLUGIN_MODEL).value(); }
Tensor Rows() { return Tensor::From<float>({2, 4}, {1, 2, 0, 1, 2, 0, 1, 1}).value(); }

TEST(Environment, KnowsWhatPluginsAdd) {
  const auto unknown = InferenceSession::Create(Classifier())->Run({{"x", Rows()}});
  EXPECT_EQ(unknown.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(unknown.status().message(),
              AllOf(HasSubstr("com.example.SquaredRelu"), HasSubstr("com.example.SoftClip"),
                    HasSubstr("EnvironmentOptions::plugins")));

  const auto environment = Environment::Make({.plugins = Plugins()});
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_TRUE(Classifier().Check(*environment).value().empty());
  auto session = InferenceSession::Create(Classifier(), *environment);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->Run({{"x", Rows()}}).value().at("y").shape(), (onward::Shape{2, 3}));
  EXPECT_TRUE(onward::MakeGradientModel(Classifier(), "y", {"W"}, 2, *environment).ok());
}

TEST(Environment, LivesAsLongAsWhatIsMadeWithIt) {
  std::optional<onward::TrainingSession> training;
  std::optional<InferenceSession> inference;
  {
    const Environment environment = Environment::Make({.plugins = Plugins()}).value();
    onward::AuthorOptions options;
    options.optimizer = "sgd:lr=0.1";
    const auto made = onward::MakeTrainable(Classifier(), options, environment);
    ASSERT_TRUE(made.ok()) << made.status();
    training.emplace(onward::TrainingSession::Create(made->model, environment).value());
    inference.emplace(InferenceSession::Create(Classifier(), environment).value());
  }
  const Tensor labels = Tensor::From<int64_t>({2}, {0, 2}).value();
  float before = 0, loss = 0;
  for (int i = 0; i < 10; ++i) {
    const auto step = training->Step({{"x", Rows()}, {"label", labels}});
    ASSERT_TRUE(step.ok()) << step.status();
    loss = *step->at("loss").data<float>();
    if (i == 0) before = loss;
  }
  EXPECT_LT(loss, before);
  EXPECT_TRUE(inference->Run({{"x", Rows()}}).ok());
}

TEST(Environment, SaysWhichPluginIsWrong) {
  const auto environment = Environment::Make({.plugins = {ONWARD_PLUGIN_MODEL}});
  EXPECT_EQ(environment.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(environment.status().message(), HasSubstr(ONWARD_PLUGIN_MODEL));
}

// A choice of one session is not one of another.
TEST(Environment, HoldsChoices) {
  const Model model = Model::Read(ONWARD_TRAINABLE).value();
  const Tensor image = Tensor::Zeros(onward::ElementType::kFloat, {2, 1, 28, 28}).value();
  const Environment small = Environment::Make({.memory_limit = 1000}).value();
  auto tight = InferenceSession::Create(model, small), usual = InferenceSession::Create(model);
  EXPECT_EQ(tight->Run({{"image", image}}).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(usual->Run({{"image", image}}).ok());
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include "training_info/author.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/import.h"
#include "training_info/validate.h"

namespace onward::author_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kPerceptron[] = R"(
  m (float[N, 2] x) => (float[N, 2] y)
  <float[2, 3] W1 = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6}, float[3] b1 = {0.1, 0.2, 0.3},
   float[3, 2] W2 = {0.7, -0.1, 0.2, 0.3, -0.4, 0.5}, float[2] b2 = {0, 0}> {
    p = Gemm(x, W1, b1)
    h = Relu(p)
    y = Gemm(h, W2, b2)
  })";

TensorMap Batch() {
  return {{"x", Floats({4, 2}, {1, 2, -1, 0.5, 3, -2, 0.25, 1})}, {"label", Int64s({0, 1, 1, 0})}};
}

AuthorResult Made(const Model& model, const AuthorOptions& options = {}) {
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : AuthorResult{};
}

std::string Error(const Model& model, const AuthorOptions& options) {
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_FALSE(made.ok());
  return std::string(made.status().message());
}

std::vector<double> Losses(TrainingModel* model, const TensorMap& feeds, int steps) {
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    auto out = model->Step(feeds, {"loss"});
    EXPECT_TRUE(out.ok()) << out.status();
    losses.push_back(out.ok() ? Values(out->at("loss"))[0] : NAN);
  }
  return losses;
}

// Dropout asks for a copy of the forward pass; the raised Softmax hides the shape of its result.
TEST(MakeTrainable, OneLabelPerExampleWhereOnlyTheDeclarationTells) {
  const AuthorResult made = Made(TextModel(R"(<ir_version: 4, opset_import: ["" : 9]>
      g (float[1, 3, 8, 8] x) => (float[1, 2, 1, 1] y) <float[2, 3, 1, 1] w = {1, 2, 3, 4, 5, 6}>
      { d = Dropout <ratio = 0.5> (x) c = Conv(d, w) p = GlobalAveragePool(c) y = Softmax(p) })"));
  auto training = Open(made.model);
  const TensorMap feeds = {{"x", Tensor::Zeros(DType::kFloat, {1, 3, 8, 8})},
                           {"label", Int64s({1})}};
  auto out = training->Step(feeds, {"loss"});
  EXPECT_TRUE(out.ok()) << out.status();
}

TEST(MakeTrainable, TheLastOperatorIsSeenBehindChangesOfShape) {
  const Model model = TextModel(R"(<ir_version: 4, opset_import: ["" : 9]>
      g (float[2, 3] x) => (float[2, 3] y) { y = Softmax(x) })");
  EXPECT_EQ(LastOperator(CanonicalGraph(model).value(), "y"), "Softmax");
}

TEST(MakeTrainable, TrainsEveryWeight) {
  const AuthorResult made = Made(TextModel(kPerceptron));
  EXPECT_THAT(made.trained, UnorderedElementsAre("W1", "b1", "W2", "b2"));
  auto findings = CheckModel(made.model, DefaultEnvironment());
  ASSERT_TRUE(findings.ok()) << findings.status();
  EXPECT_THAT(*findings, IsEmpty());
  auto model = Open(Reread(made.model));
  const Variables before = Open(made.model)->variables();
  const std::vector<double> losses = Losses(model.get(), Batch(), 20);
  EXPECT_LT(losses.back(), losses.front());
  for (const std::string& name : made.trained) {
    EXPECT_FALSE(Identical(before.at(name), model->variables().at(name))) << name;
  }
}

TEST(MakeTrainable, PatternsChoose) {
  AuthorOptions options;
  options.train = {"W*"};
  EXPECT_THAT(Made(TextModel(kPerceptron), options).trained, UnorderedElementsAre("W1", "W2"));
  options.train = {"?2", "b1"};
  EXPECT_THAT(Made(TextModel(kPerceptron), options).trained,
              UnorderedElementsAre("W2", "b2", "b1"));
  options.freeze = {"b*"};
  const AuthorResult made = Made(TextModel(kPerceptron), options);
  EXPECT_THAT(made.trained, ElementsAre("W2"));
  auto model = Open(made.model);
  EXPECT_FALSE(model->variables().contains("W1"));
  options.freeze = {"bias*"};
  EXPECT_THAT(
      Error(TextModel(kPerceptron), options),
      HasSubstr("pattern 'bias*' matches no trainable initializer; there are: W1, W2, b1, b2"));
  options.freeze = {"*"};
  EXPECT_THAT(Error(TextModel(kPerceptron), options),
              HasSubstr("frozen: there is nothing to train"));
}

TEST(MakeTrainable, MatchesPatterns) {
  EXPECT_TRUE(MatchesPattern("layer1.weight", "layer1.*"));
  EXPECT_TRUE(MatchesPattern("layer1.weight", "*weight"));
  EXPECT_TRUE(MatchesPattern("layer1.weight", "l*1?w*t"));
  EXPECT_TRUE(MatchesPattern("", "*"));
  EXPECT_FALSE(MatchesPattern("layer1.weight", "weight"));
  EXPECT_FALSE(MatchesPattern("layer1.weight", "?"));
  EXPECT_FALSE(MatchesPattern("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "*a*a*a*a*a*a*a*a*a*a*b"));
}

TEST(MakeTrainable, BothGradientFormsAgree) {
  for (const std::string& optimizer : OptimizerNames()) {
    AuthorOptions options;
    options.optimizer = {optimizer, {}};
    options.clip_norm = 1;
    auto with_operator = Open(Reread(Made(TextModel(kPerceptron), options).model));
    options.gradient = GradientForm::kExpanded;
    const Model expanded = Made(TextModel(kPerceptron), options).model;
    auto spec = ImportTraining(expanded);
    ASSERT_TRUE(spec.ok());
    for (const Node& node : spec->entries[0].algorithm.nodes) {
      EXPECT_NE(node.domain, kOnwardDomain) << node.Describe();
      EXPECT_NE(node.op_type, "Gradient");
    }
    auto with_nodes = Open(Reread(expanded));
    const std::vector<double> a = Losses(with_operator.get(), Batch(), 3),
                              b = Losses(with_nodes.get(), Batch(), 3);
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(a[i], b[i], 1e-6 * std::abs(a[i])) << optimizer << ", step " << i;
    EXPECT_NE(a[0], a[2]);
  }
}

TEST(MakeTrainable, HeadIsReplaced) {
  AuthorOptions options;
  options.head_classes = 5;
  options.train = {"W2", "b2"};
  const AuthorResult made = Made(TextModel(kPerceptron), options);
  EXPECT_THAT(made.notes, Contains("replaced the classifier (W2, b2) by one with 5 classes"));
  auto model = Open(Reread(made.model));
  EXPECT_EQ(model->variables().at("W2").shape(), (Shape{3, 5}));
  EXPECT_EQ(model->variables().at("b2").shape(), (Shape{5}));
  TensorMap batch = Batch();
  batch["label"] = Int64s({4, 3, 2, 0});
  const std::vector<double> losses = Losses(model.get(), batch, 20);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_EQ(model->Infer({{"x", batch["x"]}})->at("y").shape(), (Shape{4, 5}));
  // The same seed, the same head.
  EXPECT_TRUE(SameVariables(Open(made.model)->variables(),
                            Open(Made(TextModel(kPerceptron), options).model)->variables()));
  options.seed = 1;
  EXPECT_FALSE(SameVariables(Open(made.model)->variables(),
                             Open(Made(TextModel(kPerceptron), options).model)->variables()));
  options.train = {};
  EXPECT_THAT(
      Error(
          TextModel(
              "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { h = Mul(x, W) y = Relu(h) }"),
          options),
      HasSubstr("no classifier was found before 'y'"));
}

TEST(MakeTrainable, ScheduleIsInTheFile) {
  AuthorOptions options;
  options.optimizer = {"sgd", {{"lr", 0.8}}};
  options.schedule = {"linear", {{"warmup", 2}, {"total", 6}}};
  auto model = Open(Made(TextModel(kPerceptron), options).model);
  std::vector<double> rates;
  for (int i = 0; i < 7; ++i) {
    auto out = model->Step(Batch(), {"learning_rate"});
    ASSERT_TRUE(out.ok()) << out.status();
    rates.push_back(Values(out->at("learning_rate"))[0]);
  }
  const double expected[] = {0.4, 0.8, 0.8, 0.6, 0.4, 0.2, 0};
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(rates[i], expected[i], 1e-6) << i;
}

// One step of plain SGD moves the weights by lr times the clipped gradient.
TEST(MakeTrainable, ClipNormBoundsTheStep) {
  AuthorOptions options;
  options.optimizer = {"sgd", {{"lr", 1}}};
  auto moved = [&](double clip) {
    options.clip_norm = clip;
    auto model = Open(Made(TextModel(kPerceptron), options).model);
    const Variables before = Open(model->model())->variables();
    EXPECT_TRUE(model->Step(Batch()).ok());
    double sum = 0;
    for (const auto& [name, tensor] : before) {
      if (tensor.dtype() != DType::kFloat) continue;
      const std::vector<double> a = Values(tensor), b = ValueOf(*model, name);
      for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return std::sqrt(sum);
  };
  const double free = moved(0);
  EXPECT_GT(free, 0.1);
  EXPECT_NEAR(moved(0.05), 0.05, 1e-5);
  EXPECT_NEAR(moved(100), free, 1e-6);
}

TEST(MakeTrainable, RunningStatisticsAreWrittenBack) {
  const Model original = TextModel(R"(
      m (float[N, 2] x) => (float[N, 2] y)
      <float[2] s = {1, 1}, float[2] b = {0, 0}, float[2] mean = {0, 0}, float[2] var = {1, 1},
       float[2, 2] W = {1, 2, 3, 4}> {
        n = BatchNormalization <momentum = 0.75> (x, s, b, mean, var)
        y = MatMul(n, W)
      })");
  const AuthorResult made = Made(original);
  EXPECT_THAT(made.trained, UnorderedElementsAre("s", "b", "W"));
  auto model = Open(made.model);
  ASSERT_TRUE(model->Step({{"x", Floats({2, 2}, {1, 10, 3, 30})}, {"label", Int64s({0, 1})}}).ok());
  // Batch mean (2, 20), variance (1, 100).
  EXPECT_THAT(ValueOf(*model, "mean"), ElementsAre(0.5, 5));
  EXPECT_THAT(ValueOf(*model, "var"), ElementsAre(1, 25.75));
  // The inference graph is still one: its node uses the statistics.
  auto spec = ImportTraining(made.model);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->inference.nodes[0].Int("training_mode", 0), 0);
}

TEST(MakeTrainable, DropoutRunsInTrainingOnly) {
  const Model original = TextModel(R"(
      m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] W = {1, 2, 3, 4}, float ratio = {0.5}> {
        d = Dropout(x, ratio)
        y = MatMul(d, W)
      })");
  AuthorOptions options;
  options.optimizer = {"sgd", {{"lr", 0}}};
  auto model = Open(Made(original, options).model);
  const TensorMap feeds = {{"x", Floats({2, 2}, {1, 2, 3, 4})}, {"label", Int64s({0, 1})}};
  std::vector<double> losses = Losses(model.get(), feeds, 8);
  std::sort(losses.begin(), losses.end());
  EXPECT_LT(losses.front(), losses.back());
  EXPECT_THAT(Values(model->Infer({{"x", feeds.at("x")}})->at("y")), ElementsAre(7, 10, 15, 22));
}

TEST(MakeTrainable, LabelNameMayBeTaken) {
  const AuthorResult made =
      Made(TextModel("m (float[N, 2] label) => (float[N, 2] y) <float[2, 2] W = {1, 2, 3, 4}> { y "
                     "= MatMul(label, W) }"));
  const std::string label = made.model.Metadata(kMetaLabel);
  EXPECT_NE(label, "label");
  auto model = Open(made.model);
  EXPECT_TRUE(model->Step({{"label", Floats({1, 2}, {1, 2})}, {label, Int64s({1})}}).ok());
}

// Values the author wants to name may be in the model already.
TEST(MakeTrainable, OwnNamesMayBeTaken) {
  const AuthorResult made = Made(TextModel(R"(
      m (float[N, 2] x) => (float[N, 2] y)
      <float[2, 2] W = {1, 2, 3, 4}, float[2] loss = {0, 0}, float[2] onward_step = {0, 0}, float[2] W__new = {0, 0},
       float[2] W__grad = {0, 0}, float[2] learning_rate = {0, 0}> {
        h = MatMul(x, W)
        y = Sum(h, loss, onward_step, W__new, W__grad, learning_rate)
      })"));
  EXPECT_EQ(made.trained.size(), 6u);
  EXPECT_TRUE(Open(made.model)->Step({{"x", Floats({1, 2}, {1, 2})}, {"label", Int64s({1})}}).ok());
}

TEST(MakeTrainable, RefusesWhatCannotBeTrained) {
  const std::pair<const char*, const char*> cases[] = {
      {"m (float[N, 2] x) => (int64[N] y) <float[2, 2] W = {1, 2, 3, 4}> { h = MatMul(x, W) y = "
       "ArgMax <axis = 1, keepdims = 0> (h) }",
       "a loss needs a float output (choose another with --train-output"},
      {"m (float[N, 2] x) => (float[N, 2] y) { y = Relu(x) }",
       "depends on no float initializer: there is nothing to train"},
      {"m (float[N, 2] x) => (float[N, 2] y) <int64[2] i = {1, 0}> { y = Gather <axis = 1> (x, i) "
       "}",
       "there is nothing to train"},
  };
  for (const auto& [graph, message] : cases) {
    AuthorOptions options;
    options.loss = {"mse", {}};
    EXPECT_THAT(Error(TextModel(graph), options), HasSubstr(message));
  }
  AuthorOptions options;
  options.output = "h";
  EXPECT_THAT(Error(TextModel(kPerceptron), options),
              HasSubstr("'h' is not an output of the model"));
  EXPECT_THAT(Error(Made(TextModel(kPerceptron)).model, {}),
              HasSubstr("already carries training_info"));
}

TEST(MakeTrainable, InitializationDrawsNewWeights) {
  const AuthorResult made = Made(TextModel(kPerceptron));
  auto model = Open(made.model);
  Losses(model.get(), Batch(), 3);
  ASSERT_TRUE(model->Initialize().ok());
  EXPECT_THAT(ValueOf(*model, "onward_step"), ElementsAre(1));
  // As PyTorch's Linear begins: uniform up to 1/sqrt(fan in), the bias too.
  const std::vector<double> bias = ValueOf(*model, "b1");
  EXPECT_NE(bias[0], bias[1]);
  for (double b : bias) EXPECT_LE(std::abs(b), 1 / std::sqrt(2.0) + 1e-6);
  EXPECT_THAT(ValueOf(*model, "W1__first_moment"), ElementsAre(0, 0, 0, 0, 0, 0));
  const std::vector<double> fresh = ValueOf(*model, "W1");
  EXPECT_NE(fresh[0], fresh[1]);
  for (double w : fresh) EXPECT_LE(std::abs(w), 1 / std::sqrt(2.0) + 1e-6);
  EXPECT_LT(Losses(model.get(), Batch(), 30).back(), std::log(2.0) * 1.5);
}

TEST(MakeTrainable, FixedBatchIsFreed) {
  AuthorOptions options;
  options.free_batch = true;
  const AuthorResult made = Made(TextModel(R"(m (float[1, 4] x) => (float[1, 2] y)
      <float[4, 2] W = {1, 2, 3, 4, 5, 6, 7, 8}, int64[3] to = {1, 2, 2}, int64[2] back = {1, 4}> {
        r = Reshape(x, to)
        f = Reshape(r, back)
        y = MatMul(f, W)
      })"),
                                 options);
  EXPECT_THAT(made.notes, Contains("made the fixed batch size of 1 variable"));
  auto model = Open(made.model);
  EXPECT_TRUE(
      model->Step({{"x", Floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}, {"label", Int64s({0, 1})}})
          .ok());
}

}  // namespace onward::author_test

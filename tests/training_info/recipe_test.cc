// SPDX-License-Identifier: Apache-2.0
// What a training is put together from: several losses, losses and optimizers of somebody's own,
// groups, clipping, frozen statistics.
#include "training_info/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/scratch.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/author_update.h"
#include "training_info/import.h"

namespace onward::recipe_test {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::Pointwise;
using ::testing::UnorderedElementsAre;

// y = x*W, z = x*V + b
constexpr char kTwoHeads[] = R"(
  m (float[N, 2] x) => (float[N, 2] y, float[N, 2] z)
  <float[2, 2] W = {1, 2, 3, 4}, float[2, 2] V = {0.5, -1, 1, 0.25}, float[2] b = {0.5, 1}> {
    y = MatMul(x, W)
    p = MatMul(x, V)
    z = Add(p, b)
  })";

TensorMap TwoHeadsFeeds() {
  return {{"x", Floats({2, 2}, {1, 2, -1, 0.5})},
          {"label", Floats({2, 2}, {1, 0, 0, 1})},
          {"label_z", Floats({2, 2}, {0, 0, 1, 1})}};
}

AuthorOptions Options(const std::vector<std::string>& losses,
                      const char* optimizer = "sgd:lr=0.1") {
  AuthorOptions options;
  for (const std::string& loss : losses) options.losses.push_back(ParseLossTerm(loss).value());
  options.optimizer = ParseOptimizer(optimizer).value();
  return options;
}

std::unique_ptr<TrainingModel> Trainable(const char* text, const AuthorOptions& options) {
  auto made = MakeTrainable(TextModel(text), options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? Open(Reread(made->model)) : nullptr;
}

std::string Refused(const char* text, const AuthorOptions& options) {
  auto made = MakeTrainable(TextModel(text), options, DefaultEnvironment());
  EXPECT_FALSE(made.ok());
  return std::string(made.status().message());
}

std::map<std::string, double> StepOf(TrainingModel* model, const TensorMap& feeds,
                                     const std::vector<std::string>& values) {
  std::map<std::string, double> found;
  auto out = model->Step(feeds, values);
  EXPECT_TRUE(out.ok()) << out.status();
  for (const std::string& v : values) {
    if (out.ok()) found[v] = Values(out->at(v))[0];
  }
  return found;
}

void WriteText(const std::string& path, const std::string& text) {
  ASSERT_TRUE(WriteModel(TextModel(text), path).ok());
}

TEST(ParseLossTerm, ReadsWeightOutputsAndFiles) {
  const LossTerm term = ParseLossTerm("0.1*l1:reduction=sum@mask").value();
  EXPECT_EQ(term.weight, 0.1);
  EXPECT_EQ(term.spec.name, "l1");
  EXPECT_THAT(term.spec.options, ElementsAre(Pair("reduction", "sum")));
  EXPECT_THAT(term.outputs, ElementsAre("mask"));
  EXPECT_EQ(LossTermText(term), "0.1*l1:reduction=sum@mask");
  EXPECT_THAT(ParseLossTerm("gaussian_nll@mean,variance")->outputs,
              ElementsAre("mean", "variance"));
  EXPECT_EQ(ParseLossTerm("2*folder/my.onnx")->file, "folder/my.onnx");
  EXPECT_FALSE(ParseLossTerm("x*l1").ok());
  EXPECT_FALSE(ParseLossTerm("l1@").ok());
  EXPECT_FALSE(ParseLossTerm("my.onnx@y").ok());
  EXPECT_FALSE(ParseLossTerm("l3").ok());
}

TEST(ParseGroup, ReadsPatternAndOptions) {
  const ParameterGroup group = ParseGroup("a::head.*:lr=10x,weight_decay=0").value();
  EXPECT_EQ(group.pattern, "a::head.*");
  EXPECT_THAT(group.options, ElementsAre(Pair("lr", "10x"), Pair("weight_decay", "0")));
  EXPECT_FALSE(ParseGroup("head").ok());
  EXPECT_FALSE(ParseGroup("head:lr").ok());
}

TEST(Specialized, TakesFactorsAndRefusesWhatTheOptimizerHasNot) {
  const OptimizerChoice base = ParseOptimizerChoice("adamw:lr=0.01").value();
  EXPECT_DOUBLE_EQ(Specialized(base, {{"lr", "10x"}})->lr(), 0.1);
  EXPECT_DOUBLE_EQ(Specialized(base, {{"lr", "0.5"}})->lr(), 0.5);
  EXPECT_DOUBLE_EQ(OptionOf(Specialized(base, {{"weight_decay", "0"}})->spec, "weight_decay"), 0);
  EXPECT_FALSE(Specialized(base, {{"lr", "-1x"}}).ok());
  EXPECT_FALSE(Specialized(base, {{"momentum", "0.9"}}).ok());
}

// The sum of both, with the weight of each.
TEST(SeveralLosses, AddUp) {
  auto both = Trainable(kTwoHeads, Options({"mse@y", "0.25*l1@z"}));
  auto first = Trainable(kTwoHeads, Options({"mse@y"}));
  AuthorOptions second_options = Options({"l1@z"});
  second_options.label = "label_z";
  auto second = Trainable(kTwoHeads, second_options);
  ASSERT_TRUE(both != nullptr && first != nullptr && second != nullptr);
  TensorMap feeds = TwoHeadsFeeds();
  TensorMap first_feeds = feeds, second_feeds = feeds;
  first_feeds.erase("label_z");
  second_feeds.erase("label");
  const auto sum = StepOf(both.get(), feeds, {"loss", "loss_y", "loss_z"});
  const double y = StepOf(first.get(), first_feeds, {"loss"}).at("loss");
  const double z = StepOf(second.get(), second_feeds, {"loss"}).at("loss");
  EXPECT_NEAR(sum.at("loss_y"), y, 1e-6);
  EXPECT_NEAR(sum.at("loss_z"), z, 1e-6);
  EXPECT_NEAR(sum.at("loss"), y + 0.25 * z, 1e-6);
  EXPECT_THAT(ValueOf(*both, "W"), Pointwise(FloatNear(1e-6f), ValueOf(*first, "W")));
}

TEST(SeveralLosses, NameTheirLabelsAndOutputs) {
  AuthorOptions options = Options({"mse@y", "l1@z"});
  options.label = "target";
  options.more_labels = {"mask"};
  auto model = Trainable(kTwoHeads, options);
  ASSERT_NE(model, nullptr);
  TensorMap feeds = TwoHeadsFeeds();
  feeds["target"] = feeds.at("label");
  feeds["mask"] = feeds.at("label_z");
  feeds.erase("label");
  feeds.erase("label_z");
  EXPECT_TRUE(model->Step(feeds, {"loss"}).ok());
  EXPECT_THAT(Refused(kTwoHeads, Options({"mse@y", "l1@q"})),
              HasSubstr("'q' is not an output of the model; there are: y, z"));
  EXPECT_THAT(Refused(kTwoHeads, Options({"gaussian_nll@y"})),
              HasSubstr("compares 2 outputs of the model, got 1"));
  options.more_labels.push_back("third");
  EXPECT_THAT(Refused(kTwoHeads, options),
              HasSubstr("label 'third' has no loss: the losses take 2 labels, 3 are named"));
}

TEST(SeveralLosses, ShareTheLabelOfAnOutput) {
  auto model = Trainable(kTwoHeads, Options({"bce@y", "dice@y"}));
  ASSERT_NE(model, nullptr);
  TensorMap feeds = TwoHeadsFeeds();
  feeds.erase("label_z");
  const auto losses = StepOf(model.get(), feeds, {"loss", "loss_y", "loss_y_2"});
  EXPECT_NEAR(losses.at("loss"), losses.at("loss_y") + losses.at("loss_y_2"), 1e-5);
}

TEST(SeveralLosses, TakeTheFirstOutputsWhereNoneAreNamed) {
  auto model = Trainable(kTwoHeads, Options({"cosine@y,z"}));
  ASSERT_NE(model, nullptr);
  TensorMap feeds = {{"x", Floats({2, 2}, {1, 2, -1, 0.5})}, {"label", Floats({1, -1})}};
  EXPECT_TRUE(model->Step(feeds, {"loss"}).ok());
}

TEST(Labels, MayHaveOtherTypes) {
  AuthorOptions options = Options({"mse:label_type=uint8@y"});
  auto model = Trainable(kTwoHeads, options);
  ASSERT_NE(model, nullptr);
  Tensor label(DType::kUint8, {2, 2});
  for (int i = 0; i < 4; ++i) label.data<uint8_t>()[i] = static_cast<uint8_t>(i % 2 == 0);
  auto out = model->Step({{"x", Floats({2, 2}, {1, 2, -1, 0.5})}, {"label", label}}, {"loss"});
  EXPECT_TRUE(out.ok()) << out.status();
}

TEST(LossFile, IsBoundByName) {
  const Scratch scratch;
  const std::string path = scratch.Path("loss.onnx");
  // Weighted squares; `scale` has a value of its own, `weight` is a label.
  WriteText(path, R"(
    l (float[N, 2] y, float[N, 2] target, float[N, 1] weight) => (float loss)
    <float scale = {0.5}> {
      d = Sub(y, target)
      s = Mul(d, d)
      w = Mul(s, weight)
      m = ReduceSum <keepdims = 0> (w)
      loss = Mul(m, scale)
    })");
  auto model = Trainable(kTwoHeads, Options({"2*" + path}));
  ASSERT_NE(model, nullptr);
  const TensorMap feeds = {{"x", Floats({2, 2}, {1, 2, -1, 0.5})},
                           {"target", Floats({2, 2}, {1, 0, 0, 1})},
                           {"weight", Floats({2, 1}, {1, 3})}};
  // y = {7, 10, 0.5, 0}: 36 + 100 + 3*(0.25 + 1)
  EXPECT_NEAR(StepOf(model.get(), feeds, {"loss"}).at("loss"), 139.75, 1e-4);
  // dL/dW = 2*x^T*(y - target)*weight
  EXPECT_THAT(ValueOf(*model, "W"),
              Pointwise(FloatNear(1e-5f), {1 - 0.2 * (6 - 1.5), 2 - 0.2 * (10 + 3),
                                           3 - 0.2 * (12 + 0.75), 4 - 0.2 * (20 - 1.5)}));
}

TEST(LossFile, IsCheckedBeforeUse) {
  const Scratch scratch;
  const std::string path = scratch.Path("loss.onnx");
  WriteText(path, "l (float[N, 2] q) => (float[N, 2] loss) { loss = Neg(q) }");
  EXPECT_THAT(Refused(kTwoHeads, Options({path})),
              HasSubstr("not a scalar; end it with ReduceMean"));
  WriteText(path, "l (float[N, 2] q) => (float loss) { loss = ReduceSum <keepdims = 0> (q) }");
  EXPECT_THAT(Refused(kTwoHeads, Options({path})),
              HasSubstr("has the name of an output of the model; name them as"));
  EXPECT_THAT(Refused(kTwoHeads, Options({scratch.Path("absent.onnx")})), HasSubstr("absent.onnx"));
}

TEST(OptimizerFile, Updates) {
  const Scratch scratch;
  const std::string path = scratch.Path("optimizer.onnx");
  // Momentum, with a counter of its own that starts at 3.
  WriteText(path, R"(
    o (float R, int64 T, float[] X, float[] G, float[] M, float K, float rho)
      => (float[] X_new, float[] M_new, float K_new)
    <float rho = {0.5}, float K = {3}> {
      k = Mul(M, rho)
      M_new = Add(k, G)
      d = Mul(M_new, R)
      X_new = Sub(X, d)
      one = Constant <value = float {1}> ()
      K_new = Add(K, one)
    })");
  AuthorOptions options = Options({"mse@y"});
  const OptimizerChoice choice = ParseOptimizerChoice(path + ":lr=0.1,rho=0.9").value();
  options.optimizer_file = choice.file;
  options.optimizer_numbers = choice.numbers;
  auto model = Trainable(kTwoHeads, options);
  auto expected = Trainable(kTwoHeads, Options({"mse@y"}, "momentum:lr=0.1,momentum=0.9"));
  ASSERT_TRUE(model != nullptr && expected != nullptr);
  TensorMap feeds = TwoHeadsFeeds();
  feeds.erase("label_z");
  for (int i = 0; i < 3; ++i) {
    StepOf(model.get(), feeds, {"loss"});
    StepOf(expected.get(), feeds, {"loss"});
  }
  EXPECT_THAT(ValueOf(*model, "W"), Pointwise(FloatNear(1e-5f), ValueOf(*expected, "W")));
  EXPECT_THAT(ValueOf(*model, "W__K"), ElementsAre(6));
  options.optimizer_numbers["rate"] = 1;
  EXPECT_THAT(Refused(kTwoHeads, options), HasSubstr("valid: lr, rho"));
}

TEST(OptimizerFile, IsCheckedBeforeUse) {
  const Scratch scratch;
  AuthorOptions options = Options({"mse@y"});
  options.optimizer_file = scratch.Path("optimizer.onnx");
  WriteText(options.optimizer_file, "o (float[] X) => (float[] X_new) { X_new = Neg(X) }");
  EXPECT_THAT(Refused(kTwoHeads, options), HasSubstr("it has no input 'G'"));
  WriteText(options.optimizer_file, "o (float[] X, float[] G) => (float[] Y) { Y = Sub(X, G) }");
  EXPECT_THAT(Refused(kTwoHeads, options), HasSubstr("it has no output 'X_new'"));
  WriteText(options.optimizer_file,
            "o (float[] X, float[] G, float[] M) => (float[] X_new) { X_new = Sum(X, G, M) }");
  EXPECT_THAT(Refused(kTwoHeads, options), HasSubstr("input 'M' is no state"));
}

TEST(Groups, HaveRatesAndOptionsOfTheirOwn) {
  AuthorOptions options = Options({"mse@z"}, "sgd:lr=0.1,weight_decay=0.5");
  auto plain = Trainable(kTwoHeads, options);
  options.groups = {ParseGroup("b:lr=10x,weight_decay=0").value()};
  auto grouped = Trainable(kTwoHeads, options);
  options.groups = {ParseGroup("b:lr=1").value()};
  options.no_decay = {"b"};
  auto undecayed = Trainable(kTwoHeads, options);
  ASSERT_TRUE(plain != nullptr && grouped != nullptr && undecayed != nullptr);
  TensorMap feeds = TwoHeadsFeeds();
  feeds.erase("label_z");
  for (TrainingModel* m : {plain.get(), grouped.get(), undecayed.get()}) {
    ASSERT_TRUE(m->Step(feeds, {"loss"}).ok());
  }
  EXPECT_EQ(ValueOf(*plain, "V"), ValueOf(*grouped, "V"));
  // b = {0.5, 1} moved by 0.1*(G + 0.5*b); by 1*G.
  const std::vector<double> b = ValueOf(*plain, "b"), g = ValueOf(*grouped, "b");
  for (int i = 0; i < 2; ++i) {
    const double start = i == 0 ? 0.5 : 1;
    const double gradient = (start - b[i]) / 0.1 - 0.5 * start;
    EXPECT_NEAR(g[i], start - gradient, 1e-5);
  }
  EXPECT_THAT(ValueOf(*undecayed, "b"), Pointwise(FloatNear(1e-6f), g));
}

TEST(Groups, RefusePatternsAndOptionsThatMeanNothing) {
  AuthorOptions options = Options({"mse@z"});
  options.groups = {ParseGroup("head*:lr=2x").value()};
  EXPECT_THAT(Refused(kTwoHeads, options), HasSubstr("pattern 'head*' matches no trainable"));
  options.groups = {ParseGroup("b:beta1=0.5").value()};
  EXPECT_THAT(Refused(kTwoHeads, options), HasSubstr("group 'b'"));
  options.groups = {};
  options.no_decay = {"norm"};
  options.optimizer = ParseOptimizer("rprop").value();
  // There is no normalisation, so nothing has to be without decay.
  EXPECT_NE(Trainable(kTwoHeads, options), nullptr);
  options.no_decay = {"b"};
  EXPECT_THAT(Refused(kTwoHeads, options), HasSubstr("weight_decay"));
}

constexpr char kNormalized[] = R"(
  m (float[N, 2] x) => (float[N, 2] y)
  <float[2, 2] W = {1, 2, 3, 4}, float[2] s = {1, 2}, float[2] c = {0.5, 1},
   float[2] mean = {0.1, 0.2}, float[2] var = {1, 2}> {
    p = MatMul(x, W)
    y = BatchNormalization(p, s, c, mean, var)
  })";

TEST(NoDecay, KnowsNormalisations) {
  AuthorOptions options = Options({"mse@y"}, "sgd:lr=0.1,weight_decay=0.5");
  options.no_decay = {"norm"};
  auto made = MakeTrainable(TextModel(kNormalized), options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  auto spec = ImportTraining(made->model);
  ASSERT_TRUE(spec.ok());
  for (const Node& node : spec->entries[0].algorithm.nodes) {
    if (!node.Is("SgdStep", kOnwardDomain)) continue;
    EXPECT_EQ(node.Float("weight_decay", -1), node.inputs[1] == "W" ? 0.5f : 0.0f);
  }
}

TEST(FreezeStatistics, LeavesThemAndUsesThem) {
  AuthorOptions options = Options({"mse@y"});
  const TensorMap feeds = {{"x", Floats({2, 2}, {1, 2, -1, 0.5})},
                           {"label", Floats({2, 2}, {1, 0, 0, 1})}};
  auto moving = Trainable(kNormalized, options);
  options.freeze_statistics = true;
  auto frozen = Trainable(kNormalized, options);
  ASSERT_TRUE(moving != nullptr && frozen != nullptr);
  ASSERT_TRUE(moving->Step(feeds, {"loss"}).ok());
  ASSERT_TRUE(frozen->Step(feeds, {"loss"}).ok());
  EXPECT_TRUE(moving->variables().contains("mean"));
  EXPECT_FALSE(frozen->variables().contains("mean"));
  // (7 - 0.1)/sqrt(1 + 1e-5) + 0.5, and so on, against the labels.
  auto again = Trainable(kNormalized, options);
  const double loss = StepOf(again.get(), feeds, {"loss"}).at("loss");
  const double y[] = {6.9 + 0.5, 2 * 9.8 / std::sqrt(2.0) + 1, 0.4 + 0.5,
                      2 * -0.2 / std::sqrt(2.0) + 1};
  const double label[] = {1, 0, 0, 1};
  double expected = 0;
  for (int i = 0; i < 4; ++i) expected += (y[i] - label[i]) * (y[i] - label[i]) / 4;
  EXPECT_NEAR(loss, expected, 1e-3);
}

TEST(Clipping, ByValueAndByUnit) {
  const TensorMap feeds = {{"x", Floats({2, 2}, {1, 2, -1, 0.5})},
                           {"label", Floats({2, 2}, {1, 0, 0, 1})}};
  AuthorOptions options = Options({"mse@y"}, "sgd:lr=1");
  auto plain = Trainable(kTwoHeads, options);
  options.clip_value = 0.25;
  auto clipped = Trainable(kTwoHeads, options);
  options.clip_value = 0;
  options.clip_adaptive = 0.01;
  auto adaptive = Trainable(kTwoHeads, options);
  ASSERT_TRUE(plain != nullptr && clipped != nullptr && adaptive != nullptr);
  for (TrainingModel* m : {plain.get(), clipped.get(), adaptive.get()}) {
    ASSERT_TRUE(m->Step(feeds, {"loss"}).ok());
  }
  const std::vector<double> start = {1, 2, 3, 4}, whole = ValueOf(*plain, "W"),
                            part = ValueOf(*clipped, "W"), unit = ValueOf(*adaptive, "W");
  for (int i = 0; i < 4; ++i) {
    const double g = start[i] - whole[i];
    EXPECT_NEAR(start[i] - part[i], std::clamp(g, -0.25, 0.25), 1e-6);
  }
  // Columns are the units of a MatMul.
  for (int c = 0; c < 2; ++c) {
    const double w = std::hypot(start[c], start[2 + c]);
    const double g = std::hypot(start[c] - whole[c], start[2 + c] - whole[2 + c]);
    for (int r : {0, 2}) {
      const double expected = (start[r + c] - whole[r + c]) * std::min(1.0, 0.01 * w / g);
      EXPECT_NEAR(start[r + c] - unit[r + c], expected, 1e-6);
    }
  }
}

}  // namespace onward::recipe_test

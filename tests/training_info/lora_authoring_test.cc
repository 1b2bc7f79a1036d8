// SPDX-License-Identifier: Apache-2.0
// Adapters as MakeTrainable writes them: tensors, metadata, what learns beside them, what is
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "tests/training_info/lora_models.h"

namespace onward::lora_authoring_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string Error(const Model& model, const AuthorOptions& options) {
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_FALSE(made.ok());
  return std::string(made.status().message());
}

TEST(Lora, TensorsAreThoseOfPeft) {
  AuthorOptions options = WithLora("first_*:rank=64,alpha=16");
  const Graph graph = *InferenceGraph(Made(TextModel(kTwoLayers), options).model);
  const Tensor& a = graph.initializers.at("first_weight.lora_A");
  EXPECT_EQ(a.shape(), (Shape{4, 64}));
  EXPECT_EQ(graph.initializers.at("first_weight.lora_B").shape(), (Shape{64, 3}));
  // kaiming_uniform with a = sqrt(5): up to 1/sqrt(4), a variance of a third of its square.
  double most = 0, squares = 0;
  for (const double v : Values(a)) {
    most = std::max(most, std::abs(v));
    squares += v * v / 256;
  }
  EXPECT_LE(most, 0.5);
  EXPECT_GT(most, 0.48);
  EXPECT_NEAR(squares, 0.25 / 3, 0.02);
  for (const double v : Values(graph.initializers.at("first_weight.lora_B"))) EXPECT_EQ(v, 0);
  EXPECT_EQ(Values(graph.initializers.at("first_weight.lora_scale"))[0], 0.25);
  EXPECT_EQ(graph.ValueMetadata("first_weight.lora_A", "ai.onward.lora.target"), "first_weight");
  EXPECT_EQ(graph.ValueMetadata("first_weight.lora_B", "ai.onward.lora.part"), "B");
  EXPECT_EQ(graph.ValueMetadata("first_weight.lora_A", "ai.onward.lora.alpha"), "16");
  options.seed = 1;
  const Graph other = *InferenceGraph(Made(TextModel(kTwoLayers), options).model);
  EXPECT_FALSE(Identical(a, other.initializers.at("first_weight.lora_A")));
  EXPECT_TRUE(
      Identical(graph.initializers.at("first_weight"), other.initializers.at("first_weight")));
}

TEST(Lora, GroupsOfConvolutionsHaveNoMoreRankThanTheyCanUse) {
  const Model model =
      TextModel("m (float[N, 4, 5, 5] x) => (float[N, 4, 5, 5] y) <float[4, 1, 3, 3] W " +
                Numbers(36) + "> { y = Conv <group = 4, pads = [1, 1, 1, 1]> (x, W) }");
  const Graph graph = *InferenceGraph(Made(model, WithLora("W:rank=8,alpha=8")).model);
  EXPECT_EQ(graph.initializers.at("W.lora_A").shape(), (Shape{4, 1, 3, 3}));
  EXPECT_EQ(graph.initializers.at("W.lora_B").shape(), (Shape{4, 1, 1, 1}));
  EXPECT_EQ(Values(graph.initializers.at("W.lora_scale"))[0], 1);
}

TEST(Lora, InitializationDrawsAdaptersAgain) {
  AuthorOptions options = WithLora("*");
  options.init = ParseInit("ones").value();
  auto training = Open(Made(TextModel(kTwoLayers), options).model);
  const std::vector<double> first = ValueOf(*training, "first_weight.lora_A");
  ASSERT_TRUE(training->Step({{"x", Data({3, 4}, 1)}, {"label", Data({3, 2}, 9)}}).ok());
  training->set_random({7, 0});
  ASSERT_TRUE(training->Initialize().ok());
  const std::vector<double> again = ValueOf(*training, "first_weight.lora_A");
  EXPECT_NE(again, first);
  for (const double v : again) EXPECT_LE(std::abs(v), 0.5);
  for (const double v : ValueOf(*training, "first_weight.lora_B")) EXPECT_EQ(v, 0);
}

TEST(Lora, DropoutIsOfTrainingAlone) {
  AuthorOptions options = WithLora("*:rank=2,dropout=0.5");
  auto training = Open(Made(TextModel(kTwoLayers), options).model);
  const TensorMap feeds = {{"x", Data({3, 4}, 1)}, {"label", Data({3, 2}, 9)}};
  ASSERT_TRUE(training->Step(feeds).ok());
  const std::string output = training->model().Metadata(kMetaTrainOutput);
  std::set<std::vector<double>> seen;
  const Model now = *training->Export();
  for (uint64_t step = 1; step <= 8; ++step) {
    auto copy = Open(now);
    copy->set_random({0, step});
    seen.insert(Values(copy->Step(feeds, {output})->at(output)));
  }
  EXPECT_GT(seen.size(), 1u);
  EXPECT_EQ(CountOps(Merge(now).model, "Dropout"), 0);
}

TEST(Lora, BothGradientFormsAgree) {
  AuthorOptions options = WithLora("*:rank=2,alpha=4");
  std::vector<Variables> after;
  for (const GradientForm form : {GradientForm::kOperator, GradientForm::kExpanded}) {
    options.gradient = form;
    auto training = Open(Reread(Made(TextModel(kTwoLayers), options).model));
    for (int i = 0; i < 3; ++i)
      ASSERT_TRUE(training->Step({{"x", Data({3, 4}, 1)}, {"label", Data({3, 2}, 9)}}).ok());
    after.push_back(training->variables());
  }
  for (const auto& [name, tensor] : after[0])
    EXPECT_LE(Distance(tensor, after[1].at(name)), 1e-6) << name;
}

// One step by hand: with B = 0 only B moves, by -lr s (xA)^T dy.
TEST(Lora, TheFirstStepIsTheFormula) {
  AuthorOptions options = WithLora("W:rank=1,alpha=2");
  auto training =
      Open(Made(TextModel("m (float[1, 2] x) => (float[1, 1] y) <float[2, 1] W = {1, 2}> "
                          "{ y = MatMul(x, W) }"),
                options)
               .model);
  const std::vector<double> a = ValueOf(*training, "W.lora_A");
  ASSERT_TRUE(
      training->Step({{"x", Floats({1, 2}, {3, 4})}, {"label", Floats({1, 1}, {10})}}).ok());
  EXPECT_EQ(ValueOf(*training, "W.lora_A"), a);
  const double dy = 2 * (11 - 10);
  EXPECT_NEAR(ValueOf(*training, "W.lora_B")[0], -0.5 * 2 * (3 * a[0] + 4 * a[1]) * dy, 1e-5);
}

TEST(Lora, GoesWithTrainFreezeAndGroups) {
  struct Case {
    std::vector<std::string> lora, train, freeze, learns;
  };
  for (const Case& c : std::vector<Case>{
           {{"first_*"}, {}, {}, {"first_weight.lora_A", "first_weight.lora_B"}},
           {{"first_*"},
            {"last_*"},
            {},
            {"first_weight.lora_A", "first_weight.lora_B", "last_weight", "last_bias"}},
           // A pattern that means the base, too, leaves it alone.
           {{"first_*"},
            {"first_*"},
            {},
            {"first_weight.lora_A", "first_weight.lora_B", "first_bias"}},
           {{"*"}, {}, {"*.lora_A"}, {"first_weight.lora_B", "last_weight.lora_B"}},
           {{"first_*", "last_*"}, {}, {"last_*"}, {"first_weight.lora_A", "first_weight.lora_B"}},
       }) {
    AuthorOptions options = WithLora(c.lora[0]);
    for (size_t i = 1; i < c.lora.size(); ++i) options.lora.push_back(Lora(c.lora[i]));
    options.train = c.train;
    options.freeze = c.freeze;
    EXPECT_THAT(Made(TextModel(kTwoLayers), options).trained,
                testing::UnorderedElementsAreArray(c.learns))
        << absl::StrJoin(c.lora, " ") << " | " << absl::StrJoin(c.train, " ");
  }
  // The first pattern that means a weight counts.
  AuthorOptions options = WithLora("last_weight:rank=1");
  options.lora.push_back(Lora("*:rank=3"));
  options.groups = {ParseGroup("*.lora_B:lr=0").value()};
  auto training = Open(Made(TextModel(kTwoLayers), options).model);
  EXPECT_EQ(training->variables().at("last_weight.lora_A").shape(), (Shape{3, 1}));
  EXPECT_EQ(training->variables().at("first_weight.lora_A").shape(), (Shape{4, 3}));
  ASSERT_TRUE(training->Step({{"x", Data({3, 4}, 1)}, {"label", Data({3, 2}, 9)}}).ok());
  for (const double v : ValueOf(*training, "first_weight.lora_B")) EXPECT_EQ(v, 0);
}

TEST(Lora, StatisticsStay) {
  const Model model = TextModel(R"(
      m (float[N, 2] x) => (float[N, 2] y)
      <float[2] s = {1, 1}, float[2] b = {0, 0}, float[2] mean = {0, 0.5}, float[2] var = {1, 2},
       float[2, 2] W = {1, 2, 3, 4}> {
        n = BatchNormalization(x, s, b, mean, var)
        y = MatMul(n, W)
      })");
  auto training = Open(Made(model, WithLora("W:rank=1")).model);
  EXPECT_FALSE(training->variables().contains("mean"));
  EXPECT_THAT(training->variables(), Contains(testing::Key("W.lora_A")));
}

TEST(Lora, GoesOnWithAdaptersThatAreThere) {
  auto first = Open(Made(TextModel(kTwoLayers), WithLora("first_*:rank=2")).model);
  const TensorMap feeds = {{"x", Data({3, 4}, 1)}, {"label", Data({3, 2}, 9)}};
  ASSERT_TRUE(first->Step(feeds).ok());
  const Model kept = InferenceOnly(*first->Export());
  const AuthorResult made = Made(kept, WithLora("*:rank=4"));
  EXPECT_THAT(made.notes, Contains(HasSubstr("'first_weight' has an adapter already")));
  EXPECT_THAT(made.trained, UnorderedElementsAre("first_weight.lora_A", "first_weight.lora_B",
                                                 "last_weight.lora_A", "last_weight.lora_B"));
  EXPECT_EQ(Open(made.model)->variables().at("first_weight.lora_A").shape(), (Shape{4, 2}));
}

// Other runtimes ask for it.
TEST(Lora, NamesOfNodesAreUnique) {
  Graph graph = *InferenceGraph(TextModel(kTwoLayers));
  for (size_t i = 0; i < graph.nodes.size(); ++i) graph.nodes[i].name = absl::StrCat("node", i);
  const AuthorResult made =
      Made(ModelFromGraph(graph, 8, "test"), WithLora("*:rank=1,dropout=0.5"));
  const Graph adapted = *InferenceGraph(made.model);
  std::set<std::string> names;
  for (const Node& node : adapted.nodes) EXPECT_TRUE(names.insert(node.name).second) << node.name;
  EXPECT_EQ(names.size(), 3u + 2 * 5);
}

// Anybody may write metadata.
TEST(Lora, MetadataThatMeanNothingAreLeftAlone) {
  const Graph graph = *InferenceGraph(Made(TextModel(kTwoLayers), WithLora("first_*")).model);
  ASSERT_EQ(FindAdapters(graph).size(), 1u);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{kLoraRankKey, "many"},
                                                        {kLoraRankKey, "0"},
                                                        {kLoraRankKey, "1e300"},
                                                        {kLoraAlphaKey, "nan"},
                                                        {kLoraUseKey, "-1"},
                                                        {kLoraUseKey, "1e99"},
                                                        {kLoraDropoutKey, "2"},
                                                        {kLoraTargetKey, ""},
                                                        {kLoraPartKey, "C"}}) {
    Graph changed = graph;
    changed.metadata["first_weight.lora_A"][key] = value;
    EXPECT_THAT(FindAdapters(changed), IsEmpty()) << key << " " << value;
  }
}

TEST(Lora, PatternsThatMeanNothingListWhatThereIs) {
  EXPECT_THAT(Error(TextModel(kTwoLayers), WithLora("attention.*")),
              HasSubstr("pattern 'attention.*' matches no weight of a MatMul, Gemm, Conv or "
                        "MatMulNBits; there are: first_weight, last_weight"));
  EXPECT_THAT(Error(TextModel("m (float[N, 2] x) => (float[N, 2] y) <float[2] W = {1, 2}> { y = "
                              "Mul(x, W) }"),
                    WithLora("*")),
              HasSubstr("there are: none"));
  AuthorOptions options = WithLora("first_*");
  options.train = {"first_weight"};
  EXPECT_THAT(Error(TextModel(kTwoLayers), options),
              HasSubstr("'first_weight' has an adapter and stays as it is"));
}

TEST(Lora, TextsAreParsed) {
  const LoraSpec spec = Lora("dense:0:rank=4,alpha=2.5,dropout=0.1");
  EXPECT_EQ(spec.pattern, "dense:0");
  EXPECT_EQ(spec.rank, 4);
  EXPECT_EQ(spec.alpha, 2.5);
  EXPECT_EQ(spec.dropout, 0.1);
  EXPECT_EQ(Lora("dense:0").pattern, "dense:0");
  EXPECT_EQ(Lora("*").rank, 8);
  EXPECT_EQ(Lora("*").alpha, 8);
  for (const char* wrong : {"", ":rank=2", "*:rank=0", "*:rank=1.5", "*:rang=2", "*:alpha=0",
                            "*:dropout=1", "*:rank=1000000"}) {
    EXPECT_FALSE(ParseLora(wrong).ok()) << wrong;
  }
}

TEST(Lora, FilesThatDoNotFitAreRefused) {
  auto training = Open(Made(TextModel(kTwoLayers), WithLora("first_*:rank=2")).model);
  const Model trained = *training->Export(), file = *AdaptersApart(trained);
  const auto refusal = [&](const Model& model, const Model& adapters) {
    return std::string(WithAdapters(model, adapters, DefaultEnvironment()).status().message());
  };
  const std::string other = "m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] ";
  EXPECT_THAT(refusal(TextModel(other + "W = {1, 2, 3, 4}> { y = MatMul(x, W) }"), file),
              HasSubstr("an adapter for 'first_weight', but no such weight"));
  EXPECT_THAT(
      refusal(TextModel(other + "first_weight = {1, 2, 3, 4}> { y = MatMul(x, first_weight) }"),
              file),
      AllOf(HasSubstr("do not fit a weight [2, 2]"), HasSubstr("A [4, 2]")));
  EXPECT_THAT(refusal(InferenceOnly(trained), file), HasSubstr("has an adapter already"));
  EXPECT_THAT(refusal(TextModel(kTwoLayers), TextModel(kTwoLayers)),
              HasSubstr("holds no adapters"));
  EXPECT_THAT(AdaptersApart(TextModel(kTwoLayers)).status().message(),
              HasSubstr("has no adapters"));
}

// Another program may have rewritten the graph.
TEST(Lora, WhatLooksOtherwiseIsNotMerged) {
  const Model trained = Made(TextModel(kTwoLayers), WithLora("first_*:rank=2")).model;
  const Graph graph = *InferenceGraph(trained);
  const auto refusal = [&](const std::function<void(Node*)>& change) {
    Graph changed = graph;
    for (Node& node : changed.nodes) change(&node);
    auto merged = MergeAdapters(MergeMode::kFloat, DefaultEnvironment(), &changed);
    return merged.ok() ? "" : std::string(merged.status().message());
  };
  EXPECT_EQ(refusal([](Node*) {}), "");
  EXPECT_THAT(refusal([](Node* n) {
                if (n->Is("Mul")) n->op_type = "Div";
              }),
              AllOf(HasSubstr("the adapter of 'first_weight' does not look as it was written"),
                    HasSubstr("--merge none")));
  EXPECT_THAT(refusal([](Node* n) {
                if (n->Is("Gemm") && absl::StrContains(n->inputs[1], "lora"))
                  n->attributes["alpha"] = 2.0f;
              }),
              HasSubstr("does not look as"));
  EXPECT_THAT(refusal([](Node* n) {
                if (n->Is("Tanh")) n->inputs[0] = "h__base";
              }),
              HasSubstr("does not look as"));
}

}  // namespace onward::lora_authoring_test

// SPDX-License-Identifier: Apache-2.0
#include "losses/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onward::loss_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kN = -1, kS = -2, kM = -3;  // dimensions known by name only

ValueType Type(DType dtype, const std::vector<int64_t>& dims) {
  ValueType type = ValueType::Unranked(dtype);
  type.has_rank = true;
  for (const int64_t dim : dims) {
    const char* symbol = dim == kN ? "N" : dim == kS ? "S" : dim == kM ? "M" : "";
    type.dims.push_back({dim < 0 ? -1 : dim, symbol});
  }
  return type;
}

std::vector<std::string> Operators(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) {
    if (!node.Is("Constant")) ops.push_back(node.op_type);
  }
  return ops;
}

std::string ErrorOf(const char* text) {
  const absl::StatusOr<LossSpec> spec = ParseLoss(text);
  EXPECT_FALSE(spec.ok()) << text;
  return std::string(spec.status().message());
}

// The loss over inputs "output" and "label" of these types.
struct Built {
  Graph graph;
  absl::StatusOr<Expr> loss = Expr();
};

Built Build(const char* text, ValueType output, ValueType label) {
  Built built;
  const absl::StatusOr<LossSpec> spec = ParseLoss(text);
  if (!spec.ok()) {
    built.loss = spec.status();
    return built;
  }
  GraphBuilder b(&built.graph, nullptr);
  const Expr o = b.Input("output", std::move(output));
  const Expr l = b.Input("label", std::move(label));
  built.loss = BuildLoss(b, *spec, o, l);
  return built;
}

// With the label type that the loss itself asks for, and so many outputs.
Built Build(const char* text, const ValueType& output, size_t count = 1) {
  const absl::StatusOr<LossSpec> spec = ParseLoss(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (count == 1) return Build(text, output, LabelType(*spec, output));
  Built built;
  GraphBuilder b(&built.graph, nullptr);
  std::vector<Expr> outputs;
  while (outputs.size() < count) outputs.push_back(b.Input(b.UniqueName("output"), output));
  const Expr label = b.Input("label", LabelType(*spec, output, count));
  built.loss = BuildLoss(b, *spec, outputs, label);
  return built;
}

TEST(ParseLoss, ReadsNameAndOptions) {
  const absl::StatusOr<LossSpec> spec =
      ParseLoss("cross_entropy:ignore_index=-100,label_smoothing=0.1,logits=probabilities,axis=-1");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "cross_entropy");
  EXPECT_EQ(spec->options.at("ignore_index"), "-100");
  for (const std::string& name : LossNames()) EXPECT_TRUE(ParseLoss(name).ok()) << name;
}

TEST(ParseLoss, SuggestsTheNearest) {
  EXPECT_THAT(ErrorOf("crossentropy"), HasSubstr("did you mean 'cross_entropy'?"));
  EXPECT_THAT(ErrorOf("loss"), HasSubstr("valid: bce, contrastive, cosine, cross_entropy"));
  EXPECT_THAT(ErrorOf("cross_entropy:ignore_idx=1"), HasSubstr("did you mean 'ignore_index'?"));
  EXPECT_THAT(ErrorOf("mse:delta=1"), HasSubstr("unknown option of loss 'mse' 'delta'"));
}

TEST(ParseLoss, RefusesBadValues) {
  EXPECT_THAT(ErrorOf("cross_entropy:label_smoothing=1"), HasSubstr("a number in [0, 1)"));
  EXPECT_THAT(ErrorOf("cross_entropy:ignore_index=1.5"), HasSubstr("an integer"));
  EXPECT_THAT(ErrorOf("cross_entropy:logits=maybe"), HasSubstr("one of logits, probabilities"));
  EXPECT_THAT(ErrorOf("nll:axis=2"), HasSubstr("one of 1, -1"));
  EXPECT_THAT(ErrorOf("huber:delta=0"), HasSubstr("a number > 0"));
}

TEST(ParseLoss, TakesListsAndTypes) {
  EXPECT_TRUE(ParseLoss("cross_entropy:weight=0.5/1/2.5").ok());
  EXPECT_THAT(ErrorOf("cross_entropy:weight=1/-1"), HasSubstr("a number >= 0"));
  EXPECT_THAT(ErrorOf("cross_entropy:weight=1/x"), HasSubstr("got 'x'"));
  EXPECT_THAT(ErrorOf("mse:label_type=uint9"), HasSubstr("did you mean 'uint8'?"));
  EXPECT_THAT(ErrorOf("mse:reduction=none"), HasSubstr("one of mean, sum"));
}

TEST(LabelType, IsWhatTheLossSays) {
  const ValueType scores = Type(DType::kFloat, {kN, 10});
  EXPECT_EQ(LabelType(*ParseLoss("cross_entropy:soft_labels=1"), scores), scores);
  EXPECT_EQ(LabelType(*ParseLoss("bce:label_type=bool"), scores), Type(DType::kBool, {kN, 10}));
  EXPECT_EQ(LabelType(*ParseLoss("contrastive"), scores), Type(DType::kInt64, {kN}));
  EXPECT_EQ(LabelType(*ParseLoss("contrastive"), scores, 2), Type(DType::kFloat, {kN}));
  EXPECT_FALSE(TakesLabel(*ParseLoss("triplet"), 3));
  EXPECT_TRUE(TakesLabel(*ParseLoss("triplet"), 1));
  EXPECT_EQ(LabelType(*ParseLoss("ctc"), Type(DType::kFloat, {kS, kN, 10})).dims[0].symbol, "N");
}

TEST(Loss, ComparesAsManyOutputsAsItSays) {
  const ValueType output = Type(DType::kFloat, {kN, 3});
  EXPECT_TRUE(Build("triplet", output, 3).loss.ok());
  const Built two = Build("triplet", output, 2);
  ASSERT_FALSE(two.loss.ok());
  EXPECT_THAT(std::string(two.loss.status().message()),
              HasSubstr("compares 1 or 3 outputs of the model, got 2"));
  EXPECT_FALSE(Build("mse", output, 2).loss.ok());
}

TEST(LabelType, DropsTheClassAxis) {
  const LossSpec loss = *ParseLoss("cross_entropy");
  EXPECT_EQ(LabelType(loss, Type(DType::kFloat, {kN, 10})), Type(DType::kInt64, {kN}));
  EXPECT_EQ(LabelType(loss, Type(DType::kFloat16, {kN, 21, 64, 48})),
            Type(DType::kInt64, {kN, 64, 48}));
  EXPECT_EQ(LabelType(loss, ValueType::Unranked(DType::kFloat)),
            ValueType::Unranked(DType::kInt64));
  EXPECT_TRUE(IsClassLoss(loss));
}

TEST(LabelType, IgnoresTrailingOnes) {
  EXPECT_EQ(LabelType(*ParseLoss("nll"), Type(DType::kFloat, {kN, 1000, 1, 1})),
            Type(DType::kInt64, {kN}));
}

TEST(LabelType, FollowsTheClassAxis) {
  EXPECT_EQ(LabelType(*ParseLoss("cross_entropy:axis=-1"), Type(DType::kFloat, {kN, kS, 50257})),
            Type(DType::kInt64, {kN, kS}));
}

TEST(LabelType, IsTheOutputsForRegression) {
  const ValueType output = Type(DType::kDouble, {kN, 1});
  for (const char* name : {"mse", "l1", "huber", "bce"}) {
    EXPECT_EQ(LabelType(*ParseLoss(name), output), output);
    EXPECT_FALSE(IsClassLoss(*ParseLoss(name)));
  }
}

TEST(CrossEntropy, IsTheStandardsNode) {
  const Built built = Build("cross_entropy:ignore_index=-100", Type(DType::kFloat, {kN, 10}));
  ASSERT_TRUE(built.loss.ok()) << built.loss.status();
  ASSERT_THAT(Operators(built.graph), ElementsAre("SoftmaxCrossEntropyLoss"));
  const Node& node = built.graph.nodes.back();
  EXPECT_THAT(node.inputs, ElementsAre("output", "label"));
  EXPECT_EQ(node.Int("ignore_index", 0), -100);
  EXPECT_EQ(node.String("reduction", ""), "mean");
}

TEST(CrossEntropy, LeavesIgnoreIndexOutUnlessGiven) {
  const Built built = Build("cross_entropy", Type(DType::kFloat, {kN, 10}));
  ASSERT_TRUE(built.loss.ok()) << built.loss.status();
  EXPECT_FALSE(built.graph.nodes.back().Has("ignore_index"));
}

TEST(CrossEntropy, TakesProbabilitiesAndLogProbabilities) {
  const Built p = Build("cross_entropy:logits=probabilities", Type(DType::kFloat, {kN, 10}));
  ASSERT_TRUE(p.loss.ok()) << p.loss.status();
  EXPECT_THAT(Operators(p.graph), ElementsAre("Max", "Log", "NegativeLogLikelihoodLoss"));
  const Built log_p =
      Build("cross_entropy:logits=log_probabilities", Type(DType::kFloat, {kN, 10}));
  ASSERT_TRUE(log_p.loss.ok()) << log_p.loss.status();
  EXPECT_THAT(Operators(log_p.graph), ElementsAre("NegativeLogLikelihoodLoss"));
}

TEST(CrossEntropy, FlattensOnePredictionPerExample) {
  const ValueType output = Type(DType::kFloat, {kN, 10, 1, 1});
  const Built flat = Build("cross_entropy", output);
  ASSERT_TRUE(flat.loss.ok()) << flat.loss.status();
  EXPECT_THAT(Operators(flat.graph), ElementsAre("Reshape", "SoftmaxCrossEntropyLoss"));
  const Built standard = Build("cross_entropy", output, Type(DType::kInt64, {kN, 1, 1}));
  ASSERT_TRUE(standard.loss.ok()) << standard.loss.status();
  EXPECT_THAT(Operators(standard.graph), ElementsAre("SoftmaxCrossEntropyLoss"));
}

TEST(CrossEntropy, FlattensWhereClassesAreLast) {
  const Built built = Build("cross_entropy:axis=-1", Type(DType::kFloat, {kN, 7, 50}));
  ASSERT_TRUE(built.loss.ok()) << built.loss.status();
  EXPECT_THAT(Operators(built.graph),
              ElementsAre("Shape", "Concat", "Reshape", "Reshape", "SoftmaxCrossEntropyLoss"));
}

TEST(Loss, RefusesLabelsThatWouldBroadcast) {
  const ValueType output = Type(DType::kFloat, {kN, 1});
  const Built built = Build("mse", output, Type(DType::kFloat, {kN}));
  ASSERT_FALSE(built.loss.ok());
  EXPECT_THAT(std::string(built.loss.status().message()),
              HasSubstr("loss 'mse': 'label' has to be"));
  EXPECT_FALSE(Build("mse", output, Type(DType::kFloat, {kN, 3})).loss.ok());
  EXPECT_TRUE(Build("mse", output, Type(DType::kFloat, {kM, 1})).loss.ok());
}

TEST(Loss, RefusesWrongTypes) {
  const ValueType scores = Type(DType::kFloat, {kN, 10});
  EXPECT_FALSE(Build("cross_entropy", scores, Type(DType::kFloat, {kN})).loss.ok());
  EXPECT_TRUE(Build("cross_entropy", scores, Type(DType::kInt32, {kN})).loss.ok());
  EXPECT_FALSE(Build("cross_entropy", Type(DType::kFloat, {kN})).loss.ok());
  EXPECT_FALSE(Build("cross_entropy", Type(DType::kInt64, {kN, 10})).loss.ok());
  EXPECT_FALSE(Build("l1", scores, Type(DType::kDouble, {kN, 10})).loss.ok());
}

TEST(Loss, EveryLossIsBuiltOfStandardOperators) {
  for (const std::string& name : LossNames()) {
    const ValueType output =
        name == "ctc" ? Type(DType::kFloat, {kS, kN, 10}) : Type(DType::kFloat, {kN, 10});
    const Built built = Build(name.c_str(), output, OutputsOf(*ParseLoss(name)));
    ASSERT_TRUE(built.loss.ok()) << built.loss.status();
    for (const Node& node : built.graph.nodes) EXPECT_EQ(node.domain, "") << node.Describe();
  }
}

}  // namespace onward::loss_test

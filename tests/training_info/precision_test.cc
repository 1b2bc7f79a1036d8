// SPDX-License-Identifier: Apache-2.0
// Training in bfloat16 and float16: what is cast, and what is not.
#include "training_info/surgery/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "absl/strings/str_cat.h"
#include "core/graph/infer.h"
#include "tests/support/precision_network.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/combine.h"
#include "training_info/import.h"
#include "training_info/loss_parts.h"
#include "training_info/lower.h"

namespace onward::precision_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "Conv:float16" for every node of the algorithm that computes in a floating-point type.
std::vector<std::string> Computations(const Model& model) {
  auto spec = ImportTraining(model);
  EXPECT_TRUE(spec.ok());
  auto graph = Combine(*spec, 0);
  EXPECT_TRUE(graph.ok());
  EXPECT_TRUE(InferTypes(&*graph, DefaultEnvironment().operators()).ok());
  std::vector<std::string> types;
  for (size_t i = spec->inference.nodes.size(); i < graph->nodes.size(); ++i) {
    const Node& node = graph->nodes[i];
    if (node.Is("SoftmaxCrossEntropyLoss")) break;
    const ValueType* type = graph->TypeOf(node.outputs[0]);
    if (node.Is("Cast") || type == nullptr || !IsFloating(type->dtype)) continue;
    types.push_back(absl::StrCat(node.op_type, ":", DTypeName(type->dtype)));
  }
  return types;
}

class Precisions : public testing::TestWithParam<DType> {
 protected:
  std::string low() const { return std::string(DTypeName(GetParam())); }
};

TEST_P(Precisions, CastsWhatMayBeCast) {
  const AuthorResult made = MadeSound(Convolutional(DType::kFloat), InPrecision(GetParam()));
  const std::string t = ":" + low();
  EXPECT_THAT(
      Computations(made.model),
      ElementsAre("Conv" + t, "BatchNormalization:float", "Relu:float", "GlobalAveragePool:float",
                  "Flatten:float", "MatMul" + t, "Add" + t, "Tanh" + t, "Gemm" + t));
  auto model = Open(made.model);
  for (const auto& [name, tensor] : model->variables()) {
    EXPECT_TRUE(!IsFloating(tensor.dtype()) || tensor.dtype() == DType::kFloat) << name;
  }
}

TEST_P(Precisions, LearnsLikeFloat) {
  auto wide = Open(MadeSound(Convolutional(DType::kFloat), InPrecision(DType::kUndefined)).model);
  auto low = Open(Reread(MadeSound(Convolutional(DType::kFloat), InPrecision(GetParam())).model));
  double first = 0, last = 0, reference = 0;
  for (int i = 0; i < 30; ++i) {
    reference = LossOfStep(wide.get(), ConvolutionalFeeds(i % 3));
    last = LossOfStep(low.get(), ConvolutionalFeeds(i % 3));
    if (i == 0) first = last;
  }
  EXPECT_LT(last, 0.8 * first);
  EXPECT_NEAR(last, reference, 0.15 * first);
  EXPECT_NE(last, reference);
}

TEST_P(Precisions, AModelOf16BitsHasMasters) {
  const Model source = Convolutional(GetParam());
  AuthorOptions options = InPrecision(GetParam());
  options.optimizer = ParseOptimizer("adam:lr=0.001").value();  // the standard's, of float alone
  const AuthorResult made = MadeSound(source, options);
  auto model = Open(Reread(made.model));
  const std::vector<double> start = ValueOf(*model, "K__master");
  EXPECT_EQ(start, ValueOf(*model, "K"));
  double first = 0, last = 0;
  for (int i = 0; i < 40; ++i) {
    last = LossOfStep(model.get(), ConvolutionalFeeds(i % 3, GetParam()));
    if (i == 0) first = last;
    for (const std::string& name : made.trained) {
      const Variables& v = std::as_const(*model).variables();
      EXPECT_EQ(v.at(name).dtype(), GetParam());
      EXPECT_EQ(v.at(name + "__master").dtype(), DType::kFloat);
      EXPECT_TRUE(Identical(v.at(name), RoundedTo(GetParam(), v.at(name + "__master")))) << name;
    }
  }
  EXPECT_LT(last, first);
  EXPECT_NE(ValueOf(*model, "K__master"), start);
  EXPECT_EQ(model->variables().at("mean").dtype(), GetParam());
  EXPECT_EQ(model->Infer({{"x", ConvolutionalFeeds(0, GetParam())["x"]}})->at("y").dtype(),
            GetParam());
  // Masters begin where weights do, drawn ones, too.
  ASSERT_TRUE(model->Initialize().ok());
  EXPECT_EQ(ValueOf(*model, "K__master"), ValueOf(*model, "K"));
}

// The loss of training is float: at the outputs of inference it takes what these hold.
TEST_P(Precisions, AModelOf16BitsIsEvaluatedByTheLossOfTraining) {
  AuthorOptions options = InPrecision(GetParam());
  options.loss = ParseLoss("mse").value();
  const AuthorResult made = MadeSound(Convolutional(GetParam()), options);
  LossParts losses = StoredLosses(made.model).value();
  auto graph = LossGraph(ImportTraining(made.model).value(), &losses);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto lowered = Lower(*graph, DefaultEnvironment());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  CompileOptions compile = DefaultEnvironment().compile_options();
  compile.outputs = {losses.sum};
  const TensorMap feeds = {{"x", ConvolutionalFeeds(0, GetParam()).at("x")},
                           {"label", Tensor::Zeros(DType::kFloat, {8, 2})}};
  auto out = Session(*std::move(lowered), compile).Run(feeds, nullptr);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->at(losses.sum).dtype(), DType::kFloat);
}

INSTANTIATE_TEST_SUITE_P(Types, Precisions, testing::Values(DType::kBFloat16, DType::kFloat16),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

struct Row {
  std::string name, text;
  std::vector<std::string> computations;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Parts : public testing::TestWithParam<Row> {};

TEST_P(Parts, HaveTheirPrecision) {
  AuthorOptions options = InPrecision(DType::kFloat16);
  options.loss = ParseLoss("mse").value();
  auto made = MakeTrainable(TextModel(GetParam().text), options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  std::vector<std::string> computed = Computations(made->model);
  computed.resize(std::min(computed.size(), GetParam().computations.size()));
  EXPECT_EQ(computed, GetParam().computations);
}

constexpr char kWeights[] =
    "<float[2, 2] W = {1, 2, 3, 4}, float[2] s = {1, 1}, float[2] b = {0, 0}, "
    "float[2, 2] V = {1, 0, 0, 1}, float large = {-1e9}>";

INSTANTIATE_TEST_SUITE_P(
    Networks, Parts,
    testing::Values(
        Row{"NormalisationAndSoftmaxAreFloat",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) n = LayerNormalization(h, s, b) p = Softmax(n) "
                         "y = MatMul(p, V) }"),
            {"MatMul:float16", "LayerNormalization:float", "Softmax:float", "MatMul:float16"}},
        Row{"ResidualsPromote",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) r = Add(h, x) y = MatMul(r, V) }"),
            {"MatMul:float16", "Add:float", "MatMul:float16"}},
        Row{"WhatFloat16CannotHoldStaysFloat",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) l = Max(h, large) y = MatMul(l, V) }"),
            {"MatMul:float16", "Max:float", "MatMul:float16"}},
        Row{"ReductionsAreFloat",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) e = Exp(h) l = ReduceSum <keepdims = 1> (e) "
                         "d = Div(h, l) y = MatMul(d, V) }"),
            {"MatMul:float16", "Exp:float", "ReduceSum:float", "Div:float", "MatMul:float16"}},
        Row{"MovementFollows",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) t = Transpose(h) u = Transpose(t) "
                         "y = MatMul(u, V) }"),
            {"MatMul:float16", "Transpose:float16", "Transpose:float16", "MatMul:float16"}},
        Row{"BranchesKeepTheirTypes",
            absl::StrCat("m (bool c, float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ h = MatMul(x, W) z = If (c) < then_branch = t () => (float[N, 2] u) "
                         "{ u = Mul(h, x) }, else_branch = e () => (float[N, 2] v) "
                         "{ v = Identity(h) }> y = MatMul(z, V) }"),
            {"MatMul:float16", "If:float", "MatMul:float16"}},
        Row{"CastsOfTheFileGoAway",
            absl::StrCat("m (float[N, 2] x) => (float[N, 2] y) ", kWeights,
                         "{ d = Cast <to = 10> (x) e = Cast <to = 1> (d) h = MatMul(e, W) "
                         "y = MatMul(h, V) }"),
            {"MatMul:float16", "MatMul:float16"}}),
    [](const auto& info) { return info.param.name; });

TEST(Precision, AdaptersLearnInIt) {
  AuthorOptions options = InPrecision(DType::kFloat16);
  options.lora = {ParseLora("W:rank=2").value()};
  options.ema = 0.5;
  auto model = Open(Reread(MadeSound(Convolutional(DType::kFloat16), options).model));
  const auto now = [&](const std::string& name) { return ValueOf(*model, name); };
  EXPECT_EQ(model->variables().at("W.lora_B__master").dtype(), DType::kFloat);
  EXPECT_FALSE(std::as_const(*model).variables().contains("W__master"));
  const std::vector<double> before = now("W.lora_B__master");
  *model->variables().at("onward_loss_scale").data<float>() = 1024;
  for (int i = 0; i < 5; ++i) LossOfStep(model.get(), ConvolutionalFeeds(i, DType::kFloat16));
  EXPECT_EQ(ValueOf(*model, "onward_skipped_steps")[0], 0);
  EXPECT_NE(now("W.lora_B__master"), before);
  EXPECT_NE(now("W.lora_B__ema"), before);
}

TEST(Precision, IsSuggestedForCoarseWeights) {
  const auto suggests = [](DType weights, DType precision) {
    AuthorOptions options = InPrecision(precision);
    const auto notes = MadeSound(Convolutional(weights), options).notes;
    return testing::Value(notes, testing::Contains(HasSubstr("--precision float16 trains float")));
  };
  EXPECT_TRUE(suggests(DType::kFloat16, DType::kUndefined));
  EXPECT_FALSE(suggests(DType::kFloat16, DType::kFloat16));
  EXPECT_FALSE(suggests(DType::kFloat, DType::kUndefined));
}

TEST(Precision, NeedsAProductOfFloats) {
  AuthorOptions options = InPrecision(DType::kFloat16);
  options.loss = ParseLoss("mse").value();
  for (const char* text : {"m (float[2] x) => (float[2] y) <float[2] W = {1, 2}> { y = Mul(x, W) }",
                           "m (double[2, 2] x) => (double[2, 2] y) <double[2, 2] W = {1, 2, 3, 4}> "
                           "{ y = MatMul(x, W) }"}) {
    auto made = MakeTrainable(TextModel(text), options, DefaultEnvironment());
    EXPECT_THAT(std::string(made.status().message()), HasSubstr("can be computed in float16"));
  }
  options.precision = DType::kDouble;
  auto made = MakeTrainable(Convolutional(DType::kFloat), options, DefaultEnvironment());
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("precision is double"));
}

}  // namespace onward::precision_test

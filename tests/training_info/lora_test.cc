// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters: what is written, what learns, and that merged, kept and applied adapters are
// one function.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/adapters/files.h"
#include "training_info/author.h"
#include "training_info/export.h"
#include "training_info/import.h"
#include "training_info/lower.h"
#include "training_info/validate.h"

namespace onward {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr double kTolerance = 1e-5;

// Numbers between -1 and 1 that look random, as the text of an initializer: "= {0.25, -0.5}".
std::string Numbers(int64_t n, int seed = 1) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < n; ++i)
    texts.push_back(absl::StrCat(std::round(1000 * std::sin(12.9898 * (i + 1) * seed)) / 1000));
  return absl::StrCat("= {", absl::StrJoin(texts, ", "), "}");
}
std::string Integers(int64_t n, int64_t low, int64_t count) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < n; ++i) texts.push_back(absl::StrCat(low + (i * 37 + 11) % count));
  return absl::StrCat("= {", absl::StrJoin(texts, ", "), "}");
}

Tensor Data(const Shape& shape, int seed) {
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < t.elements(); ++i)
    t.data<float>()[i] = static_cast<float>(std::cos(7.77 * static_cast<double>(i + seed)));
  return t;
}

LoraSpec Lora(const std::string& text) { return ParseLora(text).value(); }

AuthorOptions WithLora(const std::string& text) {
  AuthorOptions options;
  options.loss = {"mse", {}};
  options.optimizer = {"sgd", {{"lr", 0.5}}};
  options.lora = {Lora(text)};
  return options;
}

AuthorResult Made(const Model& model, const AuthorOptions& options) {
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : AuthorResult{};
}

std::string Error(const Model& model, const AuthorOptions& options) {
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_FALSE(made.ok());
  return std::string(made.status().message());
}

Tensor OutputOf(const Model& model, const Tensor& x) {
  auto graph = RunnableGraph(model, DefaultEnvironment());
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  Session session(*std::move(graph), TestEnvironment().compile_options());
  auto out = session.Run({{"x", x}}, nullptr);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? out->at("y").Clone() : Tensor();
}

// Relative to the largest value, which counts as 1 at least.
double Distance(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return INFINITY;
  const std::vector<double> x = Values(a), y = Values(b);
  double most = 0, scale = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(x[i] - y[i]));
    scale = std::max(scale, std::abs(x[i]));
  }
  return most / scale;
}

MergedModel Merge(const Model& model, MergeMode mode = MergeMode::kFloat) {
  auto merged = WithAdaptersMerged(InferenceOnly(model), mode, DefaultEnvironment());
  EXPECT_TRUE(merged.ok()) << merged.status();
  return merged.ok() ? *std::move(merged) : MergedModel{};
}

int CountOps(const Model& model, const std::string& op) {
  const Graph graph = *InferenceGraph(model);
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [&](const Node& n) { return n.op_type == op; }));
}

// --- forms

struct Form {
  std::string name, text;
  Shape x;
  std::vector<std::string> targets = {"W"};
  bool quantized = false;
  std::string adapters = "*:rank=2,alpha=3";
};

std::vector<Form> Forms() {
  const std::string microsoft =
      "<ir_version: 8, opset_import: [\"\" : 18, \"com.microsoft\" : 1]>\n";
  return {
      {"matmul",
       "m (float[N, 4] x) => (float[N, 3] y) <float[4, 3] W " + Numbers(12) +
           "> { y = MatMul(x, W) }",
       {5, 4}},
      {"matmul_of_three_axes",
       "m (float[N, T, 4] x) => (float[N, T, 3] y) <float[4, 3] W " + Numbers(12) +
           "> { y = MatMul(x, W) }",
       {2, 3, 4}},
      {"matmul_left",
       "m (float[4, N] x) => (float[3, N] y) <float[3, 4] W " + Numbers(12) +
           "> { y = MatMul(W, x) }",
       {4, 5}},
      {"matmul_stacked",
       "m (float[2, N, 4] x) => (float[2, N, 3] y) <float[2, 4, 3] W " + Numbers(24) +
           "> { y = MatMul(x, W) }",
       {2, 5, 4}},
      {"gemm",
       "m (float[N, 4] x) => (float[N, 3] y) <float[4, 3] W " + Numbers(12) +
           ", float[3] b = {1, 2, 3}> { y = Gemm <alpha = 0.5, beta = 2.0> (x, W, b) }",
       {5, 4}},
      {"gemm_trans_b",
       "m (float[N, 4] x) => (float[N, 3] y) <float[3, 4] W " + Numbers(12) +
           "> { y = Gemm <transB = 1> (x, W) }",
       {5, 4}},
      {"gemm_trans_a",
       "m (float[4, 5] x) => (float[5, 3] y) <float[4, 3] W " + Numbers(12) +
           "> { y = Gemm <transA = 1> (x, W) }",
       {4, 5}},
      {"gemm_left",
       "m (float[5, 4] x) => (float[3, 5] y) <float[4, 3] W " + Numbers(12) +
           "> { y = Gemm <transA = 1, transB = 1, alpha = 2.0> (W, x) }",
       {5, 4}},
      {"conv",
       "m (float[N, 2, 6, 6] x) => (float[N, 3, 3, 3] y) <float[3, 2, 3, 3] W " + Numbers(54) +
           ", float[3] b = {1, 2, 3}> { y = Conv <strides = [2, 2], pads = [1, 1, 1, 1], "
           "kernel_shape = [3, 3]> (x, W, b) }",
       {2, 2, 6, 6}},
      {"conv_dilated",
       "m (float[N, 2, 7] x) => (float[N, 3, 7] y) <float[3, 2, 3] W " + Numbers(18) +
           "> { y = Conv <dilations = [2], auto_pad = \"SAME_UPPER\"> (x, W) }",
       {2, 2, 7}},
      {"conv_1x1",
       "m (float[N, 4, 3, 3] x) => (float[N, 3, 3, 3] y) <float[3, 4, 1, 1] W " + Numbers(12) +
           "> { y = Conv(x, W) }",
       {2, 4, 3, 3}},
      {"conv_grouped",
       "m (float[N, 4, 5, 5] x) => (float[N, 6, 3, 3] y) <float[6, 2, 3, 3] W " + Numbers(108) +
           "> { y = Conv <group = 2> (x, W) }",
       {2, 4, 5, 5}},
      {"conv_depthwise",
       "m (float[N, 3, 5, 5] x) => (float[N, 3, 5, 5] y) <float[3, 1, 3, 3] W " + Numbers(27) +
           "> { y = Conv <group = 3, pads = [1, 1, 1, 1]> (x, W) }",
       {2, 3, 5, 5}},
      {"transposed",
       "m (float[N, 4] x) => (float[N, 3] y) <float[3, 4] W " + Numbers(12) +
           "> { t = Transpose(W) y = MatMul(x, t) }",
       {5, 4}},
      {"reshaped_and_transposed",
       "m (float[N, 4] x) => (float[N, 3] y) <float[2, 2, 3] W " + Numbers(12) +
           ", int64[2] s = {3, 4}> { t = Transpose <perm = [2, 1, 0]> (W) r = Reshape(t, s) y = "
           "Gemm <transB = 1> (x, r) }",
       {5, 4}},
      {"constant_node",
       "m (float[N, 2] x) => (float[N, 3] y) { W = Constant <value = float[2, 3] " +
           Numbers(6).substr(2) + "> () y = MatMul(x, W) }",
       {5, 2}},
      {"used_twice",
       "m (float[N, 3] x) => (float[N, 3] y) <float[3, 3] W " + Numbers(9) +
           "> { h = MatMul(x, W) t = Tanh(h) y = MatMul(t, W) }",
       {5, 3}},
      {"used_in_two_ways",
       "m (float[N, 3] x) => (float[N, 3] y) <float[4, 3] W " + Numbers(12) +
           "> { h = Gemm <transB = 1> (x, W) t = Tanh(h) y = MatMul(t, W) }",
       {5, 3},
       {"W", "W (use 1)"}},
      {"in_a_branch",
       "m (float[N, 3] x) => (float[N, 3] y) <float[3, 3] W " + Numbers(9) + ", float[3, 3] V " +
           Numbers(9, 2) +
           ", bool c = {1}> { y = If (c) <then_branch = t () => (float[N, 3] a) { a = MatMul(x, W) "
           "}, else_branch = e () => (float[N, 3] b) { b = MatMul(x, V) }> }",
       {5, 3},
       {"W"},
       false,
       "W:rank=2,alpha=3"},
      {"in_branches_with_names_alike",
       "m (float[N, 3] x) => (float[N, 3] y) <float[3, 3] W " + Numbers(9) + ", float[3, 3] V " +
           Numbers(9, 2) +
           ", bool c = {1}> { y = If (c) <"
           "then_branch = t () => (float[N, 3] a) { r = Transpose(W) a = MatMul(x, r) }, "
           "else_branch = e () => (float[N, 3] b) { r = Transpose(V) b = MatMul(x, r) }> }",
       {5, 3},
       {"W"},
       false,
       "W:rank=2,alpha=3"},
      {"in_a_function",
       "m (float[N, 3] x) => (float[N, 3] y) <float[3, 3] W " + Numbers(9) +
           "> { y = local.f(x, W) }\n<domain: \"local\", opset_import: [\"\" : 18]> f (a, w) => "
           "(z) "
           "{ p = MatMul(a, w) z = Tanh(p) }",
       {5, 3}},
      {"dequantized",
       "m (float[N, 4] x) => (float[N, 3] y) <int8[4, 3] W " + Integers(12, -100, 200) +
           ", float[3] s = {0.01, 0.02, 0.005}, int8[3] z = {1, -2, 0}> { w = "
           "DequantizeLinear <axis = 1> (W, s, z) y = MatMul(x, w) }",
       {5, 4},
       {"W"},
       true},
      {"dequantized_conv",
       "m (float[N, 2, 4, 4] x) => (float[N, 3, 4, 4] y) <uint8[3, 2, 3, 3] W " +
           Integers(54, 0, 255) +
           ", float s = {0.01}, uint8 z = {128}> { d = DequantizeLinear(W, s, "
           "z) w = Identity(d) y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
       {2, 2, 4, 4},
       {"W"},
       true},
      {"fake_quantized",
       "m (float[N, 4] x) => (float[N, 3] y) <float[4, 3] W " + Numbers(12) +
           ", float s = {0.01}, int8 z = {0}> { q = QuantizeLinear(W, s, z) w = "
           "DequantizeLinear(q, s, z) y = MatMul(x, w) }",
       {5, 4},
       {"W"},
       true},
      {"packed",
       microsoft + "m (float[N, 32] x) => (float[N, 3] y) <uint8[3, 2, 8] W " +
           Integers(48, 0, 256) + ", float[6] s " + Numbers(6) +
           ", float[3] b = {1, 2, 3}> { y = com.microsoft.MatMulNBits <K = 32, N = 3, bits "
           "= 4, block_size = 16> (x, W, s, , , b) }",
       {5, 32},
       {"W"},
       true},
      {"packed_without_bias",
       microsoft + "m (float[N, 20] x) => (float[N, 3] y) <uint8[3, 2, 8] W " +
           Integers(48, 0, 256) + ", float[6] s " + Numbers(6) +
           "> { y = com.microsoft.MatMulNBits <K = 20, N = 3, bits = 4, "
           "block_size = 16> (x, W, s) }",
       {5, 20},
       {"W"},
       true},
      {"packed_floats",
       microsoft + "m (float[N, 16] x) => (float[N, 3] y) <uint8[24] W " + Integers(24, 0, 256) +
           ", float[3] s = {1, 2, 0.5}> { y = com.microsoft.MatMulBnb4 "
           "<K = 16, N = 3, block_size = 16, quant_type = 1, transB = 1> (x, W, s) }",
       {5, 16},
       {"W"},
       true},
      {"with_dropout",
       "m (float[N, 4] x) => (float[N, 3] y) <float[4, 3] W " + Numbers(12) +
           "> { y = MatMul(x, W) }",
       {5, 4},
       {"W"},
       false,
       "W:rank=2,alpha=3,dropout=0.25"},
  };
}

class LoraForm : public testing::TestWithParam<Form> {
 protected:
  void SetUp() override {
    original_ = TextModel(GetParam().text);
    x_ = Data(GetParam().x, 3);
    made_ = Made(original_, WithLora(GetParam().adapters));
    auto findings = CheckModel(made_.model, DefaultEnvironment());
    ASSERT_TRUE(findings.ok()) << findings.status();
    for (const Finding& f : *findings) EXPECT_TRUE(IsRemark(f)) << f.ToString();
    auto training = Open(Reread(made_.model));
    const Tensor before = training->Infer({{"x", x_}})->at("y").Clone();
    // B is zero.
    EXPECT_EQ(Distance(before, OutputOf(original_, x_)), 0);
    for (int i = 0; i < 4; ++i) {
      auto step = training->Step({{"x", x_}, {"label", Data(before.shape(), 100)}});
      ASSERT_TRUE(step.ok()) << step.status();
    }
    trained_ = *training->Export();
    y_ = training->Infer({{"x", x_}})->at("y").Clone();
    EXPECT_GT(Distance(y_, before), 1e-3);
  }

  Model original_, trained_;
  AuthorResult made_;
  Tensor x_, y_;
};

TEST_P(LoraForm, OnlyAdaptersLearn) {
  for (const std::string& name : made_.trained)
    EXPECT_TRUE(absl::StrContains(name, ".lora_")) << name;
  const Graph before = *InferenceGraph(original_), after = *InferenceGraph(trained_),
              authored = *InferenceGraph(made_.model);
  for (const auto& [name, tensor] : before.initializers) {
    auto there = after.initializers.find(name);
    EXPECT_TRUE(there == after.initializers.end() || Identical(tensor, there->second)) << name;
  }
  const std::vector<Adapter> adapters = FindAdapters(after);
  std::vector<std::string> targets;
  for (const Adapter& adapter : adapters) {
    targets.push_back(adapter.ToString());
    for (const std::string& name : {adapter.a, adapter.b})
      EXPECT_FALSE(Identical(authored.initializers.at(name), after.initializers.at(name))) << name;
  }
  EXPECT_EQ(targets, GetParam().targets);
}

TEST_P(LoraForm, MergedIsTheSameFunction) {
  const MergedModel merged = Merge(trained_);
  EXPECT_LE(Distance(OutputOf(Reread(merged.model), x_), y_), kTolerance);
  if (GetParam().quantized) {
    EXPECT_EQ(merged.merged.kept, GetParam().targets);
    EXPECT_THAT(merged.merged.merged, IsEmpty());
    EXPECT_EQ(AdaptersOf(merged.model)->size(), GetParam().targets.size());
  } else {
    EXPECT_EQ(merged.merged.merged, GetParam().targets);
    EXPECT_THAT(merged.merged.kept, IsEmpty());
    EXPECT_EQ(CountOps(merged.model, "Mul") + CountOps(merged.model, "Dropout"), 0);
    EXPECT_THAT(*AdaptersOf(merged.model), IsEmpty());
  }
  const MergedModel all = Merge(trained_, MergeMode::kDequantize);
  EXPECT_THAT(all.merged.kept, IsEmpty());
  EXPECT_LE(Distance(OutputOf(Reread(all.model), x_), y_), kTolerance);
  for (const char* op : {"MatMulNBits", "MatMulBnb4", "DequantizeLinear"})
    EXPECT_EQ(CountOps(all.model, op), 0) << op;
}

TEST_P(LoraForm, ApartAndPutOnAgainIsTheSameFunction) {
  auto apart = AdaptersApart(trained_);
  ASSERT_TRUE(apart.ok()) << apart.status();
  const Model file = Reread(*apart);
  EXPECT_EQ(InferenceGraph(file)->initializers.size(), 2 * GetParam().targets.size());
  auto applied = WithAdapters(original_, file, DefaultEnvironment());
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(Distance(OutputOf(Reread(applied->model), x_), y_), 0);
  // Merged, it is the merged model to the last bit.
  const Graph one = *InferenceGraph(Merge(applied->model).model),
              other = *InferenceGraph(Merge(trained_).model);
  ASSERT_EQ(one.initializers.size(), other.initializers.size());
  for (const auto& [name, tensor] : one.initializers)
    EXPECT_TRUE(Identical(tensor, other.initializers.at(name))) << name;
  const Model base = Merge(trained_, MergeMode::kDrop).model;
  EXPECT_THAT(*AdaptersOf(base), IsEmpty());
  EXPECT_EQ(Distance(OutputOf(base, x_), OutputOf(original_, x_)), 0);
}

INSTANTIATE_TEST_SUITE_P(Lora, LoraForm, testing::ValuesIn(Forms()),
                         [](const auto& info) { return info.param.name; });

// --- what is written

constexpr char kTwoLayers[] = R"(
  m (float[N, 4] x) => (float[N, 2] y)
  <float[4, 3] first_weight = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.8, -0.9, 0.1, 0.2, 0.3},
   float[3] first_bias = {0.1, 0.2, 0.3},
   float[3, 2] last_weight = {0.7, -0.1, 0.2, 0.3, -0.4, 0.5}, float[2] last_bias = {0, 0}> {
    h = Gemm(x, first_weight, first_bias)
    t = Tanh(h)
    y = Gemm(t, last_weight, last_bias)
  })";

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

// --- what learns

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

TEST(Lora, ANewHeadLearnsWhole) {
  AuthorOptions options = WithLora("*:rank=2");
  options.loss = {"cross_entropy", {}};
  options.head_classes = 5;
  const AuthorResult made = Made(TextModel(kTwoLayers), options);
  EXPECT_THAT(made.trained, UnorderedElementsAre("first_weight.lora_A", "first_weight.lora_B",
                                                 "last_weight", "last_bias"));
  auto training = Open(made.model);
  ASSERT_TRUE(training->Step({{"x", Data({3, 4}, 1)}, {"label", Int64s({4, 0, 2})}}).ok());
  const Model trained = *training->Export(), file = Reread(*AdaptersApart(trained));
  EXPECT_EQ(InferenceGraph(file)->initializers.size(), 4u);
  // It does not fit what training began with, but the base does.
  auto refused = WithAdapters(TextModel(kTwoLayers), file, DefaultEnvironment());
  EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("'last_bias', which was trained whole"),
                                                HasSubstr("float[5]"), HasSubstr("-o BASE")));
  auto applied = WithAdapters(Merge(trained, MergeMode::kDrop).model, file, DefaultEnvironment());
  ASSERT_TRUE(applied.ok()) << applied.status();
  const Tensor x = Data({3, 4}, 5);
  EXPECT_EQ(Distance(OutputOf(applied->model, x), training->Infer({{"x", x}})->at("y")), 0);
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

TEST(Lora, AWeightTiedToATableGetsOneOfItsOwn) {
  const Model model =
      TextModel("m (int64[N] x) => (float[N, 4] y) <float[4, 3] table " + Numbers(12) +
                "> { h = Gather(table, x) t = Tanh(h) w = Transpose(table) y = "
                "MatMul(t, w) }");
  auto training = Open(Made(model, WithLora("table:rank=2,alpha=4")).model);
  const Tensor ids = Int64s({0, 2, 1, 3});
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(training->Step({{"x", ids}, {"label", Data({4, 4}, 9)}}).ok());
  const Tensor y = training->Infer({{"x", ids}})->at("y").Clone();
  const MergedModel merged = Merge(*training->Export());
  EXPECT_LE(Distance(OutputOf(merged.model, ids), y), kTolerance);
  EXPECT_THAT(merged.merged.changed, ElementsAre("w"));
  EXPECT_TRUE(Identical(InferenceGraph(merged.model)->initializers.at("table"),
                        InferenceGraph(model)->initializers.at("table")));
}

// Exporters fold the transposition: the file has two tensors, and calls the second one by name.
TEST(Lora, AFoldedTransposeIsATargetByItsName) {
  const Model model = TextModel(
      "m (int64[N] x) => (float[N, 2] y) <float[2, 3] table = {1, 2, 3, 4, 5, 6}, float[3, 2] head "
      "= "
      "{1, 4, 2, 5, 3, 6}> { h = Gather(table, x) t = Tanh(h) y = MatMul(t, head) }");
  auto training = Open(Made(model, WithLora("head:rank=1")).model);
  const Tensor ids = Int64s({0, 1});
  ASSERT_TRUE(training->Step({{"x", ids}, {"label", Data({2, 2}, 9)}}).ok());
  const Model trained = *training->Export();
  EXPECT_EQ(AdaptersOf(trained)->front().target, "head");
  const Tensor y = training->Infer({{"x", ids}})->at("y").Clone();
  auto applied = WithAdapters(model, *AdaptersApart(trained), DefaultEnvironment());
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_LE(Distance(OutputOf(applied->model, ids), y), kTolerance);
  auto like = ExportLike(trained, model, DefaultEnvironment());
  ASSERT_TRUE(like.ok()) << like.status();
  EXPECT_LE(Distance(OutputOf(*like, ids), y), kTolerance);
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

TEST(Lora, ExportLikePutsMergedWeightsIntoTheOriginal) {
  const Model original =
      TextModel("<ir_version: 4, opset_import: [\"\" : 9]>" + std::string(kTwoLayers));
  AuthorOptions options = WithLora("*:rank=2");
  options.train = {"last_bias"};
  auto training = Open(Made(original, options).model);
  ASSERT_TRUE(training->Step({{"x", Data({3, 4}, 1)}, {"label", Data({3, 2}, 9)}}).ok());
  auto like = ExportLike(*training->Export(), original, DefaultEnvironment());
  ASSERT_TRUE(like.ok()) << like.status();
  EXPECT_EQ(like->opsets().at(""), 9);
  const Tensor x = Data({3, 4}, 2);
  EXPECT_LE(Distance(OutputOf(*like, x), training->Infer({{"x", x}})->at("y")), kTolerance);
}

TEST(Lora, ChangesOfSixteenBitWeightsAreRoundedToThem) {
  Graph graph =
      *InferenceGraph(TextModel("m (float[N, 4] x) => (float[N, 3] y) <float[4, 3] W " +
                                Numbers(12) + "> { w = Cast <to = 1> (W) y = MatMul(x, w) }"));
  Tensor half(DType::kFloat16, {4, 3});
  for (int i = 0; i < 12; ++i)
    half.data<Float16>()[i] = Float16(graph.initializers.at("W").data<float>()[i]);
  graph.initializers.at("W") = half;
  const Model model = ModelFromGraph(graph, 8, "test");
  auto training = Open(Made(model, WithLora("W:rank=2")).model);
  const Tensor x = Data({5, 4}, 3);
  EXPECT_EQ(training->variables().at("W.lora_A").dtype(), DType::kFloat);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(training->Step({{"x", x}, {"label", Data({5, 3}, 9)}}).ok());
  const MergedModel merged = Merge(*training->Export());
  EXPECT_THAT(merged.merged.changed, ElementsAre("W"));
  EXPECT_EQ(InferenceGraph(merged.model)->initializers.at("W").dtype(), DType::kFloat16);
  EXPECT_LE(Distance(OutputOf(merged.model, x), training->Infer({{"x", x}})->at("y")), 2e-3);
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

// --- what is refused

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

}  // namespace
}  // namespace onward

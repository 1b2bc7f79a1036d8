// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters: merged, kept and applied ones are one function.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/training_info/lora_models.h"
#include "training_info/lower.h"
#include "training_info/validate.h"

namespace onward::lora_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string Integers(int64_t n, int64_t low, int64_t count) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < n; ++i) texts.push_back(absl::StrCat(low + (i * 37 + 11) % count));
  return absl::StrCat("= {", absl::StrJoin(texts, ", "), "}");
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

}  // namespace onward::lora_test

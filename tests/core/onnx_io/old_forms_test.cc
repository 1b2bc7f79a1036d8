// SPDX-License-Identifier: Apache-2.0
// Operators keep their meaning when they are raised, where the converter of onnx changes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/onnx_io/model.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::old_forms_test {

using ::testing::ElementsAre;

std::vector<double> Result(const std::string& text, const TensorMap& feeds) {
  auto graph = RunnableGraph(TextModel(text), DefaultEnvironment());
  EXPECT_TRUE(graph.ok()) << graph.status();
  CompileOptions options;
  options.device = &DefaultEnvironment().cpu();
  options.operators = &DefaultEnvironment().operators();
  Session session(*std::move(graph), options);
  auto out = session.Run(feeds, nullptr);
  EXPECT_TRUE(out.ok()) << out.status();
  return Values(out->at("y"));
}

// The converter of onnx leaves out that pixels are counted from the corner there: half_pixel
// would give 1, 1.25, 1.75, 2.
TEST(OldResize, CountsFromTheCorner) {
  EXPECT_THAT(Result(R"(<ir_version: 4, opset_import: ["" : 10]>
    g (float[2] x) => (float[4] y) {
      s = Constant <value = float[1] {2}> ()
      y = Resize <mode = "linear"> (x, s)
    })",
                     {{"x", Floats({1, 2})}}),
              ElementsAre(1, 1.5, 2, 2));
}

TEST(OldResize, TakesThePixelBefore) {
  EXPECT_THAT(Result(R"(<ir_version: 4, opset_import: ["" : 9]>
    g (float[2] x) => (float[3] y) {
      s = Constant <value = float[1] {1.5}> ()
      y = Upsample <mode = "nearest"> (x, s)
    })",
                     {{"x", Floats({1, 2})}}),
              ElementsAre(1, 1, 2));
}

// onnxruntime takes the pixel behind along an axis that shrinks, the one before along others.
const Tensor& Pixels() {
  static const Tensor* const pixels =
      new Tensor(Floats({5, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
  return *pixels;
}

testing::Matcher<double> Third(double of) { return testing::DoubleNear(of / 3, 1e-5); }

TEST(OldResize, ShrinksOneAxisAndGrowsAnother) {
  for (const auto& [opset, op] :
       {std::pair("9", "Upsample"), {"10", "Upsample"}, {"10", "Resize"}}) {
    const auto result = [&, opset = opset, op = op](const char* mode) {
      return Result(absl::StrReplaceAll(R"(<ir_version: 4, opset_import: ["" : OPSET]>
        g (float[5, 3] x) => (float[2, 4] y) <float[2] s = {0.4, 1.5}> {
          y = OPERATOR <mode = "MODE"> (x, s)
        })",
                                        {{"OPSET", opset}, {"OPERATOR", op}, {"MODE", mode}}),
                    {{"x", Pixels()}});
    };
    SCOPED_TRACE(absl::StrCat(op, " of opset ", opset));
    EXPECT_THAT(result("nearest"), ElementsAre(0, 0, 1, 2, 9, 9, 10, 11));
    // 2.5 rows down lies between rows 2 and 3.
    EXPECT_THAT(result("linear"),
                ElementsAre(0, Third(2), Third(4), 2, 7.5, Third(24.5), Third(26.5), 9.5));
  }
}

// What the factors are is not known before the run.
TEST(OldResize, ShrinksAndGrowsAsItIsFed) {
  const std::string text = R"(<ir_version: 4, opset_import: ["" : 10]>
    g (float[5, 3] x, float[2] s) => (float[h, w] y) { y = Resize (x, s) })";
  EXPECT_THAT(Result(text, {{"x", Pixels()}, {"s", Floats({0.4f, 1.5f})}}),
              ElementsAre(0, 0, 1, 2, 9, 9, 10, 11));
  EXPECT_THAT(Result(text, {{"x", Pixels()}, {"s", Floats({0.4f, 0.5f})}}), ElementsAre(0, 9));
  EXPECT_THAT(Result(text, {{"x", Pixels()}, {"s", Floats({1, 1.5f})}}),
              ElementsAre(0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12, 12, 13, 14));
}

// 5 * 1.4 and 6 / 1.2 are whole numbers in float, and less than these in double.
TEST(OldResize, CountsInFloat) {
  const auto result = [](const char* factor, Tensor x) {
    return Result(absl::StrReplaceAll(
                      R"(<ir_version: 4, opset_import: ["" : 10]>
      g (float[n] x) => (float[m] y) {
        s = Constant <value = float[1] {FACTOR}> ()
        y = Resize (x, s)
      })",
                      {{"FACTOR", factor}, {"[n]", "[" + std::to_string(x.elements()) + "]"}}),
                  {{"x", x}});
  };
  EXPECT_THAT(result("1.4", Floats({0, 1, 2, 3, 4})), ElementsAre(0, 0, 1, 2, 2, 3, 4));
  EXPECT_THAT(result("1.2", Floats({0, 1, 2, 3, 4, 5, 6})), ElementsAre(0, 0, 1, 2, 3, 4, 5, 5));
}

// The converter makes floats of them, whatever they go with.
TEST(OldOperands, BoundsOfClipHaveTheTypeOfWhatIsClipped) {
  EXPECT_THAT(Result(R"(<ir_version: 3, opset_import: ["" : 6]>
    g (double[4] x) => (double[4] y) { y = Clip <min = -1.0, max = 2.0> (x) })",
                     {{"x", Tensor::FromValues<double>({4}, {-3, 0, 2, 5})}}),
              ElementsAre(-1, 0, 2, 2));
}

TEST(OldOperands, ValuesOfPadHaveTheTypeOfWhatIsPadded) {
  const std::string text = R"(<ir_version: 3, opset_import: ["" : 10]>
    g (double[2] x) => (double[4] y) {
      a = Pad <mode = "MODE", pads = [1, 1], value = 0.5> (x)
      y = Neg(a)
    })";
  const auto result = [&](const char* mode) {
    return Result(absl::StrReplaceAll(text, {{"MODE", mode}}),
                  {{"x", Tensor::FromValues<double>({2}, {3, 4})}});
  };
  EXPECT_THAT(result("constant"), ElementsAre(-0.5, -3, -4, -0.5));
  EXPECT_THAT(result("edge"), ElementsAre(-3, -3, -4, -4));
}

// What is written with a newer opset has no attribute of the old one.
TEST(OldOperands, PadLeavesItsValueBehind) {
  const Graph raised =
      RaiseOpset(InferenceGraph(TextModel(R"(<ir_version: 3, opset_import: ["" : 10]>
        g (float[2] x) => (float[4] y) { y = Pad <mode = "edge", pads = [1, 1], value = 0.5> (x) })"))
                     .value(),
                 kCanonicalOpset)
          .value();
  EXPECT_EQ(CheckGraph(raised).size(), 0u);
}

// Opset 28 has no logarithms of sums of integers, which the ones before cut off.
TEST(OldOperands, LogarithmsOfIntegers) {
  EXPECT_THAT(Result(R"(<ir_version: 8, opset_import: ["" : 13]>
    g (int32[2, 3] x) => (int32[2, 1] y) { y = ReduceLogSum <axes = [1]> (x) })",
                     {{"x", Tensor::FromValues<int32_t>({2, 3}, {10, 10, 3, 1, 1, 1})}}),
              ElementsAre(3, 1));
}

// Opset 13 has no Erf of integers.
TEST(OldOperands, ErfOfIntegersIsCut) {
  EXPECT_THAT(Result(R"(<ir_version: 4, opset_import: ["" : 9]>
    g (int32[5] x) => (int32[5] y) { y = Erf (x) })",
                     {{"x", Tensor::FromValues<int32_t>({5}, {-7, -1, 0, 2, 100})}}),
              ElementsAre(-1, 0, 0, 0, 1));
  EXPECT_THAT(Result(R"(<ir_version: 4, opset_import: ["" : 12]>
    g (uint8[3] x) => (uint8[3] y) { a = Identity (x) y = Erf (a) })",
                     {{"x", Tensor::FromValues<uint8_t>({3}, {0, 1, 6})}}),
              ElementsAre(0, 0, 1));
}

// Until opset 20 a group has one scale and one bias. The standard has withdrawn that form, and
// files have it.
TEST(OldOperands, GroupsHaveAScaleEach) {
  const std::string text = R"(<ir_version: 8, opset_import: ["" : OPSET]>
    g (float[1, 4, 1] v, float[2] t, float[2] c) => (float[1, 4, 1] y) {
      x = Cast <to = TYPE> (v) s = Cast <to = TYPE> (t) b = Cast <to = TYPE> (c)
      h = Neg (x)
      n = GroupNormalization <epsilon = 0.0, num_groups = 2> (h, s, b)
      y = Cast <to = 1> (n)
    })";
  for (const int opset : {18, 19, 20}) {
    for (const DType type : {DType::kFloat, DType::kDouble, DType::kFloat16}) {
      EXPECT_THAT(
          Result(absl::StrReplaceAll(text, {{"OPSET", absl::StrCat(opset)},
                                            {"TYPE", absl::StrCat(static_cast<int>(type))}}),
                 {{"v", Floats({1, 4, 1}, {1, -1, 2, 6})},
                  {"t", Floats({2, 3})},
                  {"c", Floats({10, 20})}}),
          ElementsAre(8, 12, 23, 17))
          << opset << " " << DTypeName(type);
    }
  }
}

// onnx's own inference reads 32 bits as 64, which it refuses.
TEST(OldOperands, AxesOfPadMayHave32Bits) {
  EXPECT_THAT(Result(R"(<ir_version: 8, opset_import: ["" : 19]>
    g (float[1, 2] x) => (float[1, 3] y)
    <int64[2] pads = {1, 0}, int32[1] axes = {-1}> { y = Pad(x, pads, , axes) })",
                     {{"x", Floats({1, 2}, {3, 4})}}),
              ElementsAre(0, 3, 4));
}

// An axis that becomes smaller ended onnx's inference, with a shape of too few axes.
TEST(OldOperands, ConvTransposeMayMakeAnAxisSmaller) {
  EXPECT_THAT(Result(R"(<ir_version: 8, opset_import: ["" : 11]>
    g (float[1, 1, 3] x) => (float[1, 1, 2] y)
    <float[1, 1, 1] w = {2}> { y = ConvTranspose <output_shape = [2], auto_pad = "SAME_UPPER"> (x, w) })",
                     {{"x", Floats({1, 1, 3}, {1, 2, 3})}}),
              ElementsAre(2, 4));
}

// Outputs that are left out count for nothing: onnx's inference takes them for a cache.
TEST(OmittedOutputs, OfAttentionAreNoCache) {
  EXPECT_THAT(Result(R"(<ir_version: 11, opset_import: ["" : 24]>
    g (float[1, 1, 1, 1] x) => (float[1, 1, 1, 1] y) <int64[1] n = {1}> {
      y, , , scores = Attention (x, x, x, , , , n)
    })",
                     {{"x", Floats({1, 1, 1, 1}, {3})}}),
              ElementsAre(3));
}

}  // namespace onward::old_forms_test

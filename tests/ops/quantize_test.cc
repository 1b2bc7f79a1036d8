// SPDX-License-Identifier: Apache-2.0
// Gradients through rounding to small types, which no difference quotient can tell: literal
// expectations, as PyTorch's fake_quantize has them; products of integers on CPUs that this
// one is not; small types from and to text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "autograd/differentiate.h"
#include "core/base/small_float.h"
#include "core/device/plan/window.h"
#include "core/ops/quantize/depthwise.h"
#include "core/ops/quantize/integer_gemm.h"
#include "core/runtime/session.h"
#include "environment/environment.h"
#include "tests/support/case_draws.h"
#include "tests/support/test_environment.h"
#include "tests/support/text_model.h"
#include "training_info/lower.h"

namespace onward::quantize_test {

using testing::ElementsAre;

std::string AtOpset(int opset, const std::string& graph) {
  return "<ir_version: 10, opset_import: [\"\" : " + std::to_string(opset) + "]> " + graph;
}

Graph GraphOf(const std::string& text) {
  auto graph = InferenceGraph(TextModel(text));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *graph : Graph{};
}

std::vector<std::vector<double>> RunGraph(const Graph& graph,
                                          const std::vector<std::string>& wanted,
                                          const TensorMap& feeds) {
  CompileOptions options = TestEnvironment().compile_options();
  options.outputs = wanted;
  Session session(graph, options);
  Variables none;
  auto found = session.Run(feeds, &none);
  EXPECT_TRUE(found.ok()) << found.status();
  std::vector<std::vector<double>> values;
  for (const std::string& name : wanted) {
    values.push_back(found.ok() ? *ToDoubles(found->at(name)) : std::vector<double>());
  }
  return values;
}

// The gradients of the sum of y by xs.
std::vector<std::vector<double>> Slopes(const std::string& text, const std::vector<std::string>& xs,
                                        const TensorMap& feeds) {
  DifferentiateOptions options;
  options.operators = &DefaultEnvironment().operators();
  options.rules = &DefaultEnvironment().rules();
  auto gradients = Differentiate(GraphOf(text), "y", xs, options);
  EXPECT_TRUE(gradients.ok()) << gradients.status();
  if (!gradients.ok()) return std::vector<std::vector<double>>(xs.size());
  return RunGraph(gradients->graph, gradients->values, feeds);
}

TEST(StraightThrough, PassesTheBoundsAndNothingBeyond) {
  // -128.5 rounds to -128 (even), 127.5 to 128: the one is a number of int8, the other not.
  const auto slopes = Slopes(
      AtOpset(21,
              "m (float[6] x, float s) => (float[6] y) <int8 z = {0}> "
              "{ q = QuantizeLinear(x, s, z) c = Cast<to = 3>(q) y = DequantizeLinear(c, s, z) }"),
      {"x", "s"},
      {{"x", Floats({-200, -128.5, -3.25, 3.25, 127.5, 200})}, {"s", Tensor::Scalar<float>(1)}});
  EXPECT_THAT(slopes[0], ElementsAre(0, 1, 1, 1, 0, 0));
  // By the scale: the bound beyond it, the error of rounding inside.
  EXPECT_THAT(slopes[1], ElementsAre(-128 + 0.5 + 0.25 - 0.25 + 127 + 127));
}

TEST(StraightThrough, PerAxisWithZeroPoints) {
  // With the shapes, and where only the data tell them.
  for (const std::string types : {"(float[2, 3] x, float[3] s)", "(float[] x, float[3] s)",
                                  "(float[2, 3] x, float[] s)", "(float[] x, float[] s)"}) {
    SCOPED_TRACE(types);
    const auto slopes = Slopes(
        AtOpset(21,
                "m " + types +
                    " => (float[] y) <uint8[3] z = {0, 128, 255}> "
                    "{ q = QuantizeLinear<axis = 1>(x, s, z) t = Transpose<perm = [1, 0]>(q) "
                    "r = Transpose<perm = [1, 0]>(t) y = DequantizeLinear<axis = -1>(r, s, z) }"),
        {"x", "s"}, {{"x", Floats({2, 3}, {-1, -1, -1, 1, 1, 1})}, {"s", Floats({0.5, 0.5, 0.5})}});
    EXPECT_THAT(slopes[0], ElementsAre(0, 1, 1, 1, 1, 0));
    EXPECT_THAT(slopes[1], ElementsAre(0, 0, 0));
  }
}

TEST(StraightThrough, OneScaleOfAnyRank) {
  for (const std::string types : {"(float[3] x, float s)", "(float[] x, float[] s)"}) {
    const auto slopes =
        Slopes(AtOpset(21, "m " + types +
                               " => (float[] y) <int8 z = {0}> { q = QuantizeLinear(x, s, z) "
                               "y = DequantizeLinear(q, s, z) }"),
               {"x", "s"}, {{"x", Floats({-200, 3.25, 200})}, {"s", Tensor::Scalar<float>(1)}});
    EXPECT_THAT(slopes[0], ElementsAre(0, 1, 0)) << types;
    EXPECT_THAT(slopes[1], ElementsAre(-128 - 0.25 + 127)) << types;
  }
}

TEST(StraightThrough, BlocksOfAnAxis) {
  for (const std::string types : {"(float[2, 5] x, float[2, 3] s)", "(float[] x, float[2, 3] s)",
                                  "(float[2, N] x, float[2, M] s)", "(float[] x, float[] s)"}) {
    SCOPED_TRACE(types);
    const std::string text =
        AtOpset(21, "m " + types +
                        " => (float[] y) "
                        "{ q = QuantizeLinear<axis = 1, block_size = 2, output_dtype = 22>(x, s) "
                        "y = DequantizeLinear<axis = -1, block_size = 2>(q, s) }");
    const auto slopes =
        Slopes(text, {"x", "s"},
               {{"x", Floats({2, 5}, {1.25, 9, 1, 1, 20, -9, 2.5, 3.5, 0.75, 0.25})},
                {"s", Floats({2, 3}, {1, 1, 2, 1, 1, 1})}});
    EXPECT_THAT(slopes[0], ElementsAre(1, 0, 1, 1, 0, 0, 1, 1, 1, 1));
    EXPECT_THAT(slopes[1], ElementsAre(-0.25 + 7, 0, 7, -8 - 0.5, 0.5 + 0.25, -0.25));
  }
}

TEST(StraightThrough, DequantizeIsLinearInItsScale) {
  const auto slopes =
      Slopes(AtOpset(21,
                     "m (float[2] s) => (float[2, 2] y) <int32[2, 2] v = {1, 2, -3, 4}, "
                     "int32[2] w = {1, -1}> { q = Cast<to = 22>(v) z = Cast<to = 22>(w) "
                     "y = DequantizeLinear<axis = 0>(q, s, z) }"),
             {"s"}, {{"s", Floats({1, 2})}});
  EXPECT_THAT(slopes[0], ElementsAre(0 + 1, -2 + 5));
}

TEST(QLinearMatMul, TakesFloat8) {
  const Graph graph = GraphOf(AtOpset(
      21,
      "m (float[1, 2] a, float[2, 2] b) => (float[1, 2] y) <float s = {0.5}, float t = {2}, "
      "float o = {0}> { z = Cast<to = 17>(o) p = Cast<to = 17>(a) q = Cast<to = 17>(b) "
      "r = QLinearMatMul(p, s, z, q, s, z, t, z) y = Cast<to = 1>(r) }"));
  // (1 * 16 + 3 * 20) / 8 = 9.5 lies between 9 and 10 and goes to the even one.
  EXPECT_THAT(RunGraph(graph, {"y"},
                       {{"a", Floats({1, 2}, {1, 3})}, {"b", Floats({2, 2}, {16, 1, 20, 5})}}),
              ElementsAre(ElementsAre(10, 2)));
}

TEST(QuantizeLinear, MakesTheLowestOfNaN) {
  const Graph graph = GraphOf(AtOpset(21,
                                      "m (float[4] x) => (int8[4] y) <float s = {1}, int8 z = {0}> "
                                      "{ y = QuantizeLinear(x, s, z) }"));
  EXPECT_THAT(RunGraph(graph, {"y"}, {{"x", Floats({NAN, INFINITY, -INFINITY, 1.5})}}),
              ElementsAre(ElementsAre(-128, 127, -128, 2)));
}

TEST(StraightThrough, CastsToFloat8AndBack) {
  const auto slopes =
      Slopes(AtOpset(21,
                     "m (float[3] x) => (float[3] y) { a = Mul(x, x) h = Cast<to = 17>(a) "
                     "y = Cast<to = 1>(h) }"),
             {"x"}, {{"x", Floats({1, 1.03, 3})}});
  EXPECT_THAT(slopes[0], ElementsAre(2, testing::DoubleNear(2.06, 1e-6), 6));
}

// Integers are what they are: nothing flows through them.
TEST(StraightThrough, CastsToIntegersStop) {
  const auto slopes = Slopes(
      AtOpset(21, "m (float[3] x) => (float[3] y) { h = Cast<to = 22>(x) y = Cast<to = 1>(h) }"),
      {"x"}, {{"x", Floats({1, 2, 3})}});
  EXPECT_THAT(slopes[0], ElementsAre(0, 0, 0));
}

TEST(SmallTypes, ToTextAndBack) {
  Graph graph =
      GraphOf(AtOpset(21,
                      "m (string[5] x) => (float[5] f, float[5] i, string[5] t, string[5] u) "
                      "{ e = Cast<to = 17>(x) f = Cast<to = 1>(e) t = Cast<to = 8>(e) "
                      "n = Cast<to = 22>(x) i = Cast<to = 1>(n) u = Cast<to = 8>(n) }"));
  const Tensor texts =
      Tensor::FromValues<std::string>({5}, {"1.0625", "-1000", "3.0", "-2.0", "0"});
  EXPECT_THAT(RunGraph(graph, {"f", "i"}, {{"x", texts}}),
              ElementsAre(ElementsAre(1, -448, 3, -2, 0), ElementsAre(1, -8, 3, -2, 0)));
}

TEST(SmallTypes, PowersOfTwoAreRoundedAsAsked) {
  const std::vector<float> x = {0.75f, 1.0f, 1.5f, 0, 0x1p127f * 1.5f};
  const auto codes = [&](bool saturate, PowerRounding power) {
    std::vector<uint8_t> out(x.size());
    EncodeSmallFloats(DType::kFloat8E8M0, x.data(), static_cast<int64_t>(x.size()),
                      {saturate, power}, out.data());
    return std::vector<int>(out.begin(), out.end());
  };
  EXPECT_THAT(codes(true, PowerRounding::kUp), ElementsAre(127, 127, 128, 0, 254));
  EXPECT_THAT(codes(true, PowerRounding::kDown), ElementsAre(126, 127, 127, 0, 254));
  EXPECT_THAT(codes(false, PowerRounding::kNearest), ElementsAre(127, 127, 128, 255, 255));
}

// What is kept is scaled in float and rounded once.
TEST(SmallTypes, AreDropped) {
  const Graph graph = GraphOf(
      AtOpset(22,
              "m (float[600] x) => (float[600] y, float[600] z, float[600] k) "
              "<float r = {0.25}, bool t = {1}, float s = {0.75}> "
              "{ h = Cast<to = 17>(x) q = Cast<to = 19>(r) d, m = Dropout<seed = 7>(h, q, t) "
              "y = Cast<to = 1>(d) k = Cast<to = 1>(m) f = Cast<to = 1>(h) g = Div(f, s) "
              "e = Mul(g, k) w = Cast<to = 17>(e) z = Cast<to = 1>(w) }"));
  Tensor x(DType::kFloat, {600});
  for (int i = 0; i < 600; ++i) x.data<float>()[i] = static_cast<float>(i - 300);
  const auto found = RunGraph(graph, {"y", "z", "k"}, {{"x", x}});
  EXPECT_EQ(found[0], found[1]);
  EXPECT_NEAR(std::accumulate(found[2].begin(), found[2].end(), 0.0), 450, 60);
}

// Every code is the nearest one to its own number.
TEST(SmallTypes, EncodingUndoesDecoding) {
  for (int dtype = 17; dtype <= 28; ++dtype) {
    const auto type = static_cast<DType>(dtype);
    if (!IsSmallFloat(type)) continue;
    const SmallValues& values = SmallValuesOf(type);
    for (int code = 0; code < 1 << DTypeBits(type); ++code) {
      uint8_t again = 0;
      EncodeSmallFloats(type, &values[code], 1, {.saturate = false}, &again);
      if (std::isnan(values[code])) {
        EXPECT_TRUE(std::isnan(values[again])) << DTypeName(type) << " " << code;
      } else {
        EXPECT_EQ(again, code) << DTypeName(type);
      }
    }
  }
}

// The largest products there are, on this CPU and as on one without VNNI.
TEST(IntegerGemm, IsExactOnEveryCpu) {
  CpuFeatures plain = ThisCpu();
  plain.avx512vnni = false;
  Draws draws("gemm");
  for (const CpuFeatures& cpu : {ThisCpu(), plain}) {
    for (const auto side : {IntegerGemm::Side::kRows, IntegerGemm::Side::kColumns}) {
      for (const auto& [depth, columns, flip] : {std::tuple<int64_t, int64_t, uint8_t>(1, 29, 0),
                                                 {7, 29, 0x80},
                                                 {64, 29, 0},
                                                 {7, kPanelColumns, 0},
                                                 {8, kPanelColumns, 0x80},
                                                 {21, kPanelColumns, 0x80},
                                                 {64, kPanelColumns, 0}}) {
        const IntegerGemm gemm(depth, side, cpu);
        const int64_t rows = 11;
        std::vector<uint8_t> a(rows * depth), b(depth * columns);
        for (uint8_t& v : a) v = draws.Below(2) == 0 ? 255 : 128;
        for (uint8_t& v : b) v = draws.Below(2) == 0 ? 127 : 128;
        std::vector<uint8_t> packed(rows * gemm.row_bytes()), panel(gemm.panel_bytes());
        for (int64_t r = 0; r < rows; ++r) {
          gemm.PackRow(&a[r * depth], 0, &packed[r * gemm.row_bytes()]);
        }
        std::vector<int64_t> offsets(depth);
        for (int64_t k = 0; k < depth; ++k) offsets[k] = k * columns;
        gemm.PackPanel(b.data(), offsets.data(), columns, flip, panel.data());
        const int64_t stride = kPanelColumns + 8;
        std::vector<int32_t> tile(kMaxRowBlock * stride), starts(kMaxRowBlock);
        for (int64_t r = 0; r < rows; ++r) starts[r] = static_cast<int32_t>(1000 * r - 3);
        gemm.Multiply(packed.data(), rows, panel.data(), starts.data(), tile.data(), stride);
        const bool rows_unsigned = side == IntegerGemm::Side::kRows;
        const auto number = [](uint8_t v, bool is_unsigned) {
          return is_unsigned ? static_cast<int>(v) : static_cast<int>(static_cast<int8_t>(v));
        };
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            int32_t sum = starts[r];
            for (int64_t k = 0; k < depth; ++k) {
              sum += number(a[r * depth + k], rows_unsigned) *
                     number(b[k * columns + c] ^ flip, !rows_unsigned);
            }
            ASSERT_EQ(tile[r * stride + c], sum) << depth << " " << r << " " << c;
          }
        }
      }
    }
  }
}

// Taps of one channel, on this CPU and as on one without VNNI, at both strides.
TEST(DepthwiseWeights, AreExactOnEveryCpu) {
  CpuFeatures plain = ThisCpu();
  plain.avx512vnni = false;
  Draws draws("taps");
  for (const int64_t stride : {1, 2}) {
    Node node;
    node.op_type = "Conv";
    node.attributes["strides"] = std::vector<int64_t>{stride, stride};
    const auto geometry = GeometryOfConv(node, Shape{1, 1, 7, 90}, Shape{1, 1, 3, 3});
    ASSERT_TRUE(geometry.ok()) << geometry.status();
    Tensor weights(DType::kUint8, Shape{9});
    for (int k = 0; k < 9; ++k) weights.data<uint8_t>()[k] = draws.Below(2) == 0 ? 255 : 3 * k;
    std::vector<uint8_t> image(7 * 90);
    for (uint8_t& v : image) v = static_cast<uint8_t>(draws.Below(256));
    for (const CpuFeatures& cpu : {ThisCpu(), plain}) {
      const auto layout = DepthwiseLayout::Of(*geometry, cpu);
      ASSERT_TRUE(layout.has_value());
      const int32_t zero = 7;
      const DepthwiseWeights taps(*layout, ByteOperand{}, weights, zero, 0);
      std::vector<uint8_t> plane(layout->group_bytes());
      layout->planes().Fill(image.data(), 0, 1, 0, plane.data());
      const int64_t row = 1;
      for (const uint8_t flip : {0, 0x80}) {
        for (const int64_t columns : {5, 13, 32}) {
          std::vector<int32_t> sums(kLineOutputs);
          taps.Sum(plane.data() + layout->RowBegin(row), columns, flip, 11, sums.data());
          for (int64_t c = 0; c < columns; ++c) {
            int32_t sum = 11;
            for (int64_t k = 0; k < 9; ++k) {
              const int64_t at = (row * stride + k / 3) * 90 + c * stride + k % 3;
              sum += (weights.data<uint8_t>()[k] - zero) * (image[at] ^ flip);
            }
            ASSERT_EQ(sums[c], sum) << stride << " " << columns << " " << c;
          }
        }
      }
    }
  }
}

}  // namespace onward::quantize_test

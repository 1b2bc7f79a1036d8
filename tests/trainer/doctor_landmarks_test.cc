// SPDX-License-Identifier: Apache-2.0
// Where the doctor looks, and how it sums up what it sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/text_model.h"
#include "trainer/doctor/landmarks.h"
#include "trainer/doctor/spread.h"

namespace onward::doctor_landmarks_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph Read(const std::string& text) { return InferenceGraph(TextModel(text)).value(); }

TEST(Landmarks, FirstLayersAreSeenBehindConstants) {
  const Graph graph = Read(
      "g (float[N, 2] x, float[N, 2] k, float[N, 1] label) => (float[N, 1] y) <float[2, 1] w = {1, "
      "2}, float two = {2}, float[N, 2] a, float[N, 2] b> { a = Mul(x, two) b = Relu(a) [fc] c = "
      "MatMul(b, w) d = ReduceSum(k) e = Add(c, d) y = Sub(e, label) }");
  const std::vector<LayerRead> reads = FirstReads(graph, {"label"}, {"w"});
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].input, "x");
  EXPECT_EQ(reads[0].value, "b");
  EXPECT_EQ(reads[0].made, "c");
  EXPECT_THAT(reads[0].node, HasSubstr("'fc'"));
  EXPECT_EQ(reads[1].value, "k");  // no layer reads it
}

TEST(Landmarks, UnitsAreOnTheAxisOfTheirLayer) {
  const Graph graph = Read(
      "g (float[N, 4, 6] x, float[6, 5] w, float[4, 4, 1] k) => (float[N, 4, 5] y) <float zero = "
      "{0}, float[N, 4, 6] a, float[N, 4, 6] b> { c = Conv(x, k) a "
      "= Relu(c) b = Clip(a, zero) m = MatMul(b, w) n = Clip(m) y = Relu(n) }");
  const std::vector<UnitLayer> layers = UnitLayers(graph);
  ASSERT_EQ(layers.size(), 3u);  // a Clip without a lower end is none
  EXPECT_EQ(layers[0].axis, 1);
  EXPECT_EQ(layers[1].axis, 1);
  EXPECT_EQ(layers[2].axis, 2);
}

TEST(Landmarks, BiasesAreWhatIsOnlyAdded) {
  const Graph graph = Read(
      "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[1, 2] b = {1, 2}, "
      "float[1, 1, 2] c = {1, 2}, float[2, 1] both = {1, 2}, float[1, 2] d = {1, 2}, int64[2] flat "
      "= {1, 2}> { g = Gemm(x, w, d) a = Add(g, b) r = Reshape(c, flat) e = Add(r, a) t = "
      "Transpose(both) f = Add(e, t) h = MatMul(f, both) y = Add(f, h) }");
  EXPECT_THAT(AddedWeights(graph, {"w", "b", "c", "d", "both"}), ElementsAre("b", "c", "d"));
}

TEST(Spread, TellsFiniteNumbersApart) {
  Spread spread;
  spread.Add({1, 3, std::numeric_limits<double>::infinity(), std::nan("")});
  EXPECT_EQ(spread.count(), 2);
  EXPECT_EQ(spread.not_finite(), 2);
  EXPECT_EQ(spread.mean(), 2);
  EXPECT_EQ(spread.deviation(), 1);
  EXPECT_EQ(spread.low(), 1);
  EXPECT_EQ(spread.high(), 3);
  EXPECT_DOUBLE_EQ(spread.rms(), std::sqrt(5));
}

}  // namespace onward::doctor_landmarks_test

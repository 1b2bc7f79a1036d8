// SPDX-License-Identifier: Apache-2.0
// Which constants are weights: graphs as exporters write them, and what is decided on each value.
#include "training_info/weights/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/export.h"
#include "training_info/import.h"
#include "training_info/surgery/surgery.h"

namespace onward::weights_test {

using ::testing::ElementsAre;

// A number for each element, none like another.
std::string Fill(int n, double from = 0.31) {
  std::string text;
  for (int i = 0; i < n; ++i)
    absl::StrAppend(&text, i == 0 ? "" : ", ", from + 0.1 * std::sin(1.7 * i * i + i));
  return text;
}

Graph GraphOf(const std::string& text) { return InferenceGraph(TextModel(text)).value(); }

std::map<std::string, std::string> Decisions(const Graph& graph) {
  std::map<std::string, std::string> result;
  for (const WeightDecision& d : DecideWeights(graph, {graph.outputs[0].name}))
    result[d.name] = (d.trains ? "+ " : "- ") + d.reason;
  return result;
}

struct Case {
  const char* name;
  std::string text;
  std::map<std::string, std::string> expected;
};

std::vector<Case> Cases() {
  const std::string w = "float[4, 4] W = {" + Fill(16) + "}";
  const std::string v = "float[4, 4] V = {" + Fill(16, 0.7) + "}";
  return {
      {"LayersAndBiases",
       "m (float[N, 4] x) => (float[N, 4] y) <" + w + ", " + v +
           ", float[4] b = {1, 2, 3, 5}, float[4] c = {1, 2, 3, 5}> "
           "{ p = MatMul(x, W) h = Add(p, b) y = Gemm(h, V, c) }",
       {{"W", "+ weight of MatMul"},
        {"b", "+ bias"},
        {"V", "+ weight of Gemm"},
        {"c", "+ bias of Gemm"}}},
      {"TheBiasOfOneOutput",
       "m (float[N, 4] x) => (float[N, 1] y) <float[4, 1] W = {" + Fill(4) +
           "}, float[1] b = {0.5}, float[1] c = {0.5}> { p = MatMul(x, W) q = Add(p, b) y = Add(q, "
           "c) }",
       {{"W", "+ weight of MatMul"}, {"b", "+ bias"}, {"c", "- a single number in Add"}}},
      {"ScalesAndSingleNumbers",
       "m (float[N, 4] x) => (float[N, 4] y) <" + w + ", " + v +
           ", float s = {0.125}, float[1] t = {2}, float[4] gamma = {0.1, 0.1, 0.1, 0.1}> "
           "{ p = MatMul(x, W) a = Mul(p, s) b = Div(a, t) g = Mul(b, gamma) r = Add(g, x) "
           "y = MatMul(r, V) }",
       {{"W", "+ weight of MatMul"},
        {"s", "- a single number in Mul"},
        {"t", "- a single number in Div"},
        {"gamma", "+ scale of a layer"},
        {"V", "+ weight of MatMul"}}},
      {"MeanAndStandardDeviation",
       "m (float[N, 4] x) => (float[N, 4] y) <" + w +
           ", float[4] mean = {1, 2, 3, 5}, float[4] std = {1, 2, 3, 5}> "
           "{ a = Sub(x, mean) b = Div(a, std) y = MatMul(b, W) }",
       {{"W", "+ weight of MatMul"},
        {"mean", "- applied to the input before any layer"},
        {"std", "- applied to the input before any layer"}}},
      {"OutputsBackInTheirUnits",
       "m (float[N, 4] x) => (float[N, 4] y) <" + w +
           ", float[4] b = {1, 2, 3, 5}, float[4] std = {1, 2, 3, 5}, float[4] mean = {1, 2, 3, "
           "5}> { p = Gemm(x, W, b) a = Mul(p, std) y = Add(a, mean) }",
       {{"W", "+ weight of Gemm"},
        {"b", "+ bias of Gemm"},
        {"std", "- Mul behind the last layer"},
        {"mean", "- Add behind the last layer"}}},
      {"MasksAndPositions",
       "m (int64[N, 3] x) => (float[N, 3, 4] y) <float[9, 4] E = {" + Fill(36) +
           "}, float[3, 4] learned = {" + Fill(12) +
           "}, float[3, 4] sines = {0, 1, 0, 1, 0.84147098, 0.54030231, 0.00999983, 0.99995, "
           "0.90929743, -0.41614684, 0.01999867, 0.9998}, float[3, 3] mask = {0, -1e9, -1e9, 0, "
           "0, -1e9, 0, 0, 0}, " +
           v +
           "> "
           "{ e = Gather(E, x) h = Add(e, learned) i = Add(h, sines) t = Transpose <perm = [0, 2, "
           "1]> (i) s = MatMul(i, t) m = Add(s, mask) a = Softmax(m) o = MatMul(a, i) y = "
           "MatMul(o, V) }",
       {{"E", "+ embedding table of Gather"},
        {"learned", "+ table added to layers"},
        {"sines", "- a table of sines and cosines"},
        {"mask", "- a mask"},
        {"V", "+ weight of MatMul"}}},
      {"Anchors",
       "m (float[N, 4] x) => (float[N, 2, 2] y) <" + w +
           ", int64[3] to = {-1, 2, 2}, float[2, 2] centers = {0.5, 0.7, 1.5, 0.2}, float[2, 1] "
           "stride = {8, 16}> { p = MatMul(x, W) r = Reshape(p, to) a = Add(r, centers) y = "
           "Mul(a, stride) }",
       {{"W", "+ weight of MatMul"},
        {"centers", "- Add behind the last layer"},
        {"stride", "- Mul behind the last layer"}}},
      {"RecurrentLayers",
       "m (float[T, N, 2] x) => (float[T, 1, N, 2] y) <float[1, 8, 2] W = {" + Fill(16) +
           "}, float[1, 8, 2] R = {" + Fill(16) + "}, float[1, 16] B = {" + Fill(16) +
           "}, float[1, 3, 2] h = {" + Fill(6) + "}, float[1, 3, 2] c = {" + Fill(6) +
           "}> { y = LSTM <hidden_size = 2> (x, W, R, B, , h, c) }",
       {{"W", "+ weight of LSTM"},
        {"R", "+ weight of LSTM"},
        {"B", "+ weight of LSTM"},
        {"h", "- start state of LSTM"},
        {"c", "- start state of LSTM"}}},
      {"NormalizationInPieces",
       "m (float[N, 4] x) => (float[N, 4] y) <float eps = {1e-5}, float[4] g = {1, 1, 1, 1}, "
       "float[4] b = {0, 0, 0, 0}> { m = ReduceMean <keepdims = 1> (x) d = Sub(x, m) q = Mul(d, "
       "d) v = ReduceMean <keepdims = 1> (q) e = Add(v, eps) s = Sqrt(e) n = Div(d, s) "
       "p = Mul(n, g) y = Add(p, b) }",
       {{"eps", "- a single number in Add"}, {"g", "+ scale of a normalization"}, {"b", "+ bias"}}},
      {"OnesInFrontOfTheScaleOfAGroupNormalization",
       "m (float[N, 4, 2] x) => (float[N, 4, 2] y) <float[2] one = {1, 1}, float[2] zero = {0, "
       "0}, int64[3] to = {0, 2, 4}, int64[3] back = {0, 4, 2}, float[4, 1] g = {1, 1, 1, 1}, "
       "float[4, 1] b = {0, 0, 0, 0}> { r = Reshape(x, to) i = InstanceNormalization(r, one, "
       "zero) o = Reshape(i, back) p = Mul(o, g) y = Add(p, b) }",
       {{"one", "- ones and zeros in front of a scale"},
        {"zero", "- ones and zeros in front of a scale"},
        {"g", "+ scale of a normalization"},
        {"b", "+ bias"}}},
      {"TokensInFrontOfASequence",
       "m (float[1, 3, 4] x) => (float[1, 4, 4] y) <" + w + ", " + v +
           ", float[1, 1, 4] token = {0, 0, 0, 0}> { p = MatMul(x, W) c = Concat <axis = 1> "
           "(token, p) y = MatMul(c, V) }",
       {{"W", "+ weight of MatMul"},
        {"token", "+ token beside the results of layers in Concat"},
        {"V", "+ weight of MatMul"}}},
      {"ConstantNodesBesideInitializers",
       "m (float[N, 4] x) => (float[N, 4] y) <" + w + "> { V = Constant <value = float[4, 4] {" +
           Fill(16) +
           "}> () b = Constant <value = float[4] {1, 2, 3, 5}> () s = Constant <value = float[4] "
           "{1, 2, 3, 5}> () p = MatMul(x, W) q = Mul(p, s) r = MatMul(q, V) y = Add(r, b) }",
       {{"W", "+ weight of MatMul"},
        {"V", "+ weight of MatMul"},
        {"b", "+ bias"},
        {"s", "- scale of a layer, but a literal of the exporter"}}},
      {"NormalizedWeights",
       "m (float[N, 4] x) => (float[N, 4] y) <" + v +
           ", float[4, 1] g = {1, 2, 3, 4}, float two = {2}> { q = Pow(V, two) s = ReduceSum "
           "<keepdims = 1> (q) r = Sqrt(s) d = Div(V, r) w = Mul(g, d) y = Gemm <transB = 1> (x, "
           "w) }",
       {{"V", "+ weight of Gemm"}, {"g", "+ weight of Gemm"}, {"two", "- a single number in Pow"}}},
      {"SlopesStatisticsAndSettings",
       "m (float[N, 4, 2, 2] x) => (float[N, 4, 4, 4] y) <float[4, 1, 1] slope = {0.1, 0.2, 0.3, "
       "0.4}, float[4] g = {1, 2, 3, 4}, float[4] b = {1, 2, 3, 4}, float[4] mean = {1, 2, 3, 4}, "
       "float[4] var = {1, 2, 3, 4}, float[4] scales = {1, 1, 2, 2}, float lo = {0}> "
       "{ n = BatchNormalization(x, g, b, mean, var) p = PRelu(n, slope) c = Clip(p, lo) y = "
       "Resize(c, , scales) }",
       {{"slope", "+ slope of PRelu"},
        {"g", "+ scale of BatchNormalization"},
        {"b", "+ shift of BatchNormalization"},
        {"mean", "- running statistic of BatchNormalization"},
        {"var", "- running statistic of BatchNormalization"},
        {"scales", "- a setting of Resize"},
        {"lo", "- a setting of Clip"}}},
      {"RotaryFrequencies",
       "m (float[N, 3, 4] x) => (float[N, 3, 4] y) <" + w +
           ", float[1, 4] inverse = {1, 0.5, 0.1, 0.01}, int64[1] axis = {1}, int64 zero = {0}, "
           "int64 one = {1}> { sh = Shape <start = 1, end = 2> (x) n = Squeeze(sh) r = "
           "Range(zero, n, one) f = Cast <to = 1> (r) c = Unsqueeze(f, axis) a = MatMul(c, "
           "inverse) k = Cos(a) p = MatMul(x, W) y = Mul(p, k) }",
       {{"W", "+ weight of MatMul"}, {"inverse", "- combined with positions only"}}},
      {"SlicedTablesAndDistances",
       "m (int64[N, 4] x) => (float[N, 4, 4] y) <float[9, 4] E = {" + Fill(36) +
           "}, float[5, 4] sines = {0, 1, 0, 1, 0.84147098, 0.54030231, 0.00999983, 0.99995, "
           "0.90929743, -0.41614684, 0.01999867, 0.9998, 0.14112, -0.9899925, 0.0299955, 0.99955, "
           "-0.7568025, -0.6536436, 0.03998933, 0.9992}, int64[1] zero = {0}, int64[1] four = {4}, "
           "float[4, 4] far = {0, -0.5, -1, -1.5, -0.5, 0, -0.5, -1, -1, -0.5, 0, -0.5, -1.5, -1, "
           "-0.5, 0}, " +
           v +
           "> { e = Gather(E, x) p = Slice(sines, zero, four, zero) h = Add(e, "
           "p) t = Transpose <perm = [0, 2, 1]> (h) s = MatMul(h, t) m = Add(s, far) a = "
           "Softmax(m) "
           "o = MatMul(a, h) y = MatMul(o, V) }",
       {{"E", "+ embedding table of Gather"},
        {"sines", "- a table of sines and cosines"},
        {"far", "- a regular grid"},
        {"V", "+ weight of MatMul"}}},
      {"FilledTensors",
       "m (float[2, 4, 2] x) => (float[2, 4, 2] y) <" +
           std::string("float one = {1}, float zero = "
                       "{0}, int64[1] n = {4}, float[4, 4, 1] W = {") +
           Fill(16) +
           "}> { a = Expand(one, n) b = "
           "Expand(zero, n) c = Conv(x, W) y = InstanceNormalization(c, a, b) }",
       {{"one", "- a single number that fills a tensor"},
        {"zero", "- a single number that fills a tensor"},
        {"W", "+ weight of Conv"}}},
      {"QuantizedWeights",
       "m (float[N, 2] x) => (float[N, 2] y) <int8[2, 2] Q = {1, 2, 3, 4}, float[2] scale = {0.1, "
       "0.2}, float[2] b = {1, 2}> { w = DequantizeLinear <axis = 1> (Q, scale) p = MatMul(x, w) y "
       "= Add(p, b) }",
       {{"scale", "- a setting of DequantizeLinear"}, {"b", "+ bias"}}},
      {"InsideBranches",
       "m (float[N, 4] x, bool c) => (float[N, 4] y) <" + w +
           ", float s = {2}> { y = If(c) "
           "<then_branch = t () => (float[N, 4] a) { a = MatMul(x, W) }, else_branch = e () => "
           "(float[N, 4] b) { b = Mul(x, s) }> }",
       {{"W", "+ weight of MatMul"}, {"s", "- a single number in Mul"}}},
      {"ArraysWhereThereIsNothingElse",
       "m (float[2] x) => (float[2] y) <float[2] W = {1, 2}, float s = {2}> { h = Mul(x, W) y = "
       "Mul(h, s) }",
       {{"W", "+ applied to the input before any layer, as nothing else trains"},
        {"s", "- a single number in Mul"}}},
  };
}

class Weights : public testing::TestWithParam<Case> {};

TEST_P(Weights, AreDecidedByTheirUse) {
  EXPECT_EQ(Decisions(GraphOf(GetParam().text)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Graphs, Weights, testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr char kKind[] = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr char kFolded[] = "pkg.onnxscript.optimizer.folded_from";

TEST(WeightDecisions, TheExportersWordComesFirst) {
  Graph graph = GraphOf(
      "m (float[N, 4] x) => (float[N, 4] y) <float[4, 4] W = {" + Fill(16) +
      "}, float temperature = {2}, float[4] v = {1, 2, 3, 5}, float[4] u = {1, 2, 3, 5}, float[4] "
      "t = {1, 2, 3, 5}, float scale = {2}> "
      "{ p = MatMul(x, W) a = Mul(p, v) b = Mul(a, u) c = Mul(b, t) h = Mul(c, scale) q = Relu(h) "
      "z = Mul(q, temperature) k = MatMul(z, W) y = Identity(k) }");
  graph.metadata["temperature"][kKind] = "PARAMETER";
  graph.metadata["W"][kKind] = "PARAMETER";
  graph.metadata["v"][kKind] = "BUFFER";
  graph.metadata["u"][kFolded] = "['norm.weight', 'val_3']";
  graph.metadata["t"][kFolded] = "['val_2', 'val_3']";
  const auto decisions = Decisions(graph);
  EXPECT_EQ(decisions.at("temperature"),
            "+ a single number in Mul, a parameter by the exporter's word");
  EXPECT_EQ(decisions.at("W"), "+ weight of MatMul, a parameter by the exporter's word");
  EXPECT_EQ(decisions.at("v"), "- a buffer by the exporter's word");
  EXPECT_EQ(decisions.at("u"), "+ scale of a layer");
  EXPECT_EQ(decisions.at("t"), "- scale of a layer, but a literal of the exporter");
  EXPECT_EQ(decisions.at("scale"), "- a single number in Mul");
}

TEST(WeightDecisions, NumbersThatAreNotFiniteNeverTrain) {
  Graph graph = GraphOf(
      "m (float[N, 2] x) => (float[N, 2] y) <float[2, 2] W = {1, 2, 3, 5}, "
      "float[2] m = {0, 0}> { p = MatMul(x, W) y = Add(p, m) }");
  graph.initializers.at("m") = Floats({2}, {0, -INFINITY});
  EXPECT_EQ(Decisions(graph).at("m"), "- holds numbers that are not finite");
}

// The metadata travels: through files, raised opsets and rewritten models.
TEST(WeightDecisions, MetadataSurvivesARewrite) {
  Graph graph = GraphOf(
      "<ir_version: 8, opset_import: [\"\" : 13]> m (float[N, 2] x) => (float[N, "
      "2] y) <float[2, 2] W = {1, 2, 3, 5}, float t = {2}> "
      "{ p = MatMul(x, W) q = Mul(p, t) y = Softmax <axis = 1> (q) }");
  graph.metadata["t"][kKind] = "PARAMETER";
  const Model file = Reread(ModelFromGraph(graph, 8, "test"));
  auto made = MakeTrainable(file, {}, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->trained, ElementsAre("W", "t"));
  const Graph again = InferenceGraph(Reread(made->model)).value();
  EXPECT_EQ(again.ValueMetadata("t", kKind), "PARAMETER");
}

}  // namespace onward::weights_test

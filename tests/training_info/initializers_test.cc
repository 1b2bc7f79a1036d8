// SPDX-License-Identifier: Apache-2.0
// What initialization draws: moments and ranges beside the formulas of torch.nn.init.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "environment/environment.h"
#include "tests/support/text_model.h"
#include "training_info/author.h"
#include "training_info/import.h"
#include "training_info/initializers/initializer.h"
#include "training_info/validate.h"

namespace onward {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// A model of one layer whose weights hold a number each that no initialiser draws.
struct Layer {
  std::string text;  // "float[4, 3] W" declares; nodes
  std::vector<std::pair<std::string, Shape>> weights;
};

std::string Declared(const Layer& layer, const std::string& dtype) {
  std::vector<std::string> all;
  for (const auto& [name, shape] : layer.weights) {
    std::vector<std::string> numbers;
    // Neither uniform nor repeated: what looks like it came from elsewhere is taken apart.
    for (int64_t i = 0; i < shape.elements(); ++i)
      numbers.push_back(absl::StrCat(10 + (i * i * 31 + i * 17 + shape.rank()) % 10007));
    all.push_back(
        absl::StrCat(dtype, shape.ToString(), " ", name, " = {", absl::StrJoin(numbers, ","), "}"));
  }
  return absl::StrCat("<", absl::StrJoin(all, ", "), ">");
}

Model ModelOf(const Layer& layer, const std::string& dtype = "float") {
  const size_t nodes = layer.text.find('{');
  return TextModel(
      absl::StrCat(layer.text.substr(0, nodes), Declared(layer, dtype), layer.text.substr(nodes)));
}

std::unique_ptr<TrainingModel> Initialized(const Model& model, const std::string& init,
                                           uint64_t seed = 3) {
  AuthorOptions options;
  options.loss = {"mse", {}};
  options.init = ParseInit(init).value();
  options.train = {"*"};
  auto made = MakeTrainable(model, options, DefaultEnvironment());
  EXPECT_TRUE(made.ok()) << made.status();
  auto findings = CheckModel(made->model, DefaultEnvironment());
  EXPECT_TRUE(findings.ok() && findings->empty()) << init;
  auto training = Open(Reread(made->model));
  training->set_random({seed, 0});
  const absl::Status status = training->Initialize();
  EXPECT_TRUE(status.ok()) << status;
  return training;
}

struct Moments {
  double mean = 0, deviation = 0, low = INFINITY, high = -INFINITY;
};
Moments MomentsOf(const std::vector<double>& values) {
  Moments m;
  for (const double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  for (const double v : values)
    m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// Within five standard errors of a distribution that is no wider than a normal one.
void ExpectDrawn(const std::vector<double>& values, double mean, double deviation, double low,
                 double high, const std::string& what) {
  const Moments m = MomentsOf(values);
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(m.mean, mean, 5 * deviation / std::sqrt(n) + 1e-6) << what;
  EXPECT_NEAR(m.deviation, deviation, 5 * deviation / std::sqrt(2 * n) + 1e-6) << what;
  EXPECT_GE(m.low, low - 1e-6) << what;
  EXPECT_LE(m.high, high + 1e-6) << what;
}

Layer MatMulLayer() {
  return {"m (float[N, 50] x) => (float[N, 40] y) { y = MatMul(x, W) }", {{"W", {50, 40}}}};
}

// --- distributions

TEST(Initializers, DrawWhatTheirFormulasSay) {
  const double in = 50, out = 40, inf = INFINITY;
  const auto uniform = [](double deviation) { return deviation * std::sqrt(3.0); };
  // Of a normal distribution between -2 and 2.
  const double truncated = 0.879626;
  struct Case {
    std::string init;
    double mean, deviation, bound;
  };
  for (const Case& c : std::vector<Case>{
           {"default", 0, std::sqrt(1 / (3 * in)), 1 / std::sqrt(in)},
           {"kaiming_uniform", 0, std::sqrt(2 / in), uniform(std::sqrt(2 / in))},
           {"kaiming", 0, std::sqrt(2 / in), uniform(std::sqrt(2 / in))},
           {"kaiming_uniform:a=2.2360679775", 0, std::sqrt(1 / (3 * in)), 1 / std::sqrt(in)},
           {"kaiming_uniform:mode=fan_out,nonlinearity=tanh", 0, 5 / 3.0 / std::sqrt(out),
            uniform(5 / 3.0 / std::sqrt(out))},
           {"kaiming_normal:mode=fan_out,nonlinearity=relu", 0, std::sqrt(2 / out), inf},
           {"kaiming_normal:nonlinearity=linear", 0, 1 / std::sqrt(in), inf},
           {"kaiming_normal:nonlinearity=selu", 0, 0.75 / std::sqrt(in), inf},
           {"xavier_uniform", 0, std::sqrt(2 / (in + out)), std::sqrt(6 / (in + out))},
           {"xavier:gain=2", 0, 2 * std::sqrt(2 / (in + out)), 2 * std::sqrt(6 / (in + out))},
           {"xavier_normal:gain=0.5", 0, 0.5 * std::sqrt(2 / (in + out)), inf},
           {"normal", 0, 1, inf},
           {"normal:mean=2,std=0.02", 2, 0.02, inf},
           {"uniform:a=-0.25,b=0.25", 0, 0.5 / std::sqrt(12.0), 0.25},
           {"truncated_normal", 0, truncated, 2},
           {"trunc_normal:std=0.02,a=-0.04,b=0.04", 0, 0.02 * truncated, 0.04},
           {"zeros", 0, 0, 0},
           {"ones", 1, 0, 1},
           {"constant:val=0.5", 0.5, 0, 0.5},
       }) {
    auto training = Initialized(ModelOf(MatMulLayer()), c.init);
    ExpectDrawn(ValueOf(*training, "W"), c.mean, c.deviation, c.mean - c.bound, c.mean + c.bound,
                c.init);
  }
}

TEST(Initializers, UniformIsPyTorchsByDefault) {
  auto training = Initialized(ModelOf(MatMulLayer()), "uniform");
  ExpectDrawn(ValueOf(*training, "W"), 0.5, 1 / std::sqrt(12.0), 0, 1, "uniform");
}

// The tails of a normal distribution, where its inverse is steep.
TEST(Initializers, TruncatedNormalReachesIntoTheTails) {
  auto training = Initialized(ModelOf(MatMulLayer()), "truncated_normal:a=3,b=4");
  // (phi(3) - phi(4)) / (P(4) - P(3)), and the deviation likewise.
  ExpectDrawn(ValueOf(*training, "W"), 3.2602, 0.2254, 3, 4, "tail");
  training = Initialized(ModelOf(MatMulLayer()), "truncated_normal:a=-30,b=30");
  ExpectDrawn(ValueOf(*training, "W"), 0, 1, -7, 7, "whole");
}

TEST(Initializers, SeedsTellDrawsApart) {
  for (const char* init : {"default", "orthogonal", "truncated_normal"}) {
    const Model model = ModelOf(MatMulLayer());
    EXPECT_EQ(ValueOf(*Initialized(model, init, 1), "W"),
              ValueOf(*Initialized(model, init, 1), "W"));
    EXPECT_NE(ValueOf(*Initialized(model, init, 1), "W"),
              ValueOf(*Initialized(model, init, 2), "W"));
  }
}

TEST(Initializers, DrawEveryFloatType) {
  for (const std::string dtype : {"float16", "bfloat16", "double"}) {
    const Layer layer = {
        "m (" + dtype + "[N, 50] x) => (" + dtype + "[N, 40] y) { y = MatMul(x, W) }",
        {{"W", {50, 40}}}};
    for (const char* init :
         {"xavier_uniform", "normal:std=0.1", "truncated_normal", "orthogonal"}) {
      AuthorOptions options;
      options.loss = {"mse", {}};
      options.optimizer = {"sgd", {}};
      options.init = ParseInit(init).value();
      options.gradient = GradientForm::kExpanded;  // Gradient is not defined for bfloat16
      auto made = MakeTrainable(ModelOf(layer, dtype), options, DefaultEnvironment());
      ASSERT_TRUE(made.ok()) << made.status();
      auto training = Open(made->model);
      ASSERT_TRUE(training->Initialize().ok()) << init << " " << dtype;
      for (const double v : ValueOf(*training, "W")) ASSERT_LT(std::abs(v), 3) << init;
    }
  }
}

// --- orthogonal

// Rows of M (or columns, where there are fewer) are orthonormal: the largest error.
double OrthogonalityError(const double* m, int64_t rows, int64_t columns) {
  const bool tall = rows >= columns;
  const int64_t n = tall ? columns : rows, k = tall ? rows : columns;
  double most = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += tall ? m[p * columns + i] * m[p * columns + j]
                    : m[i * columns + p] * m[j * columns + p];
      most = std::max(most, std::abs(sum - (i == j ? 1 : 0)));
    }
  }
  return most;
}

TEST(Initializers, OrthogonalIsOrthogonal) {
  struct Case {
    Layer layer;
    int64_t matrices, rows, columns;
  };
  const auto product = [](int64_t in, int64_t out) {
    return Layer{
        absl::StrCat("m (float[N, ", in, "] x) => (float[N, ", out, "] y) { y = MatMul(x, W) }"),
        {{"W", {in, out}}}};
  };
  const std::vector<Case> cases = {
      {product(40, 40), 1, 40, 40},
      {product(64, 10), 1, 64, 10},
      {product(10, 64), 1, 10, 64},
      {product(1, 1), 1, 1, 1},
      {product(1, 7), 1, 1, 7},
      {product(2, 2), 1, 2, 2},
      {{"m (float[N, 20] x) => (float[N, 30] y) { y = Gemm <transB = 1> (x, W) }",
        {{"W", {30, 20}}}},
       1,
       30,
       20},
      {{"m (float[N, 4, 5, 5] x) => (float[N, 16, 3, 3] y) { y = Conv(x, W) }",
        {{"W", {16, 4, 3, 3}}}},
       1,
       16,
       36},
      {{"m (float[3, N, 6] x) => (float[3, N, 5] y) { y = MatMul(x, W) }", {{"W", {3, 6, 5}}}},
       3,
       6,
       5},
      {{"m (float[T, N, 3] x) => (float[T, 2, N, 4] y) { y = LSTM <hidden_size = 4, direction = "
        "\"bidirectional\"> (x, V, W) }",
        {{"V", {2, 16, 3}}, {"W", {2, 16, 4}}}},
       2,
       16,
       4},
  };
  for (const Case& c : cases) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      auto training = Initialized(ModelOf(c.layer), "orthogonal", seed);
      const std::vector<double> w = ValueOf(*training, "W");
      for (int64_t i = 0; i < c.matrices; ++i) {
        EXPECT_LE(OrthogonalityError(w.data() + i * c.rows * c.columns, c.rows, c.columns), 1e-4)
            << c.layer.text << ", seed " << seed;
      }
    }
  }
  const std::vector<double> w =
      ValueOf(*Initialized(ModelOf(product(8, 8)), "orthogonal:gain=3"), "W");
  double squares = 0;
  for (const double v : w) squares += v * v;
  EXPECT_NEAR(squares, 8 * 9, 1e-3);
}

// Small squares are often nearly singular: those are the ones that converge last.
TEST(Initializers, OrthogonalConvergesForManySeeds) {
  const Layer layer = {"m (float[200, N, 4] x) => (float[200, N, 4] y) { y = MatMul(x, W) }",
                       {{"W", {200, 4, 4}}}};
  double most = 0, determinant_signs = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<double> w = ValueOf(*Initialized(ModelOf(layer), "orthogonal", seed), "W");
    for (int i = 0; i < 200; ++i) {
      most = std::max(most, OrthogonalityError(w.data() + 16 * i, 4, 4));
      // No direction is preferred: the sign of the first number, for one.
      determinant_signs += w[16 * i] > 0 ? 1 : -1;
    }
  }
  EXPECT_LE(most, 1e-4);
  EXPECT_LT(std::abs(determinant_signs), 5 * std::sqrt(2000.0));
}

// --- layers

TEST(Initializers, FansAreThoseOfTheLayer) {
  struct Case {
    Layer layer;
    double fan_in, fan_out;
  };
  for (const Case& c : std::vector<Case>{
           {{"m (float[N, 60] x) => (float[N, 30] y) { y = Gemm(x, W) }", {{"W", {60, 30}}}},
            60,
            30},
           {{"m (float[N, 60] x) => (float[N, 30] y) { y = Gemm <transB = 1> (x, W) }",
             {{"W", {30, 60}}}},
            60,
            30},
           {{"m (float[60, N] x) => (float[30, N] y) { y = MatMul(W, x) }", {{"W", {30, 60}}}},
            60,
            30},
           {{"m (float[N, 60] x) => (float[N, 30] y) { t = Transpose(W) y = MatMul(x, t) }",
             {{"W", {30, 60}}}},
            60,
            30},
           {{"m (float[N, 60] x) => (float[N, 30] y) { s = Constant <value = int64[2] {60, 30}> () "
             "r = "
             "Reshape(W, s) y = MatMul(x, r) }",
             {{"W", {6, 10, 30}}}},
            60,
            30},
           {{"m (float[N, 8, 5, 5] x) => (float[N, 16, 3, 3] y) { y = Conv(x, W) }",
             {{"W", {16, 8, 3, 3}}}},
            72,
            144},
           // As PyTorch counts: fan_out knows nothing of groups.
           {{"m (float[N, 8, 5, 5] x) => (float[N, 32, 3, 3] y) { y = Conv <group = 4> (x, W) }",
             {{"W", {32, 2, 3, 3}}}},
            18,
            288},
           {{"m (float[2, N, 40] x) => (float[2, N, 30] y) { y = MatMul(x, W) }",
             {{"W", {2, 40, 30}}}},
            40,
            30},
           {{"m (float[T, N, 20] x) => (float[T, 1, N, 16] y) { y = LSTM <hidden_size = 16> (x, W, "
             "R) "
             "}",
             {{"W", {1, 64, 20}}, {"R", {1, 64, 16}}}},
            20,
            64},
       }) {
    const double deviation = std::sqrt(2 / (c.fan_in + c.fan_out));
    auto training = Initialized(ModelOf(c.layer), "xavier_uniform");
    ExpectDrawn(ValueOf(*training, "W"), 0, deviation, -deviation * std::sqrt(3.0),
                deviation * std::sqrt(3.0), c.layer.text);
    const double kaiming = std::sqrt(2 / c.fan_in);
    training = Initialized(ModelOf(c.layer), "kaiming_uniform:recurrent=same");
    ExpectDrawn(ValueOf(*training, "W"), 0, kaiming, -kaiming * std::sqrt(3.0),
                kaiming * std::sqrt(3.0), c.layer.text);
  }
}

TEST(Initializers, BiasesAreZeroOrPyTorchs) {
  const std::vector<std::string> nodes = {
      "y = Gemm(x, W, b)", "p = MatMul(x, W) y = Add(p, b)",
      "w = Identity(W) p = MatMul(x, w) q = Identity(p) y = Add(b, q)"};
  for (const std::string& text : nodes) {
    const Layer layer = {"m (float[N, 16] x) => (float[N, 400] y) { " + text + " }",
                         {{"W", {16, 400}}, {"b", {400}}}};
    EXPECT_THAT(ValueOf(*Initialized(ModelOf(layer), "xavier"), "b"), Each(0.0)) << text;
    ExpectDrawn(ValueOf(*Initialized(ModelOf(layer), "default"), "b"), 0, 0.25 / std::sqrt(3.0),
                -0.25, 0.25, text);
  }
  const Layer conv = {"m (float[N, 4, 4, 4] x) => (float[N, 300, 2, 2] y) { y = Conv(x, W, b) }",
                      {{"W", {300, 4, 3, 3}}, {"b", {300}}}};
  ExpectDrawn(ValueOf(*Initialized(ModelOf(conv), "default"), "b"), 0, 1 / std::sqrt(108.0),
              -1 / 6.0, 1 / 6.0, "conv");
}

TEST(Initializers, WhatIsNoMatrixHasItsOwnStart) {
  const Layer layer = {R"(m (int64[N] i) => (float[N, 20] y) {
      e = Gather(table, i)
      l = LayerNormalization(e, scale, shift)
      p = MatMul(l, W)
      r = PRelu(p, slope)
      q = MatMul(r, V)
      g = Mul(q, gain)
      y = MatMul(g, U)
    })",
                       {{"table", {100, 20}},
                        {"scale", {20}},
                        {"shift", {20}},
                        {"W", {20, 20}},
                        {"slope", {20}},
                        {"V", {20, 20}},
                        {"gain", {20}},
                        {"U", {20, 20}}}};
  for (const char* init : {"default", "orthogonal", "zeros"}) {
    auto training = Initialized(ModelOf(layer), init);
    ExpectDrawn(ValueOf(*training, "table"), 0, 1, -6, 6, init);
    EXPECT_THAT(ValueOf(*training, "scale"), Each(1.0)) << init;
    EXPECT_THAT(ValueOf(*training, "shift"), Each(0.0)) << init;
    EXPECT_THAT(ValueOf(*training, "slope"), Each(0.25)) << init;
    EXPECT_THAT(ValueOf(*training, "gain"), Each(1.0)) << init;
  }
  auto training = Initialized(ModelOf(layer), "xavier:embedding_std=0.02");
  ExpectDrawn(ValueOf(*training, "table"), 0, 0.02, -0.12, 0.12, "embedding_std");
}

Layer Recurrent(const std::string& op, int64_t gates) {
  return {absl::StrCat("m (float[T, N, 5] x) => (float[T, 2, N, 8] y) { y = ", op,
                       " <hidden_size = 8, direction = \"bidirectional\"> (x, W, R, B) }"),
          {{"W", {2, gates * 8, 5}}, {"R", {2, gates * 8, 8}}, {"B", {2, gates * 16}}}};
}

TEST(Initializers, RecurrentLayersBeginAsPyTorchs) {
  for (const auto& [op, gates] :
       std::vector<std::pair<std::string, int64_t>>{{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    auto training = Initialized(ModelOf(Recurrent(op, gates)), "default");
    const double bound = 1 / std::sqrt(8.0);
    for (const char* name : {"W", "R", "B"}) {
      ExpectDrawn(ValueOf(*training, name), 0, bound / std::sqrt(3.0), -bound, bound,
                  absl::StrCat(op, " ", name));
    }
  }
}

// LSTM's gates are i, o, f, c, GRU's z, r, h; the two biases of a gate are added.
TEST(Initializers, GatesThatKeepTheStateHaveTheirBias) {
  struct Case {
    std::string op, init;
    int64_t gates, gate;
    double kept;
  };
  for (const Case& c : std::vector<Case>{{"LSTM", "xavier", 4, 2, 1},
                                         {"LSTM", "orthogonal:forget_bias=0.5", 4, 2, 0.5},
                                         {"LSTM", "kaiming:forget_bias=0", 4, 2, 0},
                                         {"GRU", "xavier", 3, 0, 0},
                                         {"GRU", "xavier:update_bias=1", 3, 0, 1},
                                         {"RNN", "xavier", 1, 0, 0}}) {
    const std::vector<double> b =
        ValueOf(*Initialized(ModelOf(Recurrent(c.op, c.gates)), c.init), "B");
    for (size_t i = 0; i < b.size(); ++i) {
      const auto column = static_cast<int64_t>(i) % (c.gates * 16);
      EXPECT_EQ(b[i], column / 8 == c.gate ? c.kept : 0) << c.op << " " << c.init << " " << i;
    }
  }
  const std::vector<double> b =
      ValueOf(*Initialized(ModelOf(Recurrent("LSTM", 4)), "default:forget_bias=2"), "B");
  for (size_t i = 0; i < b.size(); ++i) {
    if (i % 64 / 8 == 2) {
      EXPECT_EQ(b[i], 2);
    } else {
      EXPECT_LE(std::abs(b[i]), 1 / std::sqrt(8.0));
    }
  }
}

TEST(Initializers, StatesOfRecurrentLayersAreOrthogonal) {
  const std::vector<double> r = ValueOf(*Initialized(ModelOf(Recurrent("GRU", 3)), "xavier"), "R");
  for (int i = 0; i < 2; ++i) EXPECT_LE(OrthogonalityError(r.data() + i * 24 * 8, 24, 8), 1e-4);
  const std::vector<double> same =
      ValueOf(*Initialized(ModelOf(Recurrent("GRU", 3)), "xavier:recurrent=same"), "R");
  EXPECT_GT(OrthogonalityError(same.data(), 24, 8), 0.01);
}

TEST(Initializers, ANewHeadIsDrawnTheSameWay) {
  const Layer layer = {"m (float[N, 30] x) => (float[N, 4] y) { y = Gemm(x, W, b) }",
                       {{"W", {30, 4}}, {"b", {4}}}};
  AuthorOptions options;
  options.head_classes = 20;
  options.init = ParseInit("orthogonal").value();
  auto made = MakeTrainable(ModelOf(layer), options, DefaultEnvironment());
  ASSERT_TRUE(made.ok()) << made.status();
  const Graph graph = *InferenceGraph(made->model);
  EXPECT_LE(OrthogonalityError(Values(graph.initializers.at("W")).data(), 30, 20), 1e-4);
  EXPECT_THAT(Values(graph.initializers.at("b")), Each(0.0));
  options.init = {};
  made = MakeTrainable(ModelOf(layer), options, DefaultEnvironment());
  const double bound = 1 / std::sqrt(30.0);
  ExpectDrawn(Values(InferenceGraph(made->model)->initializers.at("W")), 0, bound / std::sqrt(3.0),
              -bound, bound, "head");
}

// Nothing but operators of the standard.
TEST(Initializers, AreStandardNodes) {
  for (const std::string& name : InitNames()) {
    AuthorOptions options;
    options.loss = {"mse", {}};
    options.init.name = name;
    auto made = MakeTrainable(ModelOf(Recurrent("LSTM", 4)), options, DefaultEnvironment());
    ASSERT_TRUE(made.ok()) << made.status();
    auto spec = ImportTraining(Reread(made->model));
    ASSERT_TRUE(spec.ok());
    for (const Node& node : spec->entries[0].initialization.nodes)
      EXPECT_EQ(node.domain, "") << name;
  }
}

TEST(Initializers, TextsAreChecked) {
  EXPECT_EQ(ParseInit("xavier")->name, "xavier_uniform");
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"kaimin", "unknown initialiser 'kaimin': did you mean"},
           {"kaiming:gain=2", "unknown option of initialiser 'kaiming_uniform'"},
           {"kaiming:mode=fan", "mode"},
           {"uniform:a=1,b=0", "'a' has to be below 'b'"},
           {"truncated_normal:std=0", "std"},
           {"zeros:val=1", "val"}}) {
    auto parsed = ParseInit(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr(message));
  }
  AuthorOptions options;
  options.init.name = "nothing";
  EXPECT_FALSE(MakeTrainable(ModelOf(MatMulLayer()), options, DefaultEnvironment()).ok());
}

}  // namespace
}  // namespace onward

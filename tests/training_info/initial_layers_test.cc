// SPDX-License-Identifier: Apache-2.0
// How the weights of each kind of layer begin: fans, biases, gates, heads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/training_info/drawn_layer.h"
#include "training_info/import.h"

namespace onward::initial_layers_test {

using ::testing::Each;
using ::testing::HasSubstr;

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

}  // namespace onward::initial_layers_test

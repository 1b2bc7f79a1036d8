// SPDX-License-Identifier: Apache-2.0
// What initialization draws: moments and ranges beside the formulas of torch.nn.init.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/training_info/drawn_layer.h"
#include "training_info/import.h"

namespace onward::initializers_test {

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

}  // namespace onward::initializers_test

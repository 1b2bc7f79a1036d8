// SPDX-License-Identifier: Apache-2.0
// The direct convolutions against plain ones in double.
#include "core/ops/conv/conv_direct.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/base/parallel.h"
#include "tests/support/conv_case.h"

namespace onward::conv_direct_test {

ConvCase Pointwise(int64_t n, int64_t c, int64_t k, int64_t h, int64_t w) {
  return {n, c, k, h, w};
}
ConvCase Depthwise(int64_t n, int64_t c, int64_t h, int64_t w, int64_t kernel, int64_t stride,
                   std::vector<int64_t> pads) {
  return {n, c, c, h, w, kernel, stride, std::move(pads), true};
}

// Elsewhere activations are in blocks of 16 channels, and oneDNN serves all.
bool InBlocksOf8() { return DirectServes(Pointwise(1, 8, 8, 4, 4).geometry()); }

std::vector<ConvCase> Cases() {
  std::vector<ConvCase> cases = {
      Pointwise(1, 8, 8, 1, 1),     Pointwise(3, 8, 16, 3, 3),     Pointwise(1, 16, 8, 7, 5),
      Pointwise(3, 20, 24, 7, 5),   Pointwise(1, 24, 20, 12, 12),  Pointwise(3, 100, 144, 3, 3),
      Pointwise(1, 144, 100, 7, 5), Pointwise(3, 24, 144, 12, 12), Pointwise(2, 144, 24, 17, 16),
      Pointwise(1, 960, 160, 3, 3), Pointwise(3, 160, 960, 3, 3),  Pointwise(1, 960, 20, 1, 1),
      Pointwise(3, 20, 960, 1, 1),  Pointwise(40, 16, 16, 3, 3),   Pointwise(1, 16, 40, 30, 31),
      Pointwise(3, 264, 8, 7, 5),   Pointwise(2, 3, 5, 4, 4),      Pointwise(2, 520, 16, 5, 5),
  };
  for (const int64_t kernel : {3, 5, 7}) {
    for (const int64_t stride : {1, 2}) {
      const int64_t half = kernel / 2, narrow = std::max<int64_t>(kernel, 5);
      const auto add = [&](int64_t n, int64_t c, int64_t h, int64_t w, std::vector<int64_t> pads) {
        cases.push_back(Depthwise(n, c, h, w, kernel, stride, std::move(pads)));
      };
      add(1, 8, 1, 1, {half, half, half, half});
      add(3, 16, 3, 3, {half, half, half, half});
      add(3, 20, 7, narrow, {0, 0, 0, 0});
      add(1, 24, 12, 12, {half, half, half, half});
      add(3, 100, 12, 12, {0, 1, half, half});
      add(1, 144, 7, narrow, {1, 0, 2, 1});
      add(2, 8, 9, 29, {half, half, half, half});
      add(2, 12, 6, 10, {kernel, kernel + 1, 0, kernel});
      add(1, 960, 3, 3, {half, half, half, half});
      add(33, 16, 6, 6, {0, half, 1, half});
    }
  }
  return cases;
}

// Of several taps: forward only.
std::vector<ConvCase> WindowedCases() {
  const auto windowed = [](int64_t n, int64_t c, int64_t k, int64_t h, int64_t w, int64_t kernel,
                           int64_t stride, std::vector<int64_t> pads) {
    return ConvCase{n, c, k, h, w, kernel, stride, std::move(pads)};
  };
  return {
      windowed(1, 8, 8, 1, 1, 3, 2, {1, 1, 1, 1}),
      windowed(2, 16, 16, 9, 13, 3, 2, {1, 1, 1, 1}),
      windowed(1, 24, 40, 12, 12, 3, 2, {0, 1, 1, 0}),
      windowed(3, 20, 12, 7, 28, 3, 2, {0, 0, 0, 0}),
      windowed(1, 40, 24, 40, 50, 3, 2, {1, 1, 1, 1}),
      windowed(1, 104, 48, 9, 9, 3, 2, {1, 1, 1, 1}),
      windowed(2, 16, 32, 11, 30, 5, 2, {2, 2, 2, 2}),
      windowed(1, 8, 24, 10, 10, 7, 2, {3, 3, 3, 3}),
      windowed(2, 300, 16, 8, 9, 1, 2, {0, 0, 0, 0}),
      windowed(1, 16, 16, 6, 7, 1, 2, {0, 1, 2, 0}),
      windowed(2, 12, 20, 6, 7, 3, 1, {1, 1, 1, 1}),
      windowed(1, 16, 16, 5, 8, 4, 1, {0, 2, 1, 0}),
      windowed(1, 16, 16, 2, 2, 2, 2, {4, 5, 3, 6}),
  };
}

constexpr CpuFeatures kNarrow = {.avx2 = true, .fma = true};

KernelFactory Forward(CpuFeatures cpu = ThisCpu()) {
  return [=](const KernelRequest& r) { return AnyDirectConv(r, cpu); };
}
KernelFactory InputGrad(CpuFeatures cpu = ThisCpu()) {
  return [=](const KernelRequest& r) { return AnyDirectConvInputGrad(r, cpu); };
}

class DirectConvTest : public ConvKernelTest {
 protected:
  DirectConvTest() : ConvKernelTest(2e-6) {}

  void SetUp() override {
    if (!InBlocksOf8()) GTEST_SKIP() << "activations are not in blocks of 8 channels";
  }

  void ExpectConv(const std::vector<Input>& inputs, const std::vector<double>& expected,
                  int constant = -1) {
    ExpectActivation(Forward(), inputs, GetParam().y_shape(), expected, constant);
  }

  // With more threads than pieces of the one or the other kind, too.
  void ExpectSameForAnyThreads(const KernelFactory& factory, const std::vector<Input>& inputs,
                               const Shape& shape) {
    const int threads = Threads();
    SetThreads(1);
    const std::vector<Tensor> one = Run(factory, inputs, {shape}, true);
    for (const int team : {2, 5}) {
      SetThreads(team);
      EXPECT_TRUE(Identical(Run(factory, inputs, {shape}, true)[0], one[0])) << team;
    }
    SetThreads(threads);
  }
};

class DirectConvGradTest : public DirectConvTest {};

TEST_P(DirectConvTest, Conv) { ExpectConv({X(), W()}, Expected(false)); }

TEST_P(DirectConvTest, IsTheSameWithoutWideRegisters) {
  if (!ThisCpu().avx512f) GTEST_SKIP() << "this CPU has no AVX-512";
  const ConvCase& p = GetParam();
  node_.attributes["activation"] = "Relu";
  const std::vector<Input> inputs = {X(), W(), Bias(), Dy()};
  const std::vector<Tensor> y = Run(Forward(), inputs, {p.y_shape()}, true);
  ASSERT_EQ(y.size(), 1);
  EXPECT_TRUE(Identical(Run(Forward(kNarrow), inputs, {p.y_shape()}, true)[0], y[0]));
}

TEST_P(DirectConvGradTest, IsTheSameWithoutWideRegisters) {
  if (!ThisCpu().avx512f) GTEST_SKIP() << "this CPU has no AVX-512";
  const std::vector<Shape> shapes = {GetParam().x_shape()};
  const std::vector<Tensor> dx = Run(InputGrad(), {Dy(), W(), X()}, shapes, true);
  ASSERT_EQ(dx.size(), 1);
  EXPECT_TRUE(Identical(Run(InputGrad(kNarrow), {Dy(), W(), X()}, shapes, true)[0], dx[0]));
}

TEST_P(DirectConvTest, ConvWithBias) { ExpectConv({X(), W(), Bias()}, Expected(true)); }

TEST_P(DirectConvTest, ConvOfConstantWeights) { ExpectConv({X(), W()}, Expected(false), 1); }

TEST_P(DirectConvTest, ConvWithResidualAndRelu) {
  node_.attributes["activation"] = "Relu";
  std::vector<double> expected = Expected(false);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(expected[i] + dy_[i], 0.0);
  ExpectConv({X(), W(), {}, Dy()}, expected);
}

// These bounds would not leave zeros in lanes that are not in use.
TEST_P(DirectConvTest, ConvWithBiasAndClip) {
  node_.attributes["activation"] = "Clip";
  node_.attributes["activation_low"] = 0.5f;
  node_.attributes["activation_high"] = 6.0f;
  std::vector<double> expected = Expected(true);
  for (double& v : expected) v = std::clamp(v, 0.5, 6.0);
  ExpectConv({X(), W(), Bias()}, expected);
}

TEST_P(DirectConvGradTest, ConvInputGrad) {
  const std::vector<double> expected = ExpectedInputGrad();
  for (const int constant : {-1, 1}) {
    ExpectActivation(InputGrad(), {Dy(), W(), X()}, GetParam().x_shape(), expected, constant);
  }
}

TEST_P(DirectConvGradTest, ConvWeightGrad) {
  const ConvCase& p = GetParam();
  const std::vector<double> dw = ExpectedWeightGrad(), db = ExpectedBiasGrad();
  const int threads = Threads();
  for (const int team : {1, 2, 5}) {
    SetThreads(team);
    const std::vector<Tensor> both =
        Run(AnyDirectConvWeightGrad, {Dy(), X(), W()}, {p.w_shape(), {p.k}}, false);
    const std::vector<Tensor> one =
        Run(AnyDirectConvWeightGrad, {Dy(), X(), W()}, {p.w_shape()}, false);
    SetThreads(threads);
    ASSERT_EQ(both.size(), 2);
    ASSERT_EQ(one.size(), 1);
    ExpectWeights(both[0], dw);
    ExpectWeights(both[1], db);
    EXPECT_TRUE(Identical(both[0], one[0]));
  }
}

TEST_P(DirectConvTest, ResultsDoNotDependOnThreads) {
  ExpectSameForAnyThreads(Forward(), {X(), W()}, GetParam().y_shape());
}

TEST_P(DirectConvGradTest, ResultsDoNotDependOnThreads) {
  ExpectSameForAnyThreads(InputGrad(), {Dy(), W(), X()}, GetParam().x_shape());
}

INSTANTIATE_TEST_SUITE_P(Shapes, DirectConvTest, ::testing::ValuesIn(Cases()), ConvCaseName);
INSTANTIATE_TEST_SUITE_P(Windows, DirectConvTest, ::testing::ValuesIn(WindowedCases()),
                         ConvCaseName);
INSTANTIATE_TEST_SUITE_P(Shapes, DirectConvGradTest, ::testing::ValuesIn(Cases()), ConvCaseName);

TEST(DirectServes, WholeShapesOnly) {
  if (!InBlocksOf8()) GTEST_SKIP() << "activations are not in blocks of 8 channels";
  EXPECT_TRUE(DirectServes(Depthwise(1, 16, 8, 8, 3, 2, {1, 1, 1, 1}).geometry()));
  EXPECT_FALSE(DirectServes(Depthwise(1, 16, 8, 8, 4, 1, {1, 1, 1, 1}).geometry()));
  EXPECT_FALSE(DirectServes(Depthwise(1, 16, 8, 8, 3, 3, {1, 1, 1, 1}).geometry()));
  // Padding around a 1x1 kernel.
  ConvCase padded = Pointwise(1, 16, 16, 4, 4);
  padded.pads = {1, 0, 0, 0};
  EXPECT_TRUE(DirectServes(padded.geometry()));
  EXPECT_FALSE(DirectServes(padded.geometry(), ConvPass::kInputGrad));
  EXPECT_FALSE(DirectServes(padded.geometry(), ConvPass::kWeightGrad));
  ConvCase wide = {1, 16, 16, 80, 80, 9, 2};
  EXPECT_FALSE(DirectServes(wide.geometry()));
  // Images of few channels stay plain.
  EXPECT_FALSE(DirectPays(Pointwise(1, 3, 16, 32, 32).geometry(), ConvPass::kForward, false));
  EXPECT_TRUE(DirectPays(Pointwise(1, 24, 144, 32, 32).geometry(), ConvPass::kForward, false));
  EXPECT_FALSE(
      DirectPays(Pointwise(1, 24, 144, 32, 32).geometry(), ConvPass::kForward, true, kNarrow));
  constexpr CpuFeatures kWide = {.avx2 = true, .fma = true, .avx512f = true};
  EXPECT_TRUE(
      DirectPays(Pointwise(1, 24, 144, 32, 32).geometry(), ConvPass::kForward, true, kWide));
  // Windows, where oneDNN does without AVX-512; narrow rows leave registers unused.
  const ConvGeometry windowed = ConvCase{1, 16, 16, 16, 16, 3, 2, {1, 1, 1, 1}}.geometry();
  EXPECT_TRUE(DirectPays(windowed, ConvPass::kForward, true, kWide));
  EXPECT_FALSE(DirectPays(windowed, ConvPass::kForward, true, kNarrow));
  EXPECT_FALSE(DirectPays(windowed, ConvPass::kInputGrad, false, kWide));
  const ConvGeometry few = ConvCase{1, 16, 16, 8, 8, 3, 2, {1, 1, 1, 1}}.geometry();
  EXPECT_FALSE(DirectPays(few, ConvPass::kForward, true, kWide));
}

}  // namespace onward::conv_direct_test

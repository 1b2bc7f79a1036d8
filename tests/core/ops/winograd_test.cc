// SPDX-License-Identifier: Apache-2.0
// Winograd's convolutions against plain ones in double.
#include "core/ops/conv/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/base/parallel.h"
#include "tests/support/conv_case.h"

namespace onward::winograd_test {

constexpr double kTolerance = 1e-5;

// A 3x3 convolution.
ConvCase Square(int64_t n, int64_t c, int64_t k, int64_t h, int64_t w,
                std::vector<int64_t> pads = {1, 1, 1, 1}, bool bias = false) {
  return {n, c, k, h, w, 3, 1, std::move(pads), false, bias};
}

// Elsewhere activations are in blocks of 16 channels, and oneDNN serves all.
bool InBlocksOf8() { return WinogradServes(Square(1, 8, 8, 4, 4).geometry()); }

std::vector<ConvCase> Cases() {
  return {
      Square(1, 8, 8, 1, 1),
      Square(1, 8, 8, 4, 4, {1, 1, 1, 1}, true),
      Square(1, 8, 16, 5, 7),
      Square(2, 16, 8, 6, 3, {0, 0, 0, 0}, true),
      Square(3, 24, 40, 9, 10, {2, 2, 2, 2}, true),
      Square(2, 40, 24, 11, 13, {0, 1, 2, 0}),
      Square(1, 16, 16, 3, 30, {2, 0, 1, 2}, true),
      Square(1, 8, 8, 30, 1, {1, 2, 0, 2}),
      Square(5, 64, 64, 8, 8, {1, 1, 1, 1}, true),
      Square(2, 64, 48, 17, 19),
      Square(4, 32, 64, 14, 14, {1, 1, 1, 1}, true),
      Square(9, 72, 8, 4, 4),
      Square(9, 8, 136, 4, 5),
      Square(2, 256, 64, 7, 7, {1, 1, 1, 1}, true),
      Square(1, 64, 256, 7, 7),
  };
}

class WinogradTest : public ConvKernelTest {
 protected:
  WinogradTest() : ConvKernelTest(kTolerance) {}

  void SetUp() override {
    if (!InBlocksOf8()) GTEST_SKIP() << "activations are not in blocks of 8 channels";
  }

  std::vector<Input> ForwardInputs() const {
    std::vector<Input> inputs = {X(), W()};
    if (GetParam().bias) inputs.push_back(Bias());
    return inputs;
  }
};

constexpr CpuFeatures kNarrow = {.avx2 = true, .fma = true};

KernelFactory Anywhere(const WinogradEpilogue& epilogue = {}, CpuFeatures cpu = ThisCpu()) {
  return [=](const KernelRequest& r) { return AnyWinogradConv(r, epilogue, cpu); };
}
KernelFactory InputGrad(CpuFeatures cpu = ThisCpu()) {
  return [=](const KernelRequest& r) { return AnyWinogradConvInputGrad(r, cpu); };
}
KernelFactory WeightGrad(CpuFeatures cpu = ThisCpu()) {
  return [=](const KernelRequest& r) { return AnyWinogradConvWeightGrad(r, cpu); };
}

TEST_P(WinogradTest, Conv) {
  ExpectActivation(Anywhere(), ForwardInputs(), GetParam().y_shape(), Expected(GetParam().bias));
}

TEST_P(WinogradTest, ConvOfConstantWeightsHasTheSameBits) {
  const Shape y = GetParam().y_shape();
  const std::vector<Tensor> variable = Run(Anywhere(), ForwardInputs(), {y}, true);
  const std::vector<Tensor> constant = Run(Anywhere(), ForwardInputs(), {y}, true, 1);
  ASSERT_EQ(variable.size(), 1);
  ASSERT_EQ(constant.size(), 1);
  EXPECT_TRUE(Identical(variable[0], constant[0]));
}

TEST_P(WinogradTest, ConvWithEpilogue) {
  std::vector<Input> inputs = ForwardInputs();
  inputs.resize(3);
  inputs.push_back(Dy());
  std::vector<double> expected = Expected(GetParam().bias);
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] = std::clamp(expected[i] + dy_[i], 0.0, 6.0);
  }
  ExpectActivation(Anywhere({.residual_input = 3, .low = 0, .high = 6}), inputs,
                   GetParam().y_shape(), expected);
}

TEST_P(WinogradTest, ConvInputGrad) {
  const std::vector<Input> inputs = {Dy(), W(), X()};
  const Shape x = GetParam().x_shape();
  const std::vector<Tensor> dx = Run(InputGrad(), inputs, {x}, true);
  const std::vector<Tensor> constant = Run(InputGrad(), inputs, {x}, true, 1);
  ASSERT_EQ(dx.size(), 1);
  ASSERT_EQ(constant.size(), 1);
  EXPECT_TRUE(Identical(dx[0], constant[0]));
  ExpectActivation(InputGrad(), inputs, x, ExpectedInputGrad());
}

TEST_P(WinogradTest, ConvWeightGrad) {
  const ConvCase& p = GetParam();
  std::vector<Shape> outputs = {p.w_shape()};
  if (p.bias) outputs.push_back({p.k});
  const std::vector<Tensor> results = Run(WeightGrad(), {Dy(), X(), W()}, outputs, false);
  ASSERT_EQ(results.size(), outputs.size());
  ExpectWeights(results[0], ExpectedWeightGrad());
  if (p.bias) ExpectWeights(results[1], ExpectedBiasGrad());
}

TEST_P(WinogradTest, IsTheSameWithoutWideRegisters) {
  if (!ThisCpu().avx512f) GTEST_SKIP() << "this CPU has no AVX-512";
  const ConvCase& p = GetParam();
  const auto same = [&](const KernelFactory& wide, const KernelFactory& narrow,
                        const std::vector<Input>& inputs, const Shape& output, bool blocked) {
    const std::vector<Tensor> a = Run(wide, inputs, {output}, blocked);
    const std::vector<Tensor> b = Run(narrow, inputs, {output}, blocked);
    return a.size() == 1 && b.size() == 1 && Identical(a[0], b[0]);
  };
  EXPECT_TRUE(same(Anywhere(), Anywhere({}, kNarrow), ForwardInputs(), p.y_shape(), true));
  EXPECT_TRUE(same(InputGrad(), InputGrad(kNarrow), {Dy(), W(), X()}, p.x_shape(), true));
  EXPECT_TRUE(same(WeightGrad(), WeightGrad(kNarrow), {Dy(), X(), W()}, p.w_shape(), false));
}

// One thread sums over chunks of tiles; many threads share the channels and take
// the tiles in large chunks.
class WinogradThreadsTest : public WinogradTest {};

TEST_P(WinogradThreadsTest, ConvWeightGradIsSharedInTwoWays) {
  const ConvCase& p = GetParam();
  const auto run = [&](int team) {
    SetThreads(team);
    return Run(WeightGrad(), {Dy(), X(), W()}, {p.w_shape(), {p.k}}, false);
  };
  const int threads = Threads();
  const std::vector<Tensor> one = run(1), many = run(8);
  SetThreads(threads);
  ASSERT_EQ(one.size(), 2);
  ASSERT_EQ(many.size(), 2);
  for (int i = 0; i < 2; ++i) {
    const absl::Span<const float> expected = one[i].values<float>();
    ExpectWeights(many[i], {expected.begin(), expected.end()});
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradThreadsTest,
                         ::testing::Values(Square(18, 128, 128, 15, 16),
                                           Square(4, 64, 128, 13, 16)));

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradTest, ::testing::ValuesIn(Cases()), ConvCaseName);

TEST(WinogradPays, WhereThereIsEnoughToSave) {
  if (!InBlocksOf8()) GTEST_SKIP() << "activations are not in blocks of 8 channels";
  for (const ConvPass pass : {ConvPass::kForward, ConvPass::kInputGrad, ConvPass::kWeightGrad}) {
    EXPECT_TRUE(WinogradPays(Square(32, 64, 64, 32, 32).geometry(), pass));
    EXPECT_TRUE(WinogradPays(Square(32, 512, 512, 4, 4).geometry(), pass));
    EXPECT_TRUE(WinogradPays(Square(1, 512, 512, 7, 7).geometry(), pass));
    // One tile: transforming the weights costs more than it saves.
    EXPECT_FALSE(WinogradPays(Square(1, 512, 512, 4, 4).geometry(), pass));
    // Tiles that are mostly padding.
    EXPECT_FALSE(WinogradPays(Square(32, 64, 64, 2, 2).geometry(), pass));
  }
}

TEST(WinogradServes, WholeBlocksOfChannelsAndSmallPads) {
  if (!InBlocksOf8()) GTEST_SKIP() << "activations are not in blocks of 8 channels";
  EXPECT_TRUE(WinogradServes(Square(1, 8, 24, 5, 5).geometry()));
  EXPECT_FALSE(WinogradServes(Square(1, 8, 12, 5, 5).geometry()));
  EXPECT_FALSE(WinogradServes(Square(1, 3, 8, 5, 5).geometry()));
  EXPECT_FALSE(WinogradServes(Square(1, 8, 8, 5, 5, {3, 1, 1, 1}).geometry()));
  ConvGeometry strided = Square(1, 8, 8, 5, 5).geometry();
  strided.window.strides[1] = 2;
  EXPECT_FALSE(WinogradServes(strided));
}

}  // namespace onward::winograd_test

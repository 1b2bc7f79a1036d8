// SPDX-License-Identifier: Apache-2.0
// Winograd's convolutions against plain ones in double.
#include "core/ops/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/base/parallel.h"

namespace onward {
namespace {

constexpr int64_t kBlock = 8;

struct Case {
  int64_t n, c, k, h, w;
  std::vector<int64_t> pads = {1, 1, 1, 1};  // top, left, bottom, right
  bool bias = false;

  int64_t out_h() const { return h + pads[0] + pads[2] - 2; }
  int64_t out_w() const { return w + pads[1] + pads[3] - 2; }
  Shape x_shape() const { return {n, c, h, w}; }
  Shape w_shape() const { return {k, c, 3, 3}; }
  Shape y_shape() const { return {n, k, out_h(), out_w()}; }
};

std::ostream& operator<<(std::ostream& out, const Case& p) {
  return out << p.x_shape().ToString() << " to " << p.y_shape().ToString();
}

ConvGeometry Geometry(const Case& p) {
  Node node;
  node.op_type = "Conv";
  node.attributes["pads"] = p.pads;
  return *GeometryOfConv(node, p.x_shape(), p.w_shape());
}

// Elsewhere activations are in blocks of 16 channels, and oneDNN serves all.
bool InBlocksOf8() { return WinogradServes(Geometry({1, 8, 8, 4, 4})); }

std::vector<Case> Cases() {
  return {
      {1, 8, 8, 1, 1},
      {1, 8, 8, 4, 4, {1, 1, 1, 1}, true},
      {1, 8, 16, 5, 7},
      {2, 16, 8, 6, 3, {0, 0, 0, 0}, true},
      {3, 24, 40, 9, 10, {2, 2, 2, 2}, true},
      {2, 40, 24, 11, 13, {0, 1, 2, 0}},
      {1, 16, 16, 3, 30, {2, 0, 1, 2}, true},
      {1, 8, 8, 30, 1, {1, 2, 0, 2}},
      {5, 64, 64, 8, 8, {1, 1, 1, 1}, true},
      {2, 64, 48, 17, 19},
      {4, 32, 64, 14, 14, {1, 1, 1, 1}, true},
      {9, 72, 8, 4, 4},
      {9, 8, 136, 4, 5},
      {2, 256, 64, 7, 7, {1, 1, 1, 1}, true},
      {1, 64, 256, 7, 7},
  };
}

std::vector<float> Normal(int64_t count, double deviation, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(normal(generator));
  return values;
}

// [n][c][h][w] to [n][c/8][h][w][8], and back.
Tensor Blocked(const Shape& shape, const std::vector<float>& plain) {
  Tensor t(DType::kFloat, shape);
  const int64_t plane = shape[2] * shape[3];
  for (int64_t i = 0; i < t.elements(); ++i) {
    const int64_t channel = i / plane, at = i % plane;
    t.data<float>()[(channel / kBlock * plane + at) * kBlock + channel % kBlock] = plain[i];
  }
  return t;
}

std::vector<float> Plain(const Tensor& blocked) {
  const int64_t plane = blocked.shape()[2] * blocked.shape()[3];
  std::vector<float> plain(blocked.elements());
  for (int64_t i = 0; i < blocked.elements(); ++i) {
    const int64_t channel = i / plane, at = i % plane;
    plain[i] = blocked.data<float>()[(channel / kBlock * plane + at) * kBlock + channel % kBlock];
  }
  return plain;
}

Tensor Row(const Shape& shape, const std::vector<float>& values) {
  return Tensor::FromValues<float>(shape, absl::MakeConstSpan(values));
}

// Calls f(x index, w index, y index) for every multiplication of a convolution.
template <typename F>
void ForProducts(const Case& p, const F& f) {
  for (int64_t n = 0; n < p.n; ++n) {
    for (int64_t k = 0; k < p.k; ++k) {
      for (int64_t c = 0; c < p.c; ++c) {
        for (int64_t oh = 0; oh < p.out_h(); ++oh) {
          for (int64_t ow = 0; ow < p.out_w(); ++ow) {
            for (int64_t t = 0; t < 9; ++t) {
              const int64_t ih = oh + t / 3 - p.pads[0], iw = ow + t % 3 - p.pads[1];
              if (ih < 0 || ih >= p.h || iw < 0 || iw >= p.w) continue;
              f(((n * p.c + c) * p.h + ih) * p.w + iw, (k * p.c + c) * 9 + t,
                ((n * p.k + k) * p.out_h() + oh) * p.out_w() + ow);
            }
          }
        }
      }
    }
  }
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 0, error = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double difference = std::abs(got[i] - expected[i]);
    ASSERT_FALSE(std::isnan(difference)) << "at " << i;
    error = std::max(error, difference);
  }
  EXPECT_LE(error, 1e-5 * largest);
}

class WinogradTest : public ::testing::TestWithParam<Case> {
 protected:
  WinogradTest() {
    const Case& p = GetParam();
    node_.name = "conv";
    node_.op_type = "Conv";
    node_.attributes["pads"] = p.pads;
    x_ = Normal(p.x_shape().elements(), 1, 1);
    w_ = Normal(p.w_shape().elements(), std::sqrt(2.0 / (9 * p.c)), 2);
    dy_ = Normal(p.y_shape().elements(), 1, 3);
    bias_ = Normal(p.k, 1, 4);
  }

  void SetUp() override {
    if (!InBlocksOf8()) GTEST_SKIP() << "activations are not in blocks of 8 channels";
  }

  // Runs a kernel over a workspace full of NaN, twice; its outputs, which must
  // have the same bits both times.
  std::vector<Tensor> Run(const KernelFactory& factory, const std::vector<Tensor>& inputs,
                          const std::vector<Shape>& outputs, int constant = -1) {
    std::vector<ValueSpec> in(inputs.size()), out(outputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined()) continue;
      in[i].dtype = DType::kFloat;
      in[i].shape = inputs[i].shape();
      if (static_cast<int>(i) == constant) in[i].constant = &inputs[i];
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      out[i].dtype = DType::kFloat;
      out[i].shape = outputs[i];
    }
    absl::StatusOr<Kernel> kernel = factory({node_, in, out, opsets_});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    std::vector<Tensor> first;
    if (!kernel.ok()) return first;
    first = RunOnce(*kernel, inputs, outputs);
    const std::vector<Tensor> second = RunOnce(*kernel, inputs, outputs);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(Identical(first[i], second[i])) << i;
    return first;
  }

  std::vector<Tensor> RunOnce(const Kernel& kernel, const std::vector<Tensor>& inputs,
                              const std::vector<Shape>& outputs) {
    std::vector<const Tensor*> in;
    for (const Tensor& t : inputs) in.push_back(t.defined() ? &t : nullptr);
    std::vector<Tensor> results;
    for (const Shape& s : outputs) {
      results.emplace_back(DType::kFloat, s);
      std::fill_n(results.back().data<float>(), s.elements(), std::nanf(""));
    }
    std::vector<Tensor*> out;
    for (Tensor& t : results) out.push_back(&t);
    const int64_t floats = static_cast<int64_t>(kernel.workspace_bytes / sizeof(float));
    Tensor workspace(DType::kFloat, Shape{floats});
    std::fill_n(workspace.data<float>(), floats, std::nanf(""));
    KernelCall call;
    call.inputs = in;
    call.outputs = absl::MakeSpan(out);
    call.workspace = workspace.raw();
    const absl::Status status = kernel.run(call);
    EXPECT_TRUE(status.ok()) << status;
    return results;
  }

  std::vector<double> Expected() const {
    const Case& p = GetParam();
    const int64_t plane = p.out_h() * p.out_w();
    std::vector<double> y(p.y_shape().elements());
    for (size_t i = 0; i < y.size() && p.bias; ++i) y[i] = bias_[i / plane % p.k];
    ForProducts(p, [&](int64_t x, int64_t w, int64_t out) {
      y[out] += static_cast<double>(x_[x]) * w_[w];
    });
    return y;
  }

  std::vector<Tensor> ForwardInputs() const {
    const Case& p = GetParam();
    std::vector<Tensor> inputs = {Blocked(p.x_shape(), x_), Row(p.w_shape(), w_)};
    if (p.bias) inputs.push_back(Row({p.k}, bias_));
    return inputs;
  }

  Node node_;
  std::map<std::string, int> opsets_ = {{"", kCanonicalOpset}};
  std::vector<float> x_, w_, dy_, bias_;
};

KernelFactory Anywhere(const WinogradEpilogue& epilogue = {}) {
  return [epilogue](const KernelRequest& r) { return AnyWinogradConv(r, epilogue); };
}

TEST_P(WinogradTest, Conv) {
  const Case& p = GetParam();
  const std::vector<Tensor> y = Run(Anywhere(), ForwardInputs(), {p.y_shape()});
  ASSERT_EQ(y.size(), 1);
  ExpectNear(Plain(y[0]), Expected());
}

TEST_P(WinogradTest, ConvOfConstantWeightsHasTheSameBits) {
  const Case& p = GetParam();
  const std::vector<Tensor> variable = Run(Anywhere(), ForwardInputs(), {p.y_shape()});
  const std::vector<Tensor> constant = Run(Anywhere(), ForwardInputs(), {p.y_shape()}, 1);
  ASSERT_EQ(variable.size(), 1);
  ASSERT_EQ(constant.size(), 1);
  EXPECT_TRUE(Identical(variable[0], constant[0]));
}

TEST_P(WinogradTest, ConvWithEpilogue) {
  const Case& p = GetParam();
  std::vector<Tensor> inputs = ForwardInputs();
  inputs.resize(3);
  inputs.push_back(Blocked(p.y_shape(), dy_));
  const std::vector<Tensor> y =
      Run(Anywhere({.residual_input = 3, .low = 0, .high = 6}), inputs, {p.y_shape()});
  ASSERT_EQ(y.size(), 1);
  std::vector<double> expected = Expected();
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] = std::clamp(expected[i] + dy_[i], 0.0, 6.0);
  }
  ExpectNear(Plain(y[0]), expected);
}

TEST_P(WinogradTest, ConvInputGrad) {
  const Case& p = GetParam();
  const std::vector<Tensor> inputs = {Blocked(p.y_shape(), dy_), Row(p.w_shape(), w_),
                                      Blocked(p.x_shape(), x_)};
  const std::vector<Tensor> dx = Run(AnyWinogradConvInputGrad, inputs, {p.x_shape()});
  const std::vector<Tensor> constant = Run(AnyWinogradConvInputGrad, inputs, {p.x_shape()}, 1);
  ASSERT_EQ(dx.size(), 1);
  ASSERT_EQ(constant.size(), 1);
  EXPECT_TRUE(Identical(dx[0], constant[0]));
  std::vector<double> expected(p.x_shape().elements());
  ForProducts(p, [&](int64_t x, int64_t w, int64_t y) {
    expected[x] += static_cast<double>(dy_[y]) * w_[w];
  });
  ExpectNear(Plain(dx[0]), expected);
}

TEST_P(WinogradTest, ConvWeightGrad) {
  const Case& p = GetParam();
  const std::vector<Tensor> inputs = {Blocked(p.y_shape(), dy_), Blocked(p.x_shape(), x_),
                                      Row(p.w_shape(), w_)};
  std::vector<Shape> outputs = {p.w_shape()};
  if (p.bias) outputs.push_back({p.k});
  const std::vector<Tensor> results = Run(AnyWinogradConvWeightGrad, inputs, outputs);
  ASSERT_EQ(results.size(), outputs.size());
  std::vector<double> dw(p.w_shape().elements()), db(p.k);
  ForProducts(
      p, [&](int64_t x, int64_t w, int64_t y) { dw[w] += static_cast<double>(dy_[y]) * x_[x]; });
  const int64_t plane = p.out_h() * p.out_w();
  for (size_t i = 0; i < dy_.size(); ++i) db[i / plane % p.k] += dy_[i];
  const absl::Span<const float> got = results[0].values<float>();
  ExpectNear({got.begin(), got.end()}, dw);
  if (!p.bias) return;
  const absl::Span<const float> sums = results[1].values<float>();
  ExpectNear({sums.begin(), sums.end()}, db);
}

// One thread sums over chunks of tiles; many threads share the channels and take
// the tiles in large chunks.
class WinogradThreadsTest : public WinogradTest {};

TEST_P(WinogradThreadsTest, ConvWeightGradIsSharedInTwoWays) {
  const Case& p = GetParam();
  const std::vector<Tensor> inputs = {Blocked(p.y_shape(), dy_), Blocked(p.x_shape(), x_),
                                      Row(p.w_shape(), w_)};
  const int threads = Threads();
  SetThreads(1);
  const std::vector<Tensor> one = Run(AnyWinogradConvWeightGrad, inputs, {p.w_shape(), {p.k}});
  SetThreads(8);
  const std::vector<Tensor> many = Run(AnyWinogradConvWeightGrad, inputs, {p.w_shape(), {p.k}});
  SetThreads(threads);
  ASSERT_EQ(one.size(), 2);
  ASSERT_EQ(many.size(), 2);
  for (int i = 0; i < 2; ++i) {
    const absl::Span<const float> expected = one[i].values<float>(), got = many[i].values<float>();
    ExpectNear({got.begin(), got.end()}, {expected.begin(), expected.end()});
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradThreadsTest,
                         ::testing::Values(Case{18, 128, 128, 15, 16}, Case{4, 64, 128, 13, 16}));

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradTest, ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           const Case& p = info.param;
                           std::string name = std::to_string(info.index);
                           for (int64_t v : {p.n, p.c, p.k, p.h, p.w}) {
                             name += "_" + std::to_string(v);
                           }
                           return name;
                         });

TEST(WinogradPays, WhereThereIsEnoughToSave) {
  if (!InBlocksOf8()) GTEST_SKIP() << "activations are not in blocks of 8 channels";
  for (const ConvPass pass : {ConvPass::kForward, ConvPass::kInputGrad, ConvPass::kWeightGrad}) {
    EXPECT_TRUE(WinogradPays(Geometry({32, 64, 64, 32, 32}), pass));
    EXPECT_TRUE(WinogradPays(Geometry({32, 512, 512, 4, 4}), pass));
    EXPECT_TRUE(WinogradPays(Geometry({1, 512, 512, 7, 7}), pass));
    // One tile: transforming the weights costs more than it saves.
    EXPECT_FALSE(WinogradPays(Geometry({1, 512, 512, 4, 4}), pass));
    // Tiles that are mostly padding.
    EXPECT_FALSE(WinogradPays(Geometry({32, 64, 64, 2, 2}), pass));
  }
}

TEST(WinogradServes, WholeBlocksOfChannelsAndSmallPads) {
  if (!InBlocksOf8()) GTEST_SKIP() << "activations are not in blocks of 8 channels";
  EXPECT_TRUE(WinogradServes(Geometry({1, 8, 24, 5, 5})));
  EXPECT_FALSE(WinogradServes(Geometry({1, 8, 12, 5, 5})));
  EXPECT_FALSE(WinogradServes(Geometry({1, 3, 8, 5, 5})));
  EXPECT_FALSE(WinogradServes(Geometry({1, 8, 8, 5, 5, {3, 1, 1, 1}})));
  ConvGeometry strided = Geometry({1, 8, 8, 5, 5});
  strided.window.strides[1] = 2;
  EXPECT_FALSE(WinogradServes(strided));
}

}  // namespace
}  // namespace onward

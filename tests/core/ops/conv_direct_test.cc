// SPDX-License-Identifier: Apache-2.0
// The direct 1x1 and depthwise convolutions against plain ones in double.
#include "core/ops/conv_direct.h"

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
  int64_t kernel = 1, stride = 1;            // a kernel above 1 is depthwise
  std::vector<int64_t> pads = {0, 0, 0, 0};  // top, left, bottom, right

  bool depthwise() const { return kernel > 1; }
  int64_t out_h() const { return (h + pads[0] + pads[2] - kernel) / stride + 1; }
  int64_t out_w() const { return (w + pads[1] + pads[3] - kernel) / stride + 1; }
  Shape x_shape() const { return {n, c, h, w}; }
  Shape w_shape() const { return {k, depthwise() ? 1 : c, kernel, kernel}; }
  Shape y_shape() const { return {n, k, out_h(), out_w()}; }
};

Case Pointwise(int64_t n, int64_t c, int64_t k, int64_t h, int64_t w) { return {n, c, k, h, w}; }
Case Depthwise(int64_t n, int64_t c, int64_t h, int64_t w, int64_t kernel, int64_t stride,
               std::vector<int64_t> pads) {
  return {n, c, c, h, w, kernel, stride, std::move(pads)};
}

std::ostream& operator<<(std::ostream& out, const Case& p) {
  return out << p.x_shape().ToString() << " by " << p.w_shape().ToString() << " to "
             << p.y_shape().ToString();
}

Node NodeOf(const Case& p) {
  Node node;
  node.name = "conv";
  node.op_type = "Conv";
  node.attributes["pads"] = p.pads;
  node.attributes["strides"] = std::vector<int64_t>{p.stride, p.stride};
  if (p.depthwise()) node.attributes["group"] = p.c;
  return node;
}

ConvGeometry Geometry(const Case& p) {
  return *GeometryOfConv(NodeOf(p), p.x_shape(), p.w_shape());
}

// Elsewhere activations are in blocks of 16 channels, and oneDNN serves all.
bool InBlocksOf8() { return DirectServes(Geometry(Pointwise(1, 8, 8, 4, 4))); }

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      Pointwise(1, 8, 8, 1, 1),     Pointwise(3, 8, 16, 3, 3),     Pointwise(1, 16, 8, 7, 5),
      Pointwise(3, 20, 24, 7, 5),   Pointwise(1, 24, 20, 12, 12),  Pointwise(3, 100, 144, 3, 3),
      Pointwise(1, 144, 100, 7, 5), Pointwise(3, 24, 144, 12, 12), Pointwise(2, 144, 24, 17, 16),
      Pointwise(1, 960, 160, 3, 3), Pointwise(3, 160, 960, 3, 3),  Pointwise(1, 960, 20, 1, 1),
      Pointwise(3, 20, 960, 1, 1),  Pointwise(40, 16, 16, 3, 3),   Pointwise(1, 16, 40, 30, 31),
      Pointwise(3, 264, 8, 7, 5),   Pointwise(2, 3, 5, 4, 4),
  };
  for (const int64_t kernel : {3, 5}) {
    for (const int64_t stride : {1, 2}) {
      const int64_t half = kernel / 2;
      const auto add = [&](int64_t n, int64_t c, int64_t h, int64_t w, std::vector<int64_t> pads) {
        cases.push_back(Depthwise(n, c, h, w, kernel, stride, std::move(pads)));
      };
      add(1, 8, 1, 1, {half, half, half, half});
      add(3, 16, 3, 3, {half, half, half, half});
      add(3, 20, 7, 5, {0, 0, 0, 0});
      add(1, 24, 12, 12, {half, half, half, half});
      add(3, 100, 12, 12, {0, 1, half, half});
      add(1, 144, 7, 5, {1, 0, 2, 1});
      add(2, 8, 9, 29, {half, half, half, half});
      add(2, 12, 6, 10, {kernel, kernel + 1, 0, kernel});
      add(1, 960, 3, 3, {half, half, half, half});
      add(33, 16, 6, 6, {0, half, 1, half});
    }
  }
  return cases;
}

std::vector<float> Normal(int64_t count, double deviation, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(normal(generator));
  return values;
}

int64_t PaddedChannels(const Shape& shape) { return (shape[1] + kBlock - 1) / kBlock * kBlock; }
Shape PaddedShape(const Shape& shape) {
  return {shape[0], PaddedChannels(shape), shape[2], shape[3]};
}

// Where element i of [n][c][h][w] is in [n][ceil(c/8)][h][w][8].
int64_t BlockedIndex(const Shape& shape, int64_t i) {
  const int64_t plane = shape[2] * shape[3], at = i % plane, channel = i / plane % shape[1];
  const int64_t image = i / plane / shape[1];
  return image * PaddedChannels(shape) * plane + (channel / kBlock * plane + at) * kBlock +
         channel % kBlock;
}

Tensor Blocked(const Shape& shape, const std::vector<float>& plain) {
  Tensor t(DType::kFloat, PaddedShape(shape));
  std::fill_n(t.data<float>(), t.elements(), 0.0f);
  for (size_t i = 0; i < plain.size(); ++i) t.data<float>()[BlockedIndex(shape, i)] = plain[i];
  return t;
}

// And that nothing but zeros is left in the lanes that pad the last block.
std::vector<float> Plain(const Shape& shape, Tensor blocked) {
  std::vector<float> plain(shape.elements());
  for (size_t i = 0; i < plain.size(); ++i) {
    float& v = blocked.data<float>()[BlockedIndex(shape, i)];
    plain[i] = v;
    v = 0;
  }
  for (const float v : blocked.values<float>()) EXPECT_EQ(v, 0.0f);
  return plain;
}

Tensor Row(const Shape& shape, const std::vector<float>& values) {
  return Tensor::FromValues<float>(shape, absl::MakeConstSpan(values));
}

// Calls f(x index, w index, y index) for every multiplication of a convolution.
template <typename F>
void ForProducts(const Case& p, const F& f) {
  const int64_t channels = p.depthwise() ? 1 : p.c, taps = p.kernel * p.kernel;
  for (int64_t y = 0; y < p.y_shape().elements(); ++y) {
    const int64_t ow = y % p.out_w(), oh = y / p.out_w() % p.out_h();
    const int64_t k = y / p.out_w() / p.out_h() % p.k, n = y / p.out_w() / p.out_h() / p.k;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t ih = oh * p.stride + t / p.kernel - p.pads[0];
        const int64_t iw = ow * p.stride + t % p.kernel - p.pads[1];
        if (ih < 0 || ih >= p.h || iw < 0 || iw >= p.w) continue;
        const int64_t channel = p.depthwise() ? k : c;
        f(((n * p.c + channel) * p.h + ih) * p.w + iw, (k * channels + c) * taps + t, y);
      }
    }
  }
}

void ExpectNear(absl::Span<const float> got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 0, error = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double difference = std::abs(got[i] - expected[i]);
    ASSERT_FALSE(std::isnan(difference)) << "at " << i;
    error = std::max(error, difference);
  }
  EXPECT_LE(error, 2e-6 * largest);
}

class DirectConvTest : public ::testing::TestWithParam<Case> {
 protected:
  DirectConvTest() : node_(NodeOf(GetParam())) {
    const Case& p = GetParam();
    x_ = Normal(p.x_shape().elements(), 1, 1);
    const Shape w = p.w_shape();
    w_ = Normal(w.elements(), 1 / std::sqrt(static_cast<double>(w.elements(1, 4))), 2);
    dy_ = Normal(p.y_shape().elements(), 1, 3);
    bias_ = Normal(p.k, 1, 4);
  }

  void SetUp() override {
    if (!InBlocksOf8()) GTEST_SKIP() << "activations are not in blocks of 8 channels";
  }

  struct Input {
    Shape shape;
    Tensor data;  // undefined: omitted
  };
  Input X() const { return {GetParam().x_shape(), Blocked(GetParam().x_shape(), x_)}; }
  Input W() const { return {GetParam().w_shape(), Row(GetParam().w_shape(), w_)}; }
  Input Dy() const { return {GetParam().y_shape(), Blocked(GetParam().y_shape(), dy_)}; }
  Input Bias() const { return {{GetParam().k}, Row({GetParam().k}, bias_)}; }

  // Runs a kernel over a workspace full of NaN, twice; its outputs, which must
  // have the same bits both times. Those of rank 4 get whole blocks of channels.
  std::vector<Tensor> Run(const KernelFactory& factory, const std::vector<Input>& inputs,
                          const std::vector<Shape>& outputs, bool blocked, int constant = -1) {
    std::vector<ValueSpec> in(inputs.size()), out(outputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].data.defined()) continue;
      in[i].dtype = DType::kFloat;
      in[i].shape = inputs[i].shape;
      if (static_cast<int>(i) == constant) in[i].constant = &inputs[i].data;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      out[i].dtype = DType::kFloat;
      out[i].shape = outputs[i];
    }
    absl::StatusOr<Kernel> kernel = factory({node_, in, out, opsets_});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    std::vector<Tensor> first;
    if (!kernel.ok()) return first;
    first = RunOnce(*kernel, inputs, outputs, blocked);
    const std::vector<Tensor> second = RunOnce(*kernel, inputs, outputs, blocked);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(Identical(first[i], second[i])) << i;
    return first;
  }

  std::vector<Tensor> RunOnce(const Kernel& kernel, const std::vector<Input>& inputs,
                              const std::vector<Shape>& outputs, bool blocked) {
    std::vector<const Tensor*> in;
    for (const Input& i : inputs) in.push_back(i.data.defined() ? &i.data : nullptr);
    std::vector<Tensor> results;
    for (const Shape& s : outputs) {
      results.emplace_back(DType::kFloat, blocked ? PaddedShape(s) : s);
      std::fill_n(results.back().data<float>(), results.back().elements(), std::nanf(""));
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

  std::vector<double> Expected(bool bias) const {
    const Case& p = GetParam();
    const int64_t plane = p.out_h() * p.out_w();
    std::vector<double> y(p.y_shape().elements());
    for (size_t i = 0; i < y.size() && bias; ++i) y[i] = bias_[i / plane % p.k];
    ForProducts(p, [&](int64_t x, int64_t w, int64_t out) {
      y[out] += static_cast<double>(x_[x]) * w_[w];
    });
    return y;
  }

  void ExpectConv(const std::vector<Input>& inputs, const std::vector<double>& expected,
                  int constant = -1) {
    const Shape y = GetParam().y_shape();
    const std::vector<Tensor> got = Run(AnyDirectConv, inputs, {y}, true, constant);
    ASSERT_EQ(got.size(), 1);
    ExpectNear(Plain(y, got[0]), expected);
  }

  Node node_;
  std::map<std::string, int> opsets_ = {{"", kCanonicalOpset}};
  std::vector<float> x_, w_, dy_, bias_;
};

TEST_P(DirectConvTest, Conv) { ExpectConv({X(), W()}, Expected(false)); }

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

TEST_P(DirectConvTest, ConvInputGrad) {
  const Case& p = GetParam();
  std::vector<double> expected(p.x_shape().elements());
  ForProducts(p, [&](int64_t x, int64_t w, int64_t y) {
    expected[x] += static_cast<double>(dy_[y]) * w_[w];
  });
  for (const int constant : {-1, 1}) {
    const std::vector<Tensor> dx =
        Run(AnyDirectConvInputGrad, {Dy(), W(), X()}, {p.x_shape()}, true, constant);
    ASSERT_EQ(dx.size(), 1);
    ExpectNear(Plain(p.x_shape(), dx[0]), expected);
  }
}

TEST_P(DirectConvTest, ConvWeightGrad) {
  const Case& p = GetParam();
  std::vector<double> dw(p.w_shape().elements()), db(p.k);
  ForProducts(
      p, [&](int64_t x, int64_t w, int64_t y) { dw[w] += static_cast<double>(dy_[y]) * x_[x]; });
  const int64_t plane = p.out_h() * p.out_w();
  for (size_t i = 0; i < dy_.size(); ++i) db[i / plane % p.k] += dy_[i];
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
    ExpectNear(both[0].values<float>(), dw);
    ExpectNear(both[1].values<float>(), db);
    EXPECT_TRUE(Identical(both[0], one[0]));
  }
}

// With more threads than pieces of the one or the other kind.
TEST_P(DirectConvTest, ResultsDoNotDependOnThreads) {
  const Case& p = GetParam();
  const int threads = Threads();
  SetThreads(1);
  const std::vector<Tensor> y = Run(AnyDirectConv, {X(), W()}, {p.y_shape()}, true);
  const std::vector<Tensor> dx = Run(AnyDirectConvInputGrad, {Dy(), W(), X()}, {p.x_shape()}, true);
  for (const int team : {2, 5}) {
    SetThreads(team);
    EXPECT_TRUE(Identical(Run(AnyDirectConv, {X(), W()}, {p.y_shape()}, true)[0], y[0]));
    EXPECT_TRUE(
        Identical(Run(AnyDirectConvInputGrad, {Dy(), W(), X()}, {p.x_shape()}, true)[0], dx[0]));
  }
  SetThreads(threads);
}

INSTANTIATE_TEST_SUITE_P(Shapes, DirectConvTest, ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           const Case& p = info.param;
                           std::string name = std::to_string(info.index);
                           for (int64_t v : {p.n, p.c, p.k, p.h, p.w, p.kernel, p.stride}) {
                             name += "_" + std::to_string(v);
                           }
                           return name;
                         });

TEST(DirectServes, WholeShapesOnly) {
  if (!InBlocksOf8()) GTEST_SKIP() << "activations are not in blocks of 8 channels";
  EXPECT_TRUE(DirectServes(Geometry(Depthwise(1, 16, 8, 8, 3, 2, {1, 1, 1, 1}))));
  EXPECT_FALSE(DirectServes(Geometry(Depthwise(1, 16, 8, 8, 4, 1, {1, 1, 1, 1}))));
  EXPECT_FALSE(DirectServes(Geometry(Depthwise(1, 16, 8, 8, 3, 3, {1, 1, 1, 1}))));
  // Padding around a 1x1 kernel.
  Case padded = Pointwise(1, 16, 16, 4, 4);
  padded.pads = {1, 0, 0, 0};
  EXPECT_FALSE(DirectServes(Geometry(padded)));
  // Images of few channels stay plain.
  EXPECT_FALSE(DirectPays(Geometry(Pointwise(1, 3, 16, 32, 32)), ConvPass::kForward, false));
  EXPECT_TRUE(DirectPays(Geometry(Pointwise(1, 24, 144, 32, 32)), ConvPass::kForward, false));
  EXPECT_FALSE(DirectPays(Geometry(Pointwise(1, 24, 144, 32, 32)), ConvPass::kForward, true));
}

}  // namespace
}  // namespace onward

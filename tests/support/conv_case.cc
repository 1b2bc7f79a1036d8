// SPDX-License-Identifier: Apache-2.0
#include "tests/support/conv_case.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace onward {
namespace {

constexpr int64_t kBlock = 8;

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
  Tensor t = Tensor::Zeros(DType::kFloat, PaddedShape(shape));
  for (size_t i = 0; i < plain.size(); ++i) t.data<float>()[BlockedIndex(shape, i)] = plain[i];
  return t;
}

// And that nothing but zeros is left in the lanes that pad the last block.
std::vector<float> Unblocked(const Shape& shape, Tensor blocked) {
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

Tensor Nans(const Shape& shape) {
  Tensor t(DType::kFloat, shape);
  std::fill_n(t.data<float>(), t.elements(), std::nanf(""));
  return t;
}

// `over`: outputs are written over the inputs that the kernel allows.
template <typename Inputs>
std::vector<Tensor> RunOnce(const Kernel& kernel, const Inputs& inputs,
                            const std::vector<Shape>& outputs, bool blocked, bool over = false) {
  std::vector<const Tensor*> in;
  for (const auto& i : inputs) in.push_back(i.data.defined() ? &i.data : nullptr);
  std::vector<Tensor> results;
  for (const Shape& s : outputs) results.push_back(Nans(blocked ? PaddedShape(s) : s));
  for (const auto& [output, input] : kernel.in_place) {
    if (!over || in[input] == nullptr) continue;
    results[output] = in[input]->Clone();
    in[input] = &results[output];
  }
  std::vector<Tensor*> out;
  for (Tensor& t : results) out.push_back(&t);
  Tensor workspace = Nans({static_cast<int64_t>(kernel.workspace_bytes / sizeof(float))});
  KernelCall call;
  call.inputs = in;
  call.outputs = absl::MakeSpan(out);
  call.workspace = workspace.raw();
  const absl::Status status = kernel.run(call);
  EXPECT_TRUE(status.ok()) << status;
  return results;
}

}  // namespace

Node ConvCase::node() const {
  Node node;
  node.name = "conv";
  node.op_type = "Conv";
  node.attributes["pads"] = pads;
  node.attributes["strides"] = std::vector<int64_t>{stride, stride};
  if (depthwise) node.attributes["group"] = c;
  return node;
}

ConvGeometry ConvCase::geometry() const { return *GeometryOfConv(node(), x_shape(), w_shape()); }

std::ostream& operator<<(std::ostream& out, const ConvCase& p) {
  return out << p.x_shape().ToString() << " by " << p.w_shape().ToString() << " to "
             << p.y_shape().ToString();
}

std::string ConvCaseName(const testing::TestParamInfo<ConvCase>& info) {
  const ConvCase& p = info.param;
  std::string name = std::to_string(info.index);
  for (int64_t v : {p.n, p.c, p.k, p.h, p.w, p.kernel, p.stride}) name += "_" + std::to_string(v);
  return name;
}

void ExpectNear(absl::Span<const float> got, const std::vector<double>& expected,
                double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 0, error = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double difference = std::abs(got[i] - expected[i]);
    ASSERT_FALSE(std::isnan(difference)) << "at " << i;
    error = std::max(error, difference);
  }
  EXPECT_LE(error, tolerance * largest);
}

ConvKernelTest::ConvKernelTest(double tolerance)
    : node_(GetParam().node()), tolerance_(tolerance), opsets_({{"", kCanonicalOpset}}) {
  const ConvCase& p = GetParam();
  const Shape w = p.w_shape();
  x_ = Normal(p.x_shape().elements(), 1, 1);
  w_ = Normal(w.elements(), std::sqrt(2.0 / static_cast<double>(w.elements(1, 4))), 2);
  dy_ = Normal(p.y_shape().elements(), 1, 3);
  bias_ = Normal(p.k, 1, 4);
}

ConvKernelTest::Input ConvKernelTest::X() const {
  return {GetParam().x_shape(), Blocked(GetParam().x_shape(), x_)};
}
ConvKernelTest::Input ConvKernelTest::W() const {
  return {GetParam().w_shape(), Row(GetParam().w_shape(), w_)};
}
ConvKernelTest::Input ConvKernelTest::Dy() const {
  return {GetParam().y_shape(), Blocked(GetParam().y_shape(), dy_)};
}
ConvKernelTest::Input ConvKernelTest::Bias() const {
  return {{GetParam().k}, Row({GetParam().k}, bias_)};
}

template <typename F>
void ConvKernelTest::ForProducts(const F& f) const {
  const ConvCase& p = GetParam();
  const int64_t channels = p.depthwise ? 1 : p.c, taps = p.kernel * p.kernel;
  for (int64_t y = 0; y < p.y_shape().elements(); ++y) {
    const int64_t ow = y % p.out_w(), oh = y / p.out_w() % p.out_h();
    const int64_t k = y / p.out_w() / p.out_h() % p.k, n = y / p.out_w() / p.out_h() / p.k;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t ih = oh * p.stride + t / p.kernel - p.pads[0];
        const int64_t iw = ow * p.stride + t % p.kernel - p.pads[1];
        if (ih < 0 || ih >= p.h || iw < 0 || iw >= p.w) continue;
        const int64_t channel = p.depthwise ? k : c;
        f(((n * p.c + channel) * p.h + ih) * p.w + iw, (k * channels + c) * taps + t, y);
      }
    }
  }
}

std::vector<double> ConvKernelTest::Expected(bool bias) const {
  const ConvCase& p = GetParam();
  const int64_t plane = p.out_h() * p.out_w();
  std::vector<double> y(p.y_shape().elements());
  for (size_t i = 0; i < y.size() && bias; ++i) y[i] = bias_[i / plane % p.k];
  ForProducts(
      [&](int64_t x, int64_t w, int64_t out) { y[out] += static_cast<double>(x_[x]) * w_[w]; });
  return y;
}

std::vector<double> ConvKernelTest::ExpectedInputGrad() const {
  std::vector<double> dx(x_.size());
  ForProducts(
      [&](int64_t x, int64_t w, int64_t y) { dx[x] += static_cast<double>(dy_[y]) * w_[w]; });
  return dx;
}

std::vector<double> ConvKernelTest::ExpectedWeightGrad() const {
  std::vector<double> dw(w_.size());
  ForProducts(
      [&](int64_t x, int64_t w, int64_t y) { dw[w] += static_cast<double>(dy_[y]) * x_[x]; });
  return dw;
}

std::vector<double> ConvKernelTest::ExpectedBiasGrad() const {
  const ConvCase& p = GetParam();
  std::vector<double> db(p.k);
  const int64_t plane = p.out_h() * p.out_w();
  for (size_t i = 0; i < dy_.size(); ++i) db[i / plane % p.k] += dy_[i];
  return db;
}

std::vector<Tensor> ConvKernelTest::Run(const KernelFactory& factory,
                                        const std::vector<Input>& inputs,
                                        const std::vector<Shape>& outputs, bool blocked,
                                        int constant) {
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
  for (const bool over : {false, true}) {
    const std::vector<Tensor> again = RunOnce(*kernel, inputs, outputs, blocked, over);
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_TRUE(Identical(first[i], again[i])) << i << (over ? " written over an input" : "");
    }
  }
  return first;
}

void ConvKernelTest::ExpectActivation(const KernelFactory& factory,
                                      const std::vector<Input>& inputs, const Shape& shape,
                                      const std::vector<double>& expected, int constant) {
  const std::vector<Tensor> got = Run(factory, inputs, {shape}, true, constant);
  ASSERT_EQ(got.size(), 1u);
  ExpectNear(Unblocked(shape, got[0]), expected, tolerance_);
}

}  // namespace onward

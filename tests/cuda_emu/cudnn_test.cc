// SPDX-License-Identifier: Apache-2.0
// Pooling, batch normalization and biases of the fake cuDNN.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/cuda_emu/cudnn_fixture.h"

namespace onward::cuda {
namespace {

using Floats = std::vector<float>;

struct PoolCase {
  cudnnPoolingMode_t mode;
  Floats y, dx;
};

// A 3 x 3 image, window 2, padding 1, stride 2; the gradient of sum(y * {1, 2, 3, 4}).
TEST_F(CudnnTest, Pools) {
  const Floats image = {1, 2, 3, 4, 9, 6, 7, 8, 5};
  const PoolCase cases[] = {
      {CUDNN_POOLING_MAX, {1, 3, 7, 9}, {1, 0, 2, 0, 4, 0, 3, 0, 0}},
      {CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
       {0.25f, 1.25f, 2.75f, 7},
       {0.25f, 0.5f, 0.5f, 0.75f, 1, 1, 0.75f, 1, 1}},
      {CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
       {1, 2.5f, 5.5f, 7},
       {1, 1, 1, 1.5f, 1, 1, 1.5f, 1, 1}},
  };
  const auto x_desc = TensorOf(CUDNN_DATA_FLOAT, {1, 1, 3, 3});
  const auto y_desc = TensorOf(CUDNN_DATA_FLOAT, {1, 1, 2, 2});
  DeviceArray<float> x(image), y(4), dy(Floats{1, 2, 3, 4}), dx(9);
  const float one = 1, zero = 0;
  for (const PoolCase& c : cases) {
    const auto pooling = PoolingOf(c.mode, {2, 2}, {1, 1}, {2, 2});
    int dims[4];
    ASSERT_EQ(cudnnGetPoolingNdForwardOutputDim(pooling, x_desc, 4, dims), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(dims[2] * 10 + dims[3], 22);
    ASSERT_EQ(cudnnPoolingForward(handle_, pooling, &one, x_desc, x.get(), &zero, y_desc, y.get()),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnPoolingBackward(handle_, pooling, &one, y_desc, y.get(), y_desc, dy.get(),
                                   x_desc, x.get(), &zero, x_desc, dx.get()),
              CUDNN_STATUS_SUCCESS);
    Wait();
    EXPECT_EQ(y.Values(), c.y) << c.mode;
    EXPECT_EQ(dx.Values(), c.dx) << c.mode;
  }
}

TEST_F(CudnnTest, PoolsVolumesAndRefusesWrongShapes) {
  const auto pooling = PoolingOf(CUDNN_POOLING_MAX, {2, 2, 2}, {0, 0, 0}, {2, 2, 2});
  const auto x_desc = TensorOf(CUDNN_DATA_FLOAT, {1, 2, 2, 2, 4});
  const auto y_desc = TensorOf(CUDNN_DATA_FLOAT, {1, 2, 1, 1, 2});
  Floats values(32);
  for (int i = 0; i < 32; ++i) values[i] = static_cast<float>(i * 7 % 32);
  DeviceArray<float> x(values), y(4);
  const float one = 1, zero = 0;
  ASSERT_EQ(cudnnPoolingForward(handle_, pooling, &one, x_desc, x.get(), &zero, y_desc, y.get()),
            CUDNN_STATUS_SUCCESS);
  Wait();
  Floats expected(4, -1);
  for (int i = 0; i < 32; ++i) {
    float& out = expected[i / 16 * 2 + i % 4 / 2];
    out = std::max(out, values[i]);
  }
  EXPECT_EQ(y.Values(), expected);
  const auto wrong = TensorOf(CUDNN_DATA_FLOAT, {1, 2, 1, 1, 3});
  EXPECT_EQ(cudnnPoolingForward(handle_, pooling, &one, x_desc, x.get(), &zero, wrong, y.get()),
            CUDNN_STATUS_BAD_PARAM);
  const auto flat = PoolingOf(CUDNN_POOLING_MAX, {2, 2}, {0, 0}, {2, 2});
  EXPECT_EQ(cudnnPoolingForward(handle_, flat, &one, x_desc, x.get(), &zero, y_desc, y.get()),
            CUDNN_STATUS_BAD_PARAM);
}

class CudnnNormTest : public CudnnTest {
 protected:
  static constexpr int kImages = 3, kChannels = 2, kPixels = 2, kSize = 12;
  static constexpr double kEpsilon = 1e-3;

  void SetUp() override {
    CudnnTest::SetUp();
    x_desc_ = TensorOf(CUDNN_DATA_DOUBLE, {kImages, kChannels, 1, kPixels});
    statistics_ = TensorOf(CUDNN_DATA_DOUBLE, {1, 1, 1, 1});
    ASSERT_EQ(cudnnDeriveBNTensorDescriptor(statistics_, x_desc_, CUDNN_BATCHNORM_SPATIAL),
              CUDNN_STATUS_SUCCESS);
  }

  // y of training mode; running statistics and saved values where wanted.
  std::vector<double> Train(const std::vector<double>& x, double* running_mean,
                            double* running_variance, double* saved_mean, double* saved_inverse) {
    DeviceArray<double> dx(x), scale(scale_), bias(bias_), y(kSize);
    const double one = 1, zero = 0;
    EXPECT_EQ(cudnnBatchNormalizationForwardTraining(
                  handle_, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x_desc_, dx.get(), x_desc_,
                  y.get(), statistics_, scale.get(), bias.get(), 0.25, running_mean,
                  running_variance, kEpsilon, saved_mean, saved_inverse),
              CUDNN_STATUS_SUCCESS);
    Wait();
    return y.Values();
  }

  const std::vector<double> x_ = {1, 2, -1, 4, 5, 0.5, 3, 3, 2, 7, -2, 1};
  const std::vector<double> scale_ = {1.5, -0.5}, bias_ = {0.25, 2};
  cudnnTensorDescriptor_t x_desc_ = nullptr, statistics_ = nullptr;
};

TEST_F(CudnnNormTest, TrainsAndKeepsUnbiasedVariance) {
  DeviceArray<double> mean(std::vector<double>{8, 8}), variance(std::vector<double>{4, 4});
  DeviceArray<double> saved_mean(2), saved_inverse(2);
  const std::vector<double> y =
      Train(x_, mean.get(), variance.get(), saved_mean.get(), saved_inverse.get());
  for (int c = 0; c < kChannels; ++c) {
    double sum = 0, squares = 0;
    const auto at = [&](int s) { return (s / kPixels * kChannels + c) * kPixels + s % kPixels; };
    for (int s = 0; s < 6; ++s) sum += x_[at(s)];
    for (int s = 0; s < 6; ++s) squares += std::pow(x_[at(s)] - sum / 6, 2);
    const double inverse = 1 / std::sqrt(squares / 6 + kEpsilon);
    for (int s = 0; s < 6; ++s) {
      EXPECT_NEAR(y[at(s)], scale_[c] * (x_[at(s)] - sum / 6) * inverse + bias_[c], 1e-12);
    }
    EXPECT_NEAR(mean.Values()[c], 0.75 * 8 + 0.25 * sum / 6, 1e-12);
    EXPECT_NEAR(variance.Values()[c], 0.75 * 4 + 0.25 * squares / 5, 1e-12);
    EXPECT_NEAR(saved_mean.Values()[c], sum / 6, 1e-12);
    EXPECT_NEAR(saved_inverse.Values()[c], inverse, 1e-12);
  }
}

TEST_F(CudnnNormTest, GradientsFollowDifferences) {
  const std::vector<double> dy = SmallNumbers<double>(kSize, 4);
  DeviceArray<double> x(x_), ddy(dy), scale(scale_), dx(kSize), dscale(2), dbias(2);
  const double one = 1, zero = 0;
  ASSERT_EQ(cudnnBatchNormalizationBackward(handle_, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one,
                                            &zero, x_desc_, x.get(), x_desc_, ddy.get(), x_desc_,
                                            dx.get(), statistics_, scale.get(), dscale.get(),
                                            dbias.get(), kEpsilon, nullptr, nullptr),
            CUDNN_STATUS_SUCCESS);
  Wait();
  const std::vector<double> gradient = dx.Values();
  for (int i = 0; i < kSize; ++i) {
    std::vector<double> up = x_, down = x_;
    up[i] += 1e-5, down[i] -= 1e-5;
    const std::vector<double> above = Train(up, nullptr, nullptr, nullptr, nullptr);
    const std::vector<double> below = Train(down, nullptr, nullptr, nullptr, nullptr);
    double slope = 0;
    for (int o = 0; o < kSize; ++o) slope += dy[o] * (above[o] - below[o]) / 2e-5;
    EXPECT_NEAR(gradient[i], slope, 1e-6) << i;
  }
  const std::vector<double> y = Train(x_, nullptr, nullptr, nullptr, nullptr);
  for (int c = 0; c < kChannels; ++c) {
    double sum = 0, products = 0;
    for (int i = 0; i < kSize; ++i) {
      if (i / kPixels % kChannels != c) continue;
      sum += dy[i];
      products += dy[i] * (y[i] - bias_[c]) / scale_[c];
    }
    EXPECT_NEAR(dbias.Values()[c], sum, 1e-12);
    EXPECT_NEAR(dscale.Values()[c], products, 1e-12);
  }
}

TEST_F(CudnnNormTest, InfersAndRefusesWrongStatistics) {
  DeviceArray<double> x(x_), y(kSize), scale(scale_), bias(bias_);
  DeviceArray<double> mean(std::vector<double>{1, 2}), variance(std::vector<double>{4, 9});
  const double one = 1, zero = 0;
  const auto infer = [&](cudnnTensorDescriptor_t statistics) {
    return cudnnBatchNormalizationForwardInference(
        handle_, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x_desc_, x.get(), x_desc_, y.get(),
        statistics, scale.get(), bias.get(), mean.get(), variance.get(), kEpsilon);
  };
  ASSERT_EQ(infer(statistics_), CUDNN_STATUS_SUCCESS);
  Wait();
  EXPECT_NEAR(y.Values()[1], 1.5 * (2 - 1) / std::sqrt(4 + kEpsilon) + 0.25, 1e-12);
  EXPECT_NEAR(y.Values()[3], -0.5 * (4 - 2) / std::sqrt(9 + kEpsilon) + 2, 1e-12);
  EXPECT_EQ(infer(TensorOf(CUDNN_DATA_DOUBLE, {1, 3, 1, 1})), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(infer(TensorOf(CUDNN_DATA_FLOAT, {1, 2, 1, 1})), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnTest, AddsBiasesAndSumsTheirGradients) {
  const auto y_desc = TensorOf(CUDNN_DATA_FLOAT, {2, 2, 1, 2});
  const auto b_desc = TensorOf(CUDNN_DATA_FLOAT, {1, 2, 1, 1});
  DeviceArray<float> y(Floats{1, 2, 3, 4, 5, 6, 7, 8}), bias(Floats{10, 20}), db(2);
  const float one = 1, zero = 0;
  ASSERT_EQ(cudnnConvolutionBackwardBias(handle_, &one, y_desc, y.get(), &zero, b_desc, db.get()),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnAddTensor(handle_, &one, b_desc, bias.get(), &one, y_desc, y.get()),
            CUDNN_STATUS_SUCCESS);
  Wait();
  EXPECT_EQ(db.Values(), (Floats{14, 22}));
  EXPECT_EQ(y.Values(), (Floats{11, 12, 23, 24, 15, 16, 27, 28}));
  EXPECT_EQ(cudnnAddTensor(handle_, &one, TensorOf(CUDNN_DATA_FLOAT, {1, 3, 1, 1}), bias.get(),
                           &one, y_desc, y.get()),
            CUDNN_STATUS_BAD_PARAM);
}

}  // namespace
}  // namespace onward::cuda

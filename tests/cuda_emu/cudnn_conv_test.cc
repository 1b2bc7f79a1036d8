// SPDX-License-Identifier: Apache-2.0
// Convolutions of the fake cuDNN: numbers, agreement of descriptors, workspaces.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/cuda_emu/cudnn_fixture.h"

namespace onward::cuda {
namespace {

struct Case {
  std::vector<int> x, w, y, pads, strides, dilations;
  int groups;
};

const Case kCases[] = {
    {{2, 3, 6, 5}, {4, 3, 3, 2}, {2, 4, 6, 4}, {1, 0}, {1, 1}, {1, 1}, 1},
    {{2, 4, 7, 7}, {6, 2, 3, 3}, {2, 6, 4, 3}, {1, 1}, {2, 3}, {1, 1}, 2},
    {{1, 3, 9, 8}, {3, 1, 3, 3}, {1, 3, 7, 4}, {1, 0}, {1, 1}, {2, 2}, 3},
    {{1, 2, 4, 5, 6}, {3, 2, 2, 3, 3}, {1, 3, 3, 3, 3}, {0, 0, 1}, {1, 1, 2}, {1, 1, 1}, 1},
};

size_t Size(const std::vector<int>& dims) {
  return std::accumulate(dims.begin(), dims.end(), size_t{1}, std::multiplies<>());
}

// y += x * w for every pair of elements that meet; dimensions beyond the rank are 1.
template <class T>
std::vector<double> Reference(const Case& c, const std::vector<T>& x, const std::vector<T>& w) {
  const auto at = [](const std::vector<int>& v, size_t d, int otherwise) {
    return d < v.size() ? v[d] : otherwise;
  };
  std::vector<double> y(Size(c.y), 0);
  const int channels = c.w[1], filters = c.w[0] / c.groups;
  size_t out = 0;
  for (int n = 0; n < c.y[0]; ++n)
    for (int f = 0; f < c.y[1]; ++f)
      for (int i = 0; i < c.y[2]; ++i)
        for (int j = 0; j < c.y[3]; ++j)
          for (int k = 0; k < at(c.y, 4, 1); ++k, ++out)
            for (int ch = 0; ch < channels; ++ch)
              for (int a = 0; a < c.w[2]; ++a)
                for (int b = 0; b < c.w[3]; ++b)
                  for (int d = 0; d < at(c.w, 4, 1); ++d) {
                    const int p = i * c.strides[0] - c.pads[0] + a * c.dilations[0];
                    const int q = j * c.strides[1] - c.pads[1] + b * c.dilations[1];
                    const int r =
                        k * at(c.strides, 2, 1) - at(c.pads, 2, 0) + d * at(c.dilations, 2, 1);
                    const int depth = at(c.x, 4, 1);
                    if (p < 0 || q < 0 || r < 0 || p >= c.x[2] || q >= c.x[3] || r >= depth) {
                      continue;
                    }
                    const int from = f / filters * channels + ch;
                    const size_t xi =
                        (((size_t(n) * c.x[1] + from) * c.x[2] + p) * c.x[3] + q) * depth + r;
                    const size_t wi =
                        (((size_t(f) * channels + ch) * c.w[2] + a) * c.w[3] + b) * at(c.w, 4, 1) +
                        d;
                    y[out] +=
                        static_cast<double>(static_cast<float>(x[xi])) * static_cast<float>(w[wi]);
                  }
  return y;
}

class CudnnConvTest : public CudnnTest {
 protected:
  cudnnConvolutionDescriptor_t ConvolutionOf(const Case& c, cudnnDataType_t compute) {
    cudnnConvolutionDescriptor_t convolution = nullptr;
    EXPECT_EQ(cudnnCreateConvolutionDescriptor(&convolution), CUDNN_STATUS_SUCCESS);
    destroyers_.push_back([convolution] { cudnnDestroyConvolutionDescriptor(convolution); });
    EXPECT_EQ(cudnnSetConvolutionNdDescriptor(convolution, static_cast<int>(c.pads.size()),
                                              c.pads.data(), c.strides.data(), c.dilations.data(),
                                              CUDNN_CROSS_CORRELATION, compute),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetConvolutionGroupCount(convolution, c.groups), CUDNN_STATUS_SUCCESS);
    return convolution;
  }

  template <class T, class S>
  void ExpectConvolves(const Case& c, cudnnDataType_t type, double tolerance) {
    const cudnnDataType_t compute =
        type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    const auto x_desc = TensorOf(type, c.x), y_desc = TensorOf(type, c.y);
    const auto w_desc = FilterOf(type, c.w);
    const auto convolution = ConvolutionOf(c, compute);
    std::vector<int> dims(c.x.size());
    ASSERT_EQ(cudnnGetConvolutionNdForwardOutputDim(convolution, x_desc, w_desc,
                                                    static_cast<int>(dims.size()), dims.data()),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(dims, c.y);
    const auto x = SmallNumbers<T>(Size(c.x), 1), w = SmallNumbers<T>(Size(c.w), 2);
    const auto dy = SmallNumbers<T>(Size(c.y), 3);
    DeviceArray<T> dx(x), dw(w), ddy(dy), y(Size(c.y)), gx(Size(c.x)), gw(Size(c.w));
    const S one = 1, zero = 0;
    size_t bytes = 0;
    ASSERT_EQ(cudnnGetConvolutionForwardWorkspaceSize(
                  handle_, x_desc, w_desc, convolution, y_desc,
                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, &bytes),
              CUDNN_STATUS_SUCCESS);
    DeviceArray<char> room(bytes);
    ASSERT_EQ(cudnnConvolutionForward(handle_, &one, x_desc, dx.get(), w_desc, dw.get(),
                                      convolution, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                      room.get(), bytes, &zero, y_desc, y.get()),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnConvolutionBackwardData(handle_, &one, w_desc, dw.get(), y_desc, ddy.get(),
                                           convolution, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                           room.get(), bytes, &zero, x_desc, gx.get()),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnConvolutionBackwardFilter(handle_, &one, x_desc, dx.get(), y_desc, ddy.get(),
                                             convolution, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                             room.get(), bytes, &zero, w_desc, gw.get()),
              CUDNN_STATUS_SUCCESS);
    Wait();
    const std::vector<double> expected = Reference(c, x, w);
    const std::vector<T> result = y.Values();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(static_cast<float>(result[i]), expected[i], tolerance) << i;
    }
    // The gradients are the adjoints of what is linear in x and in w.
    double product = 0;
    for (size_t i = 0; i < expected.size(); ++i) product += expected[i] * static_cast<float>(dy[i]);
    EXPECT_NEAR(Dot(gx.Values(), x), product, 100 * tolerance);
    EXPECT_NEAR(Dot(gw.Values(), w), product, 100 * tolerance);
  }
};

TEST_F(CudnnConvTest, Convolves) {
  for (const Case& c : kCases) {
    ExpectConvolves<float, float>(c, CUDNN_DATA_FLOAT, 1e-5);
    ExpectConvolves<double, double>(c, CUDNN_DATA_DOUBLE, 1e-5);
    ExpectConvolves<__half, float>(c, CUDNN_DATA_HALF, 1e-2);
    ExpectConvolves<__nv_bfloat16, float>(c, CUDNN_DATA_BFLOAT16, 1e-1);
  }
}

TEST_F(CudnnConvTest, RefusesDescriptorsThatDisagree) {
  const Case& good = kCases[0];
  const auto status = [&](const Case& c, cudnnDataType_t y_type = CUDNN_DATA_FLOAT,
                          cudnnDataType_t compute = CUDNN_DATA_FLOAT) {
    size_t bytes = 0;
    return cudnnGetConvolutionForwardWorkspaceSize(
        handle_, TensorOf(CUDNN_DATA_FLOAT, c.x), FilterOf(CUDNN_DATA_FLOAT, c.w),
        ConvolutionOf(c, compute), TensorOf(y_type, c.y), CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
        &bytes);
  };
  EXPECT_EQ(status(good), CUDNN_STATUS_SUCCESS);
  const auto changed = [&](auto change) {
    Case c = good;
    change(c);
    return status(c);
  };
  EXPECT_EQ(changed([](Case& c) { c.y[2] = 5; }), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(changed([](Case& c) { c.y[1] = 5; }), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(changed([](Case& c) { c.y[0] = 1; }), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(changed([](Case& c) { c.w[1] = 2; }), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(changed([](Case& c) { c.groups = 3; }), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(changed([](Case& c) { c.w = {4, 3, 3, 2, 1}; }), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(status(good, CUDNN_DATA_HALF), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(status(good, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF), CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(CudnnConvTest, DescriptorsHaveLimits) {
  const auto tensor = TensorOf(CUDNN_DATA_FLOAT, {1, 1, 1, 1});
  const int three[] = {1, 2, 3}, zero[] = {1, 2, 0, 3}, strides[] = {1, 1, 1, 1};
  EXPECT_EQ(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 3, three, strides),
            CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 4, zero, strides),
            CUDNN_STATUS_BAD_PARAM);
  const auto convolution = ConvolutionOf(kCases[0], CUDNN_DATA_FLOAT);
  EXPECT_EQ(cudnnSetConvolution2dDescriptor(convolution, -1, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                            CUDNN_DATA_FLOAT),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnSetConvolution2dDescriptor(convolution, 0, 0, 0, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                            CUDNN_DATA_FLOAT),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnSetConvolutionGroupCount(convolution, 0), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnConvTest, AlgorithmsNeedTheirWorkspace) {
  const Case& c = kCases[0];
  const auto x_desc = TensorOf(CUDNN_DATA_FLOAT, c.x), y_desc = TensorOf(CUDNN_DATA_FLOAT, c.y);
  const auto w_desc = FilterOf(CUDNN_DATA_FLOAT, c.w);
  const auto convolution = ConvolutionOf(c, CUDNN_DATA_FLOAT);
  cudnnConvolutionFwdAlgoPerf_t found[4];
  int count = 0;
  ASSERT_EQ(cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_desc, w_desc, convolution, y_desc, 4,
                                                   &count, found),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(count, 2);
  EXPECT_GT(found[0].memory, 0u);
  EXPECT_EQ(found[1].memory, 0u);
  EXPECT_EQ(found[0].determinism, CUDNN_DETERMINISTIC);
  DeviceArray<float> x(Size(c.x)), w(Size(c.w)), y(Size(c.y));
  DeviceArray<char> room(found[0].memory);
  const float one = 1, zero = 0;
  const auto convolve = [&](cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t bytes) {
    return cudnnConvolutionForward(handle_, &one, x_desc, x.get(), w_desc, w.get(), convolution,
                                   algorithm, workspace, bytes, &zero, y_desc, y.get());
  };
  EXPECT_EQ(convolve(found[0].algo, room.get(), found[0].memory), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(convolve(found[0].algo, nullptr, 0), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(convolve(found[0].algo, room.get(), found[0].memory - 1), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(convolve(found[1].algo, nullptr, 0), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(convolve(CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, room.get(), found[0].memory),
            CUDNN_STATUS_NOT_SUPPORTED);
  std::vector<char> host(found[0].memory);
  EXPECT_DEATH(convolve(found[0].algo, host.data(), host.size()), "workspace is the host pointer");
  Wait();
}

TEST_F(CudnnConvTest, WorksInStreamOrderAndFailsWhenAsked) {
  const Case& c = kCases[0];
  const auto x_desc = TensorOf(CUDNN_DATA_FLOAT, c.x), y_desc = TensorOf(CUDNN_DATA_FLOAT, c.y);
  const auto w_desc = FilterOf(CUDNN_DATA_FLOAT, c.w);
  const auto convolution = ConvolutionOf(c, CUDNN_DATA_FLOAT);
  DeviceArray<float> x(std::vector<float>(Size(c.x), 1)), w(std::vector<float>(Size(c.w), 1));
  DeviceArray<float> y(Size(c.y));
  const float one = 1, zero = 0;
  const auto convolve = [&] {
    return cudnnConvolutionForward(handle_, &one, x_desc, x.get(), w_desc, w.get(), convolution,
                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &zero,
                                   y_desc, y.get());
  };
  OnwardEmuFailCall(kOnwardEmuLibrary, 2);
  ASSERT_EQ(convolve(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(Counters().library_calls, 0);
  EXPECT_EQ(convolve(), CUDNN_STATUS_EXECUTION_FAILED);
  ASSERT_EQ(convolve(), CUDNN_STATUS_SUCCESS);
  Wait();
  EXPECT_EQ(Counters().library_calls, 2);
  EXPECT_EQ(y.Values()[5], 18);  // away from the border: 3 channels of 3 x 2
}

}  // namespace
}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// A handle on a stream, and descriptors that destroy themselves, for tests of the fake cuDNN.
#pragma once

#include <cudnn.h>

#include <functional>
#include <vector>

#include "tests/cuda_emu/device_array.h"

namespace onward::cuda {

class CudnnTest : public EmulatorTest {
 protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudnnSetStream(handle_, stream_), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    for (const auto& destroy : destroyers_) destroy();
    EXPECT_EQ(cudnnDestroy(handle_), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EmulatorTest::TearDown();
  }

  cudnnTensorDescriptor_t TensorOf(cudnnDataType_t type, const std::vector<int>& dims) {
    cudnnTensorDescriptor_t tensor = nullptr;
    EXPECT_EQ(cudnnCreateTensorDescriptor(&tensor), CUDNN_STATUS_SUCCESS);
    destroyers_.push_back([tensor] { cudnnDestroyTensorDescriptor(tensor); });
    EXPECT_EQ(cudnnSetTensorNdDescriptorEx(tensor, CUDNN_TENSOR_NCHW, type,
                                           static_cast<int>(dims.size()), dims.data()),
              CUDNN_STATUS_SUCCESS);
    return tensor;
  }
  cudnnFilterDescriptor_t FilterOf(cudnnDataType_t type, const std::vector<int>& dims) {
    cudnnFilterDescriptor_t filter = nullptr;
    EXPECT_EQ(cudnnCreateFilterDescriptor(&filter), CUDNN_STATUS_SUCCESS);
    destroyers_.push_back([filter] { cudnnDestroyFilterDescriptor(filter); });
    EXPECT_EQ(cudnnSetFilterNdDescriptor(filter, type, CUDNN_TENSOR_NCHW,
                                         static_cast<int>(dims.size()), dims.data()),
              CUDNN_STATUS_SUCCESS);
    return filter;
  }

  void Wait() { EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

  cudnnHandle_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::vector<std::function<void()>> destroyers_;
};

// Small numbers that 16-bit floats hold exactly.
template <class T>
std::vector<T> SmallNumbers(size_t n, int seed) {
  std::vector<T> values(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = static_cast<T>(static_cast<float>((i * 5 + seed) % 9) * 0.25f - 1);
  }
  return values;
}

template <class T>
double Dot(const std::vector<T>& a, const std::vector<T>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(static_cast<float>(a[i])) * static_cast<float>(b[i]);
  }
  return sum;
}

}  // namespace onward::cuda

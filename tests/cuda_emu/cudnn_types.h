// SPDX-License-Identifier: Apache-2.0
// Handles and descriptors of the fake cuDNN, and what its calls share.
#pragma once

#include <cudnn.h>

#include <optional>
#include <vector>

#include "tests/cuda_emu/library.h"
#include "tests/cuda_emu/state.h"

struct cudnnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};

// No dimensions: it was not set yet.
struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int> dims;
  std::vector<int> strides;
};

struct cudnnFilterStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int> dims;
};

struct cudnnConvolutionStruct {
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int groups = 1;
  std::vector<int> pads, strides, dilations;
};

namespace onward::cuda_emu {

using Tensor = cudnnTensorStruct;

std::optional<Element> ElementOf(cudnnDataType_t type);  // none: the fake knows no such tensors
int64_t Count(const std::vector<int>& dims);
Tensor DenseTensor(cudnnDataType_t type, const std::vector<int>& dims);

// The work of one cuDNN call: what it reads and writes is checked, then it is queued.
class DnnCall {
 public:
  DnnCall(const char* name, cudnnHandle_t handle);

  // What every call does first: the handle, asked-for failures, errors of the device.
  cudnnStatus_t Begin() const;
  void Check(const char* what, const void* data, const Tensor& tensor, Use use = Use::kRead) const;
  void Check(const char* what, const void* data, size_t bytes, Use use = Use::kRead) const;
  cudnnStatus_t Queue(std::function<void()> work) const;

 private:
  Entry entry_;
  const char* name_;
  cudnnHandle_t handle_;
};

// alpha and beta: double for double tensors, else float. Read when the call is made.
double ReadScalar(const void* scalar, cudnnDataType_t type);

template <class C>
std::vector<C> Gather(const Tensor& tensor, const void* data);
// data = alpha * values + beta * data; data is not read where beta is 0.
template <class C>
void Scatter(const Tensor& tensor, void* data, const std::vector<C>& values, double alpha,
             double beta);

// Calls f with the type that tensors of this type are computed in: float or double.
template <class F>
void WithCompute(cudnnDataType_t type, F f) {
  if (type == CUDNN_DATA_DOUBLE) return f(double{});
  f(float{});
}

}  // namespace onward::cuda_emu

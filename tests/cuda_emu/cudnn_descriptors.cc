// SPDX-License-Identifier: Apache-2.0
// Descriptors of the fake cuDNN: made, set within cuDNN's limits, and destroyed.
#include <algorithm>

#include "tests/cuda_emu/cudnn_types.h"

using namespace onward::cuda_emu;

namespace {

template <class T>
cudnnStatus_t Create(T** descriptor) {
  Entry entry;
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *descriptor = new T;
  ++GetState().counters.live_objects;
  return CUDNN_STATUS_SUCCESS;
}

template <class T>
cudnnStatus_t Destroy(T* descriptor) {
  Entry entry;
  if (descriptor != nullptr) --GetState().counters.live_objects;
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

bool AllAtLeast(const std::vector<int>& values, int least) {
  return std::all_of(values.begin(), values.end(), [least](int v) { return v >= least; });
}

cudnnStatus_t SetTensor(Tensor* tensor, cudnnDataType_t type, std::vector<int> dims,
                        std::vector<int> strides) {
  if (tensor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (dims.size() < 4 || dims.size() > CUDNN_DIM_MAX || !ElementOf(type)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (!AllAtLeast(dims, 1) || !AllAtLeast(strides, 1)) return CUDNN_STATUS_BAD_PARAM;
  if (Count(dims) >= int64_t{1} << 31) return CUDNN_STATUS_NOT_SUPPORTED;
  *tensor = {type, std::move(dims), std::move(strides)};
  return CUDNN_STATUS_SUCCESS;
}

// NHWC: channels are innermost.
std::vector<int> StridesOf(cudnnTensorFormat_t format, const std::vector<int>& dims) {
  if (format == CUDNN_TENSOR_NCHW) return DenseTensor(CUDNN_DATA_FLOAT, dims).strides;
  std::vector<int> moved = dims;
  moved.erase(moved.begin() + 1);
  moved.push_back(dims[1]);
  std::vector<int> strides = DenseTensor(CUDNN_DATA_FLOAT, moved).strides;
  strides.insert(strides.begin() + 1, strides.back());
  strides.pop_back();
  return strides;
}

cudnnStatus_t SetFormatted(Tensor* tensor, cudnnTensorFormat_t format, cudnnDataType_t type,
                           const std::vector<int>& dims) {
  if (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC) return CUDNN_STATUS_NOT_SUPPORTED;
  if (dims.size() < 4 || !AllAtLeast(dims, 1)) return CUDNN_STATUS_BAD_PARAM;
  return SetTensor(tensor, type, dims, StridesOf(format, dims));
}

std::vector<int> Copied(const int* values, int count) {
  return values == nullptr || count < 0 ? std::vector<int>()
                                        : std::vector<int>(values, values + count);
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return Create(tensor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return Destroy(tensor);
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  return Create(filter);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  return Destroy(filter);
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  return Create(convolution);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return Destroy(convolution);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                         int rank, const int* dims, const int* strides) {
  if (dims == nullptr || strides == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return SetTensor(tensor, type, Copied(dims, rank), Copied(strides, rank));
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensor,
                                           cudnnTensorFormat_t format, cudnnDataType_t type,
                                           int rank, const int* dims) {
  return SetFormatted(tensor, format, type, Copied(dims, rank));
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  return SetFormatted(tensor, format, type, {n, c, h, w});
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                           int n, int c, int h, int w, int n_stride, int c_stride,
                                           int h_stride, int w_stride) {
  return SetTensor(tensor, type, {n, c, h, w}, {n_stride, c_stride, h_stride, w_stride});
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int requested,
                                         cudnnDataType_t* type, int* rank, int* dims,
                                         int* strides) {
  if (tensor == nullptr || requested < 0) return CUDNN_STATUS_BAD_PARAM;
  *type = tensor->type;
  *rank = static_cast<int>(tensor->dims.size());
  const int count = std::min(requested, *rank);
  std::copy_n(tensor->dims.begin(), count, dims);
  std::copy_n(tensor->strides.begin(), count, strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int* dims) {
  if (filter == nullptr || dims == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (rank < 4 || rank > CUDNN_DIM_MAX || !ElementOf(type) || format != CUDNN_TENSOR_NCHW) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (!AllAtLeast(Copied(dims, rank), 1)) return CUDNN_STATUS_BAD_PARAM;
  *filter = {type, Copied(dims, rank)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  const int dims[] = {k, c, h, w};
  return cudnnSetFilterNdDescriptor(filter, type, format, 4, dims);
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convolution, int length,
                                              const int* pads, const int* strides,
                                              const int* dilations, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  if (convolution == nullptr || length < 1 || pads == nullptr || strides == nullptr ||
      dilations == nullptr || !AllAtLeast(Copied(pads, length), 0) ||
      !AllAtLeast(Copied(strides, length), 1) || !AllAtLeast(Copied(dilations, length), 1)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (length > CUDNN_DIM_MAX - 2 || !ElementOf(compute)) return CUDNN_STATUS_NOT_SUPPORTED;
  convolution->compute = compute;
  convolution->mode = mode;
  convolution->pads = Copied(pads, length);
  convolution->strides = Copied(strides, length);
  convolution->dilations = Copied(dilations, length);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h,
                                              int pad_w, int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  const int pads[] = {pad_h, pad_w}, strides[] = {stride_h, stride_w};
  const int dilations[] = {dilation_h, dilation_w};
  return cudnnSetConvolutionNdDescriptor(convolution, 2, pads, strides, dilations, mode, compute);
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups) {
  if (convolution == nullptr || groups < 1) return CUDNN_STATUS_BAD_PARAM;
  convolution->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution,
                                          cudnnMathType_t math) {
  if (convolution == nullptr) return CUDNN_STATUS_BAD_PARAM;
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"

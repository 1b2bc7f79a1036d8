// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/conv/dnn.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/status.h"

namespace onward::cuda {
namespace {

constexpr char kWhat[] = "a convolution";
constexpr cudnnConvolutionFwdAlgo_t kForwardAlgorithm =
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
// The ones numbered 0 add with atomics.
constexpr cudnnConvolutionBwdDataAlgo_t kDataAlgorithm = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
constexpr cudnnConvolutionBwdFilterAlgo_t kWeightsAlgorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

cudnnDataType_t DataTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kDouble: return CUDNN_DATA_DOUBLE;
    case DType::kFloat16: return CUDNN_DATA_HALF;
    case DType::kBFloat16: return CUDNN_DATA_BFLOAT16;
    default: return CUDNN_DATA_FLOAT;
  }
}

// cuDNN knows one pad per axis and makes the output as long as it can.
bool HasDnnForm(const ConvGeometry& g) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  for (const Shape& shape : {g.x(), g.w(), g.y()}) {
    if (shape.elements() < 1 || shape.elements() > kMost) return false;
  }
  const Window& w = g.window;
  for (int i = 0; i < w.rank(); ++i) {
    const int64_t room = w.in[i] + 2 * w.pads_begin[i] - w.extent(i);
    if (room < 0 || room / w.strides[i] + 1 != w.out[i]) return false;
  }
  return true;
}

// One spatial axis is two to cuDNN, the first of size 1.
std::vector<int> DnnDims(const Shape& shape) {
  std::vector<int> dims(shape.begin(), shape.end());
  if (shape.rank() == 3) dims.insert(dims.begin() + 2, 1);
  return dims;
}
std::vector<int> DnnAxes(const Window::Dims& values, int missing) {
  std::vector<int> axes(values.begin(), values.end());
  if (axes.size() == 1) axes.insert(axes.begin(), missing);
  return axes;
}

absl::Status DescribeTensor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                            const std::vector<int>& dims) {
  std::vector<int> strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return StatusOf(cudnnSetTensorNdDescriptor(tensor, type, static_cast<int>(dims.size()),
                                             dims.data(), strides.data()),
                  kWhat);
}

template <class Owned, class Descriptor>
absl::Status Create(cudnnStatus_t (*create)(Descriptor*), Owned& owned) {
  Descriptor made = nullptr;
  ONWARD_RETURN_IF_ERROR(StatusOf(create(&made), kWhat));
  owned.reset(made);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DnnConv>> DnnConv::Make(Libraries& libraries, ConvPass pass,
                                                             DType dtype, const ConvGeometry& g,
                                                             bool allow_tf32) {
  if (!HasDnnForm(g)) return absl::UnimplementedError("cuDNN has no such convolution");
  auto conv = std::make_shared<DnnConv>();
  conv->pass_ = pass;
  conv->wide_ = dtype == DType::kDouble;
  ONWARD_RETURN_IF_ERROR(conv->Describe(dtype, g, allow_tf32));
  ONWARD_RETURN_IF_ERROR(
      libraries.WithDnn([&](cudnnHandle_t handle) { return conv->AskWorkspace(handle); }));
  return conv;
}

absl::Status DnnConv::Describe(DType dtype, const ConvGeometry& g, bool allow_tf32) {
  const cudnnDataType_t type = DataTypeOf(dtype);
  ONWARD_RETURN_IF_ERROR(Create(cudnnCreateTensorDescriptor, x_));
  ONWARD_RETURN_IF_ERROR(Create(cudnnCreateTensorDescriptor, y_));
  ONWARD_RETURN_IF_ERROR(Create(cudnnCreateFilterDescriptor, w_));
  ONWARD_RETURN_IF_ERROR(Create(cudnnCreateConvolutionDescriptor, conv_));
  ONWARD_RETURN_IF_ERROR(DescribeTensor(x_.get(), type, DnnDims(g.x())));
  ONWARD_RETURN_IF_ERROR(DescribeTensor(y_.get(), type, DnnDims(g.y())));
  const std::vector<int> w = DnnDims(g.w());
  ONWARD_RETURN_IF_ERROR(StatusOf(cudnnSetFilterNdDescriptor(w_.get(), type, CUDNN_TENSOR_NCHW,
                                                             static_cast<int>(w.size()), w.data()),
                                  kWhat));
  const std::vector<int> pads = DnnAxes(g.window.pads_begin, 0);
  const std::vector<int> strides = DnnAxes(g.window.strides, 1);
  const std::vector<int> dilations = DnnAxes(g.window.dilations, 1);
  ONWARD_RETURN_IF_ERROR(StatusOf(
      cudnnSetConvolutionNdDescriptor(conv_.get(), static_cast<int>(pads.size()), pads.data(),
                                      strides.data(), dilations.data(), CUDNN_CROSS_CORRELATION,
                                      wide_ ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
      kWhat));
  ONWARD_RETURN_IF_ERROR(
      StatusOf(cudnnSetConvolutionGroupCount(conv_.get(), static_cast<int>(g.groups)), kWhat));
  // By default floats would be multiplied as TF32.
  const bool narrow = IsHalf(dtype);
  const cudnnMathType_t math = narrow       ? CUDNN_TENSOR_OP_MATH
                               : allow_tf32 ? CUDNN_DEFAULT_MATH
                                            : CUDNN_FMA_MATH;
  return StatusOf(cudnnSetConvolutionMathType(conv_.get(), math), kWhat);
}

absl::Status DnnConv::AskWorkspace(cudnnHandle_t handle) {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  switch (pass_) {
    case ConvPass::kForward:
      status = cudnnGetConvolutionForwardWorkspaceSize(
          handle, x_.get(), w_.get(), conv_.get(), y_.get(), kForwardAlgorithm, &workspace_bytes_);
      break;
    case ConvPass::kData:
      status = cudnnGetConvolutionBackwardDataWorkspaceSize(
          handle, w_.get(), y_.get(), conv_.get(), x_.get(), kDataAlgorithm, &workspace_bytes_);
      break;
    case ConvPass::kWeights:
      status = cudnnGetConvolutionBackwardFilterWorkspaceSize(
          handle, x_.get(), y_.get(), conv_.get(), w_.get(), kWeightsAlgorithm, &workspace_bytes_);
      break;
  }
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) {
    return absl::UnimplementedError("cuDNN has no such convolution");
  }
  return StatusOf(status, kWhat);
}

absl::Status DnnConv::Run(cudnnHandle_t handle, const void* first, const void* second, void* result,
                          bool add, void* workspace) const {
  const float floats[2] = {1, add ? 1.0f : 0.0f};
  const double doubles[2] = {1, add ? 1.0 : 0.0};
  const void* alpha = wide_ ? static_cast<const void*>(&doubles[0]) : &floats[0];
  const void* beta = wide_ ? static_cast<const void*>(&doubles[1]) : &floats[1];
  void* scratch = workspace_bytes_ == 0 ? nullptr : workspace;
  switch (pass_) {
    case ConvPass::kForward:
      return StatusOf(cudnnConvolutionForward(handle, alpha, x_.get(), first, w_.get(), second,
                                              conv_.get(), kForwardAlgorithm, scratch,
                                              workspace_bytes_, beta, y_.get(), result),
                      kWhat);
    case ConvPass::kData:
      return StatusOf(cudnnConvolutionBackwardData(handle, alpha, w_.get(), second, y_.get(), first,
                                                   conv_.get(), kDataAlgorithm, scratch,
                                                   workspace_bytes_, beta, x_.get(), result),
                      kWhat);
    case ConvPass::kWeights:
      return StatusOf(cudnnConvolutionBackwardFilter(
                          handle, alpha, x_.get(), first, y_.get(), second, conv_.get(),
                          kWeightsAlgorithm, scratch, workspace_bytes_, beta, w_.get(), result),
                      kWhat);
  }
  return absl::InternalError(kWhat);
}

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// What the fake cuDNN does with biases: adding them, and their gradient.
#include "tests/cuda_emu/cudnn_types.h"

using namespace onward::cuda_emu;

namespace {

// The bias seen at the size of the other tensor: dimensions of 1 do not advance.
Tensor Broadcast(const Tensor& bias, const Tensor& like) {
  Tensor tensor = {bias.type, like.dims, bias.strides};
  for (size_t d = 0; d < like.dims.size(); ++d) {
    if (bias.dims[d] == 1) tensor.strides[d] = 0;
  }
  return tensor;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                             const cudnnTensorDescriptor_t a_desc, const void* a, const void* beta,
                             const cudnnTensorDescriptor_t c_desc, void* c) {
  const DnnCall call("cudnnAddTensor", handle);
  if (const cudnnStatus_t status = call.Begin()) return status;
  if (a_desc == nullptr || c_desc == nullptr || alpha == nullptr || beta == nullptr ||
      a_desc->dims.empty() || a_desc->type != c_desc->type ||
      a_desc->dims.size() != c_desc->dims.size()) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  for (size_t d = 0; d < a_desc->dims.size(); ++d) {
    if (a_desc->dims[d] != 1 && a_desc->dims[d] != c_desc->dims[d]) return CUDNN_STATUS_BAD_PARAM;
  }
  const Tensor from = *a_desc, to = *c_desc;
  call.Check("A", a, from);
  call.Check("C", c, to);
  const double scale = ReadScalar(alpha, from.type), kept = ReadScalar(beta, from.type);
  return call.Queue([=] {
    WithCompute(from.type, [&](auto zero) {
      Scatter(to, c, Gather<decltype(zero)>(Broadcast(from, to), a), scale, kept);
    });
  });
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const void* beta, const cudnnTensorDescriptor_t db_desc,
                                           void* db) {
  const DnnCall call("cudnnConvolutionBackwardBias", handle);
  if (const cudnnStatus_t status = call.Begin()) return status;
  if (dy_desc == nullptr || db_desc == nullptr || alpha == nullptr || beta == nullptr ||
      dy_desc->dims.empty() || dy_desc->type != db_desc->type ||
      dy_desc->dims.size() != db_desc->dims.size() || db_desc->dims[1] != dy_desc->dims[1] ||
      Count(db_desc->dims) != db_desc->dims[1]) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const Tensor from = *dy_desc, to = *db_desc;
  call.Check("dy", dy, from);
  call.Check("db", db, to);
  const double scale = ReadScalar(alpha, from.type), kept = ReadScalar(beta, from.type);
  return call.Queue([=] {
    WithCompute(from.type, [&](auto zero) {
      using C = decltype(zero);
      const std::vector<C> values = Gather<C>(from, dy);
      const int64_t channels = from.dims[1];
      const int64_t pixels = Count(from.dims) / from.dims[0] / channels;
      std::vector<C> sums(channels, C(0));
      for (size_t i = 0; i < values.size(); ++i) sums[i / pixels % channels] += values[i];
      Scatter(to, db, sums, scale, kept);
    });
  });
}

}  // extern "C"

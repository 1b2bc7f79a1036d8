// SPDX-License-Identifier: Apache-2.0
// Convolution calls of the fake cuDNN: descriptors that have to agree, algorithms, workspaces.
#include <algorithm>
#include <cstring>

#include "tests/cuda_emu/convolution.h"
#include "tests/cuda_emu/cudnn_types.h"
#include "tests/cuda_emu/memory.h"

using namespace onward::cuda_emu;

namespace {

int SpatialSize(const Convolution& p, size_t d) {
  const cudnnConvolutionStruct& c = p.convolution;
  return Windows::OutputSize(p.x.dims[d + 2], p.w.dims[d + 2], c.pads[d], c.strides[d],
                             c.dilations[d]);
}

// cuDNN's rules for the four descriptors of a convolution.
cudnnStatus_t Validate(const cudnnTensorStruct* x, const cudnnFilterStruct* w,
                       const cudnnConvolutionStruct* convolution, const cudnnTensorStruct* y,
                       Convolution* problem) {
  if (x == nullptr || w == nullptr || convolution == nullptr || y == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  *problem = {*x, *y, *w, *convolution};
  const size_t rank = x->dims.size();
  if (rank == 0 || y->dims.size() != rank || w->dims.size() != rank ||
      convolution->pads.size() + 2 != rank || x->type != y->type || x->type != w->type) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (rank > 5 || convolution->mode != CUDNN_CROSS_CORRELATION) return CUDNN_STATUS_NOT_SUPPORTED;
  const bool is_double = x->type == CUDNN_DATA_DOUBLE;
  if (convolution->compute != (is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (x->dims[0] != y->dims[0] || x->dims[1] != w->dims[1] * convolution->groups ||
      y->dims[1] != w->dims[0] || w->dims[0] % convolution->groups != 0) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  for (size_t d = 0; d + 2 < rank; ++d) {
    if (SpatialSize(*problem, d) != y->dims[d + 2]) return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

// Algorithm 0 of each direction needs no room; 1 (and for the forward pass 2) needs the unfolded
// image. The fake has no others.
cudnnStatus_t WorkspaceBytes(const Convolution& p, int algorithm, int last, size_t* bytes) {
  if (algorithm < 0 || algorithm > last) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = algorithm == 0 ? 0 : Unfolded(p).bytes(p);
  return CUDNN_STATUS_SUCCESS;
}

constexpr int kLastForward = CUDNN_CONVOLUTION_FWD_ALGO_GEMM;
constexpr int kLastBackwardData = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
constexpr int kLastBackwardFilter = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

cudnnStatus_t SizeFor(const cudnnTensorStruct* x, const cudnnFilterStruct* w,
                      const cudnnConvolutionStruct* convolution, const cudnnTensorStruct* y,
                      int algorithm, int last, size_t* bytes) {
  Convolution problem;
  const cudnnStatus_t status = Validate(x, w, convolution, y, &problem);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return WorkspaceBytes(problem, algorithm, last, bytes);
}

struct Run {
  Convolution problem;
  int algorithm, last;
  void* workspace;
  size_t workspace_bytes;
  const void *alpha, *beta;
  const void* a;
  Tensor a_tensor;
  const void* b;
  Tensor b_tensor;
  void* result;
  Tensor result_tensor;
};

// `compute` makes the result of two gathered tensors.
template <class F>
cudnnStatus_t Queue(const DnnCall& call, const Run& run, F compute) {
  size_t needed = 0;
  const cudnnStatus_t status = WorkspaceBytes(run.problem, run.algorithm, run.last, &needed);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (run.alpha == nullptr || run.beta == nullptr || run.workspace_bytes < needed ||
      (needed > 0 && run.workspace == nullptr)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  call.Check("the first input", run.a, run.a_tensor);
  call.Check("the second input", run.b, run.b_tensor);
  call.Check("the result", run.result, run.result_tensor, Use::kWritten);
  call.Check("the workspace", run.workspace, needed, Use::kScratch);
  const double alpha = ReadScalar(run.alpha, run.problem.x.type);
  const double beta = ReadScalar(run.beta, run.problem.x.type);
  return call.Queue([=] {
    if (needed > 0) std::memset(run.workspace, kPoison, needed);
    WithCompute(run.problem.x.type, [&](auto zero) {
      using C = decltype(zero);
      const std::vector<C> values =
          compute(run.problem, Gather<C>(run.a_tensor, run.a), Gather<C>(run.b_tensor, run.b));
      Scatter(run.result_tensor, run.result, values, alpha, beta);
    });
  });
}

Tensor FilterTensor(const cudnnFilterStruct& w) { return DenseTensor(w.type, w.dims); }

template <class Perf>
void Describe(Perf* result, int algorithm, bool deterministic, const Convolution& problem,
              int last) {
  *result = {};
  result->algo = static_cast<decltype(result->algo)>(algorithm);
  result->status = WorkspaceBytes(problem, algorithm, last, &result->memory);
  result->time = -1;
  result->determinism = deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
  result->mathType = problem.convolution.math;
}

// The algorithm that needs room comes first, as it is the faster one.
template <class Perf>
cudnnStatus_t List(const cudnnTensorStruct* x, const cudnnFilterStruct* w,
                   const cudnnConvolutionStruct* convolution, const cudnnTensorStruct* y,
                   bool deterministic_0, int last, int requested, int* returned, Perf* results) {
  Convolution problem;
  const cudnnStatus_t status = Validate(x, w, convolution, y, &problem);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (requested < 1 || returned == nullptr || results == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *returned = std::min(requested, 2);
  for (int i = 0; i < *returned; ++i) {
    Describe(results + i, 1 - i, i == 0 || deterministic_0, problem, last);
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t convolution,
                                                    const cudnnTensorDescriptor_t x,
                                                    const cudnnFilterDescriptor_t w, int rank,
                                                    int* dims) {
  if (convolution == nullptr || x == nullptr || w == nullptr ||
      x->dims.size() != static_cast<size_t>(rank) || w->dims.size() != x->dims.size() ||
      convolution->pads.size() + 2 != x->dims.size()) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  dims[0] = x->dims[0];
  dims[1] = w->dims[0];
  for (int d = 0; d + 2 < rank; ++d) dims[d + 2] = SpatialSize({*x, {}, *w, *convolution}, d);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  return SizeFor(x, w, convolution, y, algorithm, kLastForward, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return SizeFor(dx, w, convolution, dy, algorithm, kLastBackwardData, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return SizeFor(x, dw, convolution, dy, algorithm, kLastBackwardFilter, bytes);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t convolution,
                                                     const cudnnTensorDescriptor_t y,
                                                     const int requested, int* returned,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
  return List(x, w, convolution, y, true, kLastForward, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return List(dx, w, convolution, dy, false, kLastBackwardData, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return List(x, dw, convolution, dy, false, kLastBackwardFilter, requested, returned, results);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t x_desc, const void* x,
                                      const cudnnFilterDescriptor_t w_desc, const void* w,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      size_t bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y_desc, void* y) {
  const DnnCall call("cudnnConvolutionForward", handle);
  Convolution p;
  cudnnStatus_t status = call.Begin();
  if (status == CUDNN_STATUS_SUCCESS) status = Validate(x_desc, w_desc, convolution, y_desc, &p);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const Run run = {p,   algorithm, kLastForward,      workspace, bytes, alpha, beta, x,
                   p.x, w,         FilterTensor(p.w), y,         p.y};
  return Queue(call, run, [](const Convolution& problem, const auto& from, const auto& filters) {
    return Forward(problem, from, filters);
  });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void* w,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dx_desc, void* dx) {
  const DnnCall call("cudnnConvolutionBackwardData", handle);
  Convolution p;
  cudnnStatus_t status = call.Begin();
  if (status == CUDNN_STATUS_SUCCESS) status = Validate(dx_desc, w_desc, convolution, dy_desc, &p);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const Run run = {p,   algorithm, kLastBackwardData, workspace, bytes, alpha, beta, dy,
                   p.y, w,         FilterTensor(p.w), dx,        p.x};
  return Queue(call, run, [](const Convolution& problem, const auto& from, const auto& filters) {
    return BackwardData(problem, from, filters);
  });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void* x,
                                             const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void* workspace, size_t bytes, const void* beta,
                                             const cudnnFilterDescriptor_t dw_desc, void* dw) {
  const DnnCall call("cudnnConvolutionBackwardFilter", handle);
  Convolution p;
  cudnnStatus_t status = call.Begin();
  if (status == CUDNN_STATUS_SUCCESS) status = Validate(x_desc, dw_desc, convolution, dy_desc, &p);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const Run run = {p,   algorithm, kLastBackwardFilter, workspace, bytes, alpha, beta, x, p.x, dy,
                   p.y, dw,        FilterTensor(p.w)};
  const bool fixed = algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0;
  return Queue(call, run, [fixed](const Convolution& problem, const auto& from, const auto& grads) {
    return BackwardFilter(problem, from, grads, fixed);
  });
}

}  // extern "C"

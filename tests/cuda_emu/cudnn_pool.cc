// SPDX-License-Identifier: Apache-2.0
// Pooling of the fake cuDNN.
#include <cmath>
#include <limits>

#include "tests/cuda_emu/cudnn_types.h"
#include "tests/cuda_emu/windows.h"

using namespace onward::cuda_emu;

namespace {

bool IsMax(cudnnPoolingMode_t mode) {
  return mode == CUDNN_POOLING_MAX || mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

int OutputSize(const cudnnPoolingStruct& pooling, const Tensor& x, size_t d) {
  return Windows::OutputSize(x.dims[d + 2], pooling.window[d], pooling.pads[d], pooling.strides[d],
                             1);
}

cudnnStatus_t Validate(const cudnnPoolingStruct* pooling, const Tensor* x, const Tensor* y) {
  if (pooling == nullptr || x == nullptr || y == nullptr || x->dims.empty() ||
      x->dims.size() != y->dims.size() || pooling->window.size() + 2 != x->dims.size() ||
      x->type != y->type || x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1]) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (x->dims.size() > 5) return CUDNN_STATUS_NOT_SUPPORTED;
  for (size_t d = 0; d < pooling->window.size(); ++d) {
    if (OutputSize(*pooling, *x, d) != y->dims[d + 2]) return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

struct Pooling {
  cudnnPoolingStruct descriptor;
  Windows windows;
  int64_t images, pixels, positions;

  Pooling(const cudnnPoolingStruct& pooling, const Tensor& x, const Tensor& y)
      : descriptor(pooling) {
    windows = {{x.dims.begin() + 2, x.dims.end()},
               {y.dims.begin() + 2, y.dims.end()},
               pooling.window,
               pooling.pads,
               pooling.strides,
               std::vector<int>(pooling.window.size(), 1)};
    images = int64_t{x.dims[0]} * x.dims[1];
    pixels = Count(windows.in);
    positions = Count(windows.out);
  }

  bool is_max() const { return IsMax(descriptor.mode); }

  // Input positions of the maxima, or how many elements each mean is over.
  template <class C>
  std::vector<int64_t> Maxima(const C* x) const {
    std::vector<int64_t> best(positions, -1);
    const bool propagates = descriptor.nan == CUDNN_PROPAGATE_NAN;
    ForEachWindow(windows, [&](int64_t output, int64_t, int64_t input) {
      if (input < 0 || (!propagates && std::isnan(x[input]))) return;
      int64_t& at = best[output];
      if (at < 0 || x[input] > x[at] || (std::isnan(x[input]) && !std::isnan(x[at]))) at = input;
    });
    return best;
  }

  std::vector<int64_t> Divisors() const {
    const bool padded = descriptor.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
    std::vector<int64_t> counts(positions, 0);
    ForEachWindow(windows, [&](int64_t output, int64_t, int64_t input) {
      counts[output] += padded || input >= 0;
    });
    return counts;
  }
};

template <class C>
std::vector<C> Forward(const Pooling& p, const std::vector<C>& x) {
  std::vector<C> y(p.images * p.positions, C(0));
  const std::vector<int64_t> divisors = p.is_max() ? std::vector<int64_t>() : p.Divisors();
  for (int64_t i = 0; i < p.images; ++i) {
    const C* from = x.data() + i * p.pixels;
    C* to = y.data() + i * p.positions;
    if (p.is_max()) {
      const std::vector<int64_t> best = p.Maxima(from);
      for (int64_t o = 0; o < p.positions; ++o) {
        to[o] = best[o] < 0 ? std::numeric_limits<C>::lowest() : from[best[o]];
      }
      continue;
    }
    ForEachWindow(p.windows, [&](int64_t output, int64_t, int64_t input) {
      if (input >= 0) to[output] += from[input];
    });
    for (int64_t o = 0; o < p.positions; ++o) to[o] /= static_cast<C>(divisors[o]);
  }
  return y;
}

template <class C>
std::vector<C> Backward(const Pooling& p, const std::vector<C>& x, const std::vector<C>& dy) {
  std::vector<C> dx(p.images * p.pixels, C(0));
  const std::vector<int64_t> divisors = p.is_max() ? std::vector<int64_t>() : p.Divisors();
  for (int64_t i = 0; i < p.images; ++i) {
    const C* from = dy.data() + i * p.positions;
    C* to = dx.data() + i * p.pixels;
    if (p.is_max()) {
      const std::vector<int64_t> best = p.Maxima(x.data() + i * p.pixels);
      for (int64_t o = 0; o < p.positions; ++o) {
        if (best[o] >= 0) to[best[o]] += from[o];
      }
      continue;
    }
    ForEachWindow(p.windows, [&](int64_t output, int64_t, int64_t input) {
      if (input >= 0) to[input] += from[output] / static_cast<C>(divisors[output]);
    });
  }
  return dx;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t pooling,
                                                const cudnnTensorDescriptor_t x, int rank,
                                                int* dims) {
  if (pooling == nullptr || x == nullptr || x->dims.size() != static_cast<size_t>(rank) ||
      pooling->window.size() + 2 != x->dims.size()) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  dims[0] = x->dims[0];
  dims[1] = x->dims[1];
  for (int d = 0; d + 2 < rank; ++d) dims[d + 2] = OutputSize(*pooling, *x, d);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling,
                                  const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                  const void* x, const void* beta,
                                  const cudnnTensorDescriptor_t y_desc, void* y) {
  const DnnCall call("cudnnPoolingForward", handle);
  cudnnStatus_t status = call.Begin();
  if (status == CUDNN_STATUS_SUCCESS) status = Validate(pooling, x_desc, y_desc);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const Tensor from = *x_desc, to = *y_desc;
  call.Check("x", x, from);
  call.Check("y", y, to);
  const double a = ReadScalar(alpha, from.type), b = ReadScalar(beta, from.type);
  return call.Queue([=, p = Pooling(*pooling, from, to)] {
    WithCompute(from.type, [&](auto zero) {
      using C = decltype(zero);
      Scatter(to, y, Forward(p, Gather<C>(from, x)), a, b);
    });
  });
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling,
                                   const void* alpha, const cudnnTensorDescriptor_t y_desc,
                                   const void* y, const cudnnTensorDescriptor_t dy_desc,
                                   const void* dy, const cudnnTensorDescriptor_t x_desc,
                                   const void* x, const void* beta,
                                   const cudnnTensorDescriptor_t dx_desc, void* dx) {
  const DnnCall call("cudnnPoolingBackward", handle);
  cudnnStatus_t status = call.Begin();
  if (status == CUDNN_STATUS_SUCCESS) status = Validate(pooling, x_desc, y_desc);
  if (status == CUDNN_STATUS_SUCCESS) status = Validate(pooling, dx_desc, dy_desc);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (alpha == nullptr || beta == nullptr || x_desc->dims != dx_desc->dims ||
      x_desc->type != dx_desc->type) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const Tensor from = *dy_desc, forward = *x_desc, to = *dx_desc;
  call.Check("y", y, *y_desc);
  call.Check("dy", dy, from);
  call.Check("x", x, forward);
  call.Check("dx", dx, to);
  const double a = ReadScalar(alpha, from.type), b = ReadScalar(beta, from.type);
  return call.Queue([=, p = Pooling(*pooling, to, from)] {
    WithCompute(from.type, [&](auto zero) {
      using C = decltype(zero);
      Scatter(to, dx, Backward(p, Gather<C>(forward, x), Gather<C>(from, dy)), a, b);
    });
  });
}

}  // extern "C"

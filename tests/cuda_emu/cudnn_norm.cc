// SPDX-License-Identifier: Apache-2.0
// Batch normalization and bias of the fake cuDNN.
#include <algorithm>
#include <cmath>

#include "tests/cuda_emu/cudnn_types.h"

using namespace onward::cuda_emu;

namespace {

bool IsSpatial(cudnnBatchNormMode_t mode) { return mode != CUDNN_BATCHNORM_PER_ACTIVATION; }

// 1 x C x 1 x 1, or 1 x C x H x W per activation; float unless x is double.
Tensor StatisticsOf(const Tensor& x, cudnnBatchNormMode_t mode) {
  std::vector<int> dims = x.dims;
  dims[0] = 1;
  if (IsSpatial(mode)) std::fill(dims.begin() + 2, dims.end(), 1);
  return DenseTensor(x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, dims);
}

bool SameShape(const Tensor& a, const Tensor& b) { return a.type == b.type && a.dims == b.dims; }

cudnnStatus_t Validate(cudnnBatchNormMode_t mode, const Tensor* x, const Tensor* y,
                       const Tensor* statistics, double epsilon) {
  if (x == nullptr || y == nullptr || statistics == nullptr || x->dims.empty() ||
      !SameShape(*x, *y) || epsilon < CUDNN_BN_MIN_EPSILON) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (x->dims.size() > 5) return CUDNN_STATUS_NOT_SUPPORTED;
  return SameShape(StatisticsOf(*x, mode), *statistics) ? CUDNN_STATUS_SUCCESS
                                                        : CUDNN_STATUS_BAD_PARAM;
}

// Elements of a dense x as features (what statistics are kept of) and samples of each.
struct Layout {
  int64_t images, features, inner, samples;

  Layout(const Tensor& x, cudnnBatchNormMode_t mode) {
    images = x.dims[0];
    features = Count(StatisticsOf(x, mode).dims);
    inner = Count(x.dims) / images / features;
    samples = images * inner;
  }
  int64_t At(int64_t feature, int64_t sample) const {
    return (sample / inner * features + feature) * inner + sample % inner;
  }
};

template <class C>
void MeanAndVariance(const Layout& l, const std::vector<C>& x, std::vector<C>* mean,
                     std::vector<C>* variance) {
  mean->resize(l.features);
  variance->resize(l.features);
  for (int64_t f = 0; f < l.features; ++f) {
    double sum = 0, squares = 0;
    for (int64_t s = 0; s < l.samples; ++s) sum += x[l.At(f, s)];
    const double m = sum / static_cast<double>(l.samples);
    for (int64_t s = 0; s < l.samples; ++s) squares += (x[l.At(f, s)] - m) * (x[l.At(f, s)] - m);
    (*mean)[f] = static_cast<C>(m);
    (*variance)[f] = static_cast<C>(squares / static_cast<double>(l.samples));
  }
}

template <class C>
std::vector<C> InverseDeviation(const std::vector<C>& variance, double epsilon) {
  std::vector<C> inverse(variance.size());
  for (size_t f = 0; f < variance.size(); ++f) {
    inverse[f] = static_cast<C>(1 / std::sqrt(static_cast<double>(variance[f]) + epsilon));
  }
  return inverse;
}

// y = scale * (x - mean) * inverse + bias
template <class C>
std::vector<C> Normalized(const Layout& l, const std::vector<C>& x, const std::vector<C>& mean,
                          const std::vector<C>& inverse, const std::vector<C>& scale,
                          const std::vector<C>& bias) {
  std::vector<C> y(x.size());
  for (int64_t f = 0; f < l.features; ++f) {
    for (int64_t s = 0; s < l.samples; ++s) {
      const int64_t i = l.At(f, s);
      y[i] = scale[f] * (x[i] - mean[f]) * inverse[f] + bias[f];
    }
  }
  return y;
}

// With xhat = (x - mean) * inverse: dscale = sum(dy * xhat), dbias = sum(dy),
// dx = scale * inverse * (dy - dbias / n - xhat * dscale / n).
template <class C>
struct Gradients {
  std::vector<C> dx, dscale, dbias;

  Gradients(const Layout& l, const std::vector<C>& x, const std::vector<C>& dy,
            const std::vector<C>& scale, const std::vector<C>& mean, const std::vector<C>& inverse)
      : dx(x.size()), dscale(l.features), dbias(l.features) {
    const auto n = static_cast<C>(l.samples);
    for (int64_t f = 0; f < l.features; ++f) {
      double products = 0, sum = 0;
      for (int64_t s = 0; s < l.samples; ++s) {
        const int64_t i = l.At(f, s);
        products += static_cast<double>(dy[i]) * (x[i] - mean[f]) * inverse[f];
        sum += dy[i];
      }
      dscale[f] = static_cast<C>(products);
      dbias[f] = static_cast<C>(sum);
      for (int64_t s = 0; s < l.samples; ++s) {
        const int64_t i = l.At(f, s);
        const C xhat = (x[i] - mean[f]) * inverse[f];
        dx[i] = scale[f] * inverse[f] * (dy[i] - dbias[f] / n - xhat * dscale[f] / n);
      }
    }
  }
};

bool BothOrNone(const void* a, const void* b) { return (a == nullptr) == (b == nullptr); }

}  // namespace

extern "C" {

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived,
                                            const cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t mode) {
  if (derived == nullptr || x == nullptr || x->dims.empty()) return CUDNN_STATUS_BAD_PARAM;
  *derived = StatisticsOf(*x, mode);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_desc, const void* x, const cudnnTensorDescriptor_t y_desc,
    void* y, const cudnnTensorDescriptor_t statistics_desc, const void* scale, const void* bias,
    double factor, void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inverse) {
  const DnnCall call("cudnnBatchNormalizationForwardTraining", handle);
  cudnnStatus_t status = call.Begin();
  if (status == CUDNN_STATUS_SUCCESS) {
    status = Validate(mode, x_desc, y_desc, statistics_desc, epsilon);
  }
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (alpha == nullptr || beta == nullptr || !BothOrNone(running_mean, running_variance) ||
      !BothOrNone(saved_mean, saved_inverse)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const Tensor from = *x_desc, to = *y_desc, per_feature = *statistics_desc;
  call.Check("x", x, from);
  call.Check("y", y, to);
  const std::pair<const char*, const void*> needed[] = {{"scale", scale}, {"bias", bias}};
  const std::pair<const char*, const void*> optional[] = {
      {"the running mean", running_mean},
      {"the running variance", running_variance},
      {"the saved mean", saved_mean},
      {"the saved deviation", saved_inverse}};
  for (const auto& [what, data] : needed) call.Check(what, data, per_feature);
  for (const auto& [what, data] : optional) {
    if (data != nullptr) call.Check(what, data, per_feature);
  }
  const double a = ReadScalar(alpha, from.type), b = ReadScalar(beta, from.type);
  return call.Queue([=, l = Layout(from, mode)] {
    WithCompute(from.type, [&](auto zero) {
      using C = decltype(zero);
      const std::vector<C> values = Gather<C>(from, x);
      std::vector<C> mean, variance;
      MeanAndVariance(l, values, &mean, &variance);
      const std::vector<C> inverse = InverseDeviation(variance, epsilon);
      Scatter(to, y,
              Normalized(l, values, mean, inverse, Gather<C>(per_feature, scale),
                         Gather<C>(per_feature, bias)),
              a, b);
      if (saved_mean != nullptr) {
        Scatter(per_feature, saved_mean, mean, 1, 0);
        Scatter(per_feature, saved_inverse, inverse, 1, 0);
      }
      if (running_mean == nullptr) return;
      // The running variance is the unbiased one, though y is made with the biased one.
      const double unbiased =
          static_cast<double>(l.samples) / static_cast<double>(std::max<int64_t>(l.samples - 1, 1));
      Scatter(per_feature, running_mean, mean, factor, 1 - factor);
      Scatter(per_feature, running_variance, variance, factor * unbiased, 1 - factor);
    });
  });
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_desc, const void* x, const cudnnTensorDescriptor_t y_desc,
    void* y, const cudnnTensorDescriptor_t statistics_desc, const void* scale, const void* bias,
    const void* mean, const void* variance, double epsilon) {
  const DnnCall call("cudnnBatchNormalizationForwardInference", handle);
  cudnnStatus_t status = call.Begin();
  if (status == CUDNN_STATUS_SUCCESS) {
    status = Validate(mode, x_desc, y_desc, statistics_desc, epsilon);
  }
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const Tensor from = *x_desc, to = *y_desc, per_feature = *statistics_desc;
  call.Check("x", x, from);
  call.Check("y", y, to);
  const std::pair<const char*, const void*> needed[] = {
      {"scale", scale}, {"bias", bias}, {"the mean", mean}, {"the variance", variance}};
  for (const auto& [what, data] : needed) call.Check(what, data, per_feature);
  const double a = ReadScalar(alpha, from.type), b = ReadScalar(beta, from.type);
  return call.Queue([=, l = Layout(from, mode)] {
    WithCompute(from.type, [&](auto zero) {
      using C = decltype(zero);
      const std::vector<C> inverse = InverseDeviation(Gather<C>(per_feature, variance), epsilon);
      Scatter(to, y,
              Normalized(l, Gather<C>(from, x), Gather<C>(per_feature, mean), inverse,
                         Gather<C>(per_feature, scale), Gather<C>(per_feature, bias)),
              a, b);
    });
  });
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha_data, const void* beta_data,
    const void* alpha_params, const void* beta_params, const cudnnTensorDescriptor_t x_desc,
    const void* x, const cudnnTensorDescriptor_t dy_desc, const void* dy,
    const cudnnTensorDescriptor_t dx_desc, void* dx, const cudnnTensorDescriptor_t statistics_desc,
    const void* scale, void* dscale, void* dbias, double epsilon, const void* saved_mean,
    const void* saved_inverse) {
  const DnnCall call("cudnnBatchNormalizationBackward", handle);
  cudnnStatus_t status = call.Begin();
  if (status == CUDNN_STATUS_SUCCESS) {
    status = Validate(mode, x_desc, dy_desc, statistics_desc, epsilon);
  }
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (alpha_data == nullptr || beta_data == nullptr || alpha_params == nullptr ||
      beta_params == nullptr || dx_desc == nullptr || !SameShape(*x_desc, *dx_desc) ||
      !BothOrNone(saved_mean, saved_inverse)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const Tensor forward = *x_desc, from = *dy_desc, to = *dx_desc, per_feature = *statistics_desc;
  call.Check("x", x, forward);
  call.Check("dy", dy, from);
  call.Check("dx", dx, to);
  const std::pair<const char*, const void*> needed[] = {
      {"scale", scale}, {"dscale", dscale}, {"dbias", dbias}};
  for (const auto& [what, data] : needed) call.Check(what, data, per_feature);
  if (saved_mean != nullptr) {
    call.Check("the saved mean", saved_mean, per_feature);
    call.Check("the saved deviation", saved_inverse, per_feature);
  }
  const double a = ReadScalar(alpha_data, from.type), b = ReadScalar(beta_data, from.type);
  const double ap = ReadScalar(alpha_params, from.type), bp = ReadScalar(beta_params, from.type);
  return call.Queue([=, l = Layout(from, mode)] {
    WithCompute(from.type, [&](auto zero) {
      using C = decltype(zero);
      const std::vector<C> values = Gather<C>(forward, x);
      std::vector<C> mean, inverse;
      if (saved_mean != nullptr) {
        mean = Gather<C>(per_feature, saved_mean);
        inverse = Gather<C>(per_feature, saved_inverse);
      } else {
        std::vector<C> variance;
        MeanAndVariance(l, values, &mean, &variance);
        inverse = InverseDeviation(variance, epsilon);
      }
      const Gradients<C> gradients(l, values, Gather<C>(from, dy), Gather<C>(per_feature, scale),
                                   mean, inverse);
      Scatter(to, dx, gradients.dx, a, b);
      Scatter(per_feature, dscale, gradients.dscale, ap, bp);
      Scatter(per_feature, dbias, gradients.dbias, ap, bp);
    });
  });
}

}  // extern "C"

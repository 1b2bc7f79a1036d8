// SPDX-License-Identifier: Apache-2.0
#include "core/ops/ml/svm.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/device/kernel.h"
#include "core/graph/attribute_lists.h"
#include "core/ops/ml/ml.h"

namespace onward {
namespace {

template <typename T>
T SquaredDistance(const T* a, const T* b, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

}  // namespace

template <typename T>
void SvmKernel::Apply(const T* x, int64_t rows, int64_t width, const T* vectors, int64_t n,
                      T* values) const {
  const T scale = static_cast<T>(gamma), shift = static_cast<T>(offset);
  const int64_t all = rows * n;
  if (kind == Kind::kRbf) {
    for (int64_t i = 0; i < all; ++i) {
      values[i] = -scale * SquaredDistance(x + i / n * width, vectors + i % n * width, width);
    }
#pragma omp simd
    for (int64_t i = 0; i < all; ++i) values[i] = std::exp(values[i]);
    return;
  }
  MultiplyRows(x, rows, width, vectors, n, values);
  if (kind == Kind::kLinear) return;
  for (int64_t i = 0; i < all; ++i) {
    const T v = scale * values[i] + shift;
    values[i] = kind == Kind::kPoly ? std::pow(v, static_cast<T>(degree)) : std::tanh(v);
  }
}
template void SvmKernel::Apply(const float*, int64_t, int64_t, const float*, int64_t, float*) const;
template void SvmKernel::Apply(const double*, int64_t, int64_t, const double*, int64_t,
                               double*) const;

absl::StatusOr<SvmKernel> SvmKernelOf(const Node& node) {
  const std::string name = node.String("kernel_type", "LINEAR");
  SvmKernel kernel;
  kernel.kind = name == "POLY"      ? SvmKernel::Kind::kPoly
                : name == "RBF"     ? SvmKernel::Kind::kRbf
                : name == "SIGMOID" ? SvmKernel::Kind::kSigmoid
                                    : SvmKernel::Kind::kLinear;
  const std::vector<float> params = FloatsOf(node, "kernel_params");
  if (params.empty()) return kernel;
  if (params.size() != 3) {
    return NodeError(node, absl::StrCat("kernel_params has ", params.size(),
                                        " values, expected gamma, coef0, degree"));
  }
  kernel.gamma = params[0];
  kernel.offset = params[1];
  kernel.degree = params[2];
  return kernel;
}

double PairProbability(double score, double a, double b) {
  constexpr double kLeast = 1e-7;
  return std::clamp(1 - Logistic(score * a + b), kLeast, 1 - kLeast);
}

void CouplePairs(int64_t k, const double* pairs, double* work, double* p) {
  double *q = work, *qp = work + k * k;
  for (int64_t t = 0; t < k; ++t) {
    p[t] = 1.0 / static_cast<double>(k);
    q[t * k + t] = 0;
    for (int64_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += pairs[j * k + t] * pairs[j * k + t];
      q[t * k + j] = -pairs[j * k + t] * pairs[t * k + j];
    }
  }
  const double enough = 0.005 / static_cast<double>(k);
  for (int64_t round = 0; round < std::max<int64_t>(100, k); ++round) {
    double pqp = 0;
    for (int64_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (int64_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
      pqp += p[t] * qp[t];
    }
    double error = 0;
    for (int64_t t = 0; t < k; ++t) error = std::max(error, std::abs(qp[t] - pqp));
    if (!(error >= enough)) return;
    for (int64_t t = 0; t < k; ++t) {
      const double change = (pqp - qp[t]) / q[t * k + t];
      p[t] += change;
      pqp = (pqp + change * (change * q[t * k + t] + 2 * qp[t])) / (1 + change) / (1 + change);
      for (int64_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + change * q[t * k + j]) / (1 + change);
        p[j] /= 1 + change;
      }
    }
  }
}

}  // namespace onward

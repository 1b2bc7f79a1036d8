// SPDX-License-Identifier: Apache-2.0
// What the variants of MatMul and Gemm share: their factories and the last pass of Gemm.
#ifndef ONWARD_CORE_OPS_MATMUL_MATMUL_H_
#define ONWARD_CORE_OPS_MATMUL_MATMUL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/base/parallel.h"
#include "core/device/kernel.h"
#include "core/device/plan/product.h"
#include "core/ops/cpu/scalar_math.h"

namespace onward {

// y = alpha * y + beta * C for rows [begin, end) of y.
template <typename T>
void ScaleAndAdd(const GemmPlan& g, const T* c, T* y, int64_t begin, int64_t end) {
  const T alpha = Convert<T>(g.alpha), beta = Convert<T>(g.beta);
  const bool add = g.has_c && g.beta != 0;
  for (int64_t i = begin; i < end; ++i) {
    T* row = y + i * g.n;
    if (g.alpha != 1) {
      for (int64_t j = 0; j < g.n; ++j) row[j] = WrapMul(row[j], alpha);
    }
    if (!add) continue;
    const T* c_row = c + i * g.c_row;
    if (g.c_column == 0) {
      const T value = WrapMul(beta, c_row[0]);
      for (int64_t j = 0; j < g.n; ++j) row[j] = WrapAdd(row[j], value);
    } else {
      for (int64_t j = 0; j < g.n; ++j) row[j] = WrapAdd(row[j], WrapMul(beta, c_row[j]));
    }
  }
}

template <typename T>
void ScaleAndAdd(const GemmPlan& g, const Tensor* c, Tensor& y) {
  if (g.plain_product() || g.n == 0) return;
  ParallelFor(g.m, 32768 / g.n + 1, [&](int64_t begin, int64_t end) {
    ScaleAndAdd(g, c == nullptr ? nullptr : c->data<T>(), y.data<T>(), begin, end);
  });
}

void RegisterDetKernels(KernelTable& table);  // Det, DetGrad

absl::StatusOr<Kernel> MakeDnnlMatMul(const KernelRequest& request);
absl::StatusOr<Kernel> MakeDnnlGemm(const KernelRequest& request);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_MATMUL_MATMUL_H_

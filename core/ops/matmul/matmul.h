// SPDX-License-Identifier: Apache-2.0
// What the variants of MatMul and Gemm share: operands reduced to a batch of
// matrices, and the last pass of Gemm.
#ifndef ONWARD_CORE_OPS_MATMUL_MATMUL_H_
#define ONWARD_CORE_OPS_MATMUL_MATMUL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/parallel.h"
#include "core/base/shape.h"
#include "core/device/kernel.h"
#include "core/ops/cpu/scalar_math.h"

namespace onward {

// A batch of products [m, k] x [k, n]. Batch axes that both operands treat
// alike are merged; a batch of A against a single B becomes more rows of A.
struct MatMulPlan {
  struct Axis {
    int64_t size;
    bool a_repeats, b_repeats;  // the operand has one matrix for all positions
  };
  Shape result;
  int64_t m = 1, n = 1, k = 1;
  std::vector<Axis> batch;  // outermost first; sizes above 1

  int64_t batches() const;
  // Which matrix of A and of B makes product i of the result.
  int64_t MatrixOfA(int64_t i) const;
  int64_t MatrixOfB(int64_t i) const;
};
absl::StatusOr<MatMulPlan> PlanMatMul(const Node& node, const Shape& a, const Shape& b);

// Y = alpha * A' * B' + beta * C, with C broadcast to [m, n].
struct GemmPlan {
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false, has_c = false;
  float alpha = 1, beta = 1;
  int64_t c_row = 0, c_column = 0;  // strides of C; 0 where it repeats

  bool plain_product() const { return alpha == 1 && (!has_c || beta == 0); }
};
absl::StatusOr<GemmPlan> PlanGemm(const KernelRequest& request);

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

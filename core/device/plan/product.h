// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm with concrete shapes: operands reduced to a batch of matrices.
#ifndef ONWARD_CORE_DEVICE_PLAN_PRODUCT_H_
#define ONWARD_CORE_DEVICE_PLAN_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/shape.h"
#include "core/device/kernel.h"

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

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_PRODUCT_H_

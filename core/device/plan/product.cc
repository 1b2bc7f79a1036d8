// SPDX-License-Identifier: Apache-2.0
#include "core/device/plan/product.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {

int64_t MatMulPlan::batches() const {
  int64_t count = 1;
  for (const Axis& axis : batch) count *= axis.size;
  return count;
}

int64_t MatMulPlan::MatrixOfA(int64_t i) const {
  int64_t index = 0, stride = 1;
  for (auto axis = batch.rbegin(); axis != batch.rend(); ++axis) {
    if (!axis->a_repeats) {
      index += i % axis->size * stride;
      stride *= axis->size;
    }
    i /= axis->size;
  }
  return index;
}

int64_t MatMulPlan::MatrixOfB(int64_t i) const {
  int64_t index = 0, stride = 1;
  for (auto axis = batch.rbegin(); axis != batch.rend(); ++axis) {
    if (!axis->b_repeats) {
      index += i % axis->size * stride;
      stride *= axis->size;
    }
    i /= axis->size;
  }
  return index;
}

absl::StatusOr<MatMulPlan> PlanMatMul(const Node& node, const Shape& a, const Shape& b) {
  const auto mismatch = [&] {
    return NodeError(node, absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(),
                                        " cannot be multiplied"));
  };
  if (a.rank() == 0 || b.rank() == 0) return mismatch();
  MatMulPlan plan;
  plan.k = a[a.rank() - 1];
  if (b[std::max(b.rank() - 2, 0)] != plan.k) return mismatch();
  if (a.rank() > 1) plan.m = a[a.rank() - 2];
  if (b.rank() > 1) plan.n = b[b.rank() - 1];
  const int batch_a = std::max(a.rank() - 2, 0), batch_b = std::max(b.rank() - 2, 0);
  const int rank = std::max(batch_a, batch_b);
  for (int i = 0; i < rank; ++i) {
    const int64_t da = i < rank - batch_a ? 1 : a[i - (rank - batch_a)];
    const int64_t db = i < rank - batch_b ? 1 : b[i - (rank - batch_b)];
    if (da != db && da != 1 && db != 1) return mismatch();
    const int64_t size = da == 1 ? db : da;
    plan.result.push_back(size);
    if (size == 1) continue;
    const MatMulPlan::Axis axis{size, da == 1, db == 1};
    if (!plan.batch.empty() && plan.batch.back().a_repeats == axis.a_repeats &&
        plan.batch.back().b_repeats == axis.b_repeats) {
      plan.batch.back().size *= size;
    } else {
      plan.batch.push_back(axis);
    }
  }
  if (a.rank() > 1) plan.result.push_back(plan.m);
  if (b.rank() > 1) plan.result.push_back(plan.n);
  for (const Shape& s : {plan.result, Shape{plan.k, plan.n}, Shape{plan.m, plan.k}}) {
    if (!CheckedElements(s.dims()).ok()) {
      return NodeError(node, absl::StrCat("the result ", s.ToString(), " has too many elements"));
    }
  }
  if (!plan.batch.empty() && plan.batch.back().b_repeats) {
    plan.m *= plan.batch.back().size;
    plan.batch.pop_back();
  }
  return plan;
}

absl::StatusOr<GemmPlan> PlanGemm(const KernelRequest& r) {
  const Shape &a = r.in(0), &b = r.in(1);
  if (a.rank() != 2 || b.rank() != 2) {
    return NodeError(r.node, absl::StrCat("A and B must be matrices, got shapes ", a.ToString(),
                                          " and ", b.ToString()));
  }
  GemmPlan g;
  g.trans_a = r.node.Int("transA", 0) != 0;
  g.trans_b = r.node.Int("transB", 0) != 0;
  g.alpha = r.node.Float("alpha", 1);
  g.beta = r.node.Float("beta", 1);
  g.m = a[g.trans_a ? 1 : 0];
  g.k = a[g.trans_a ? 0 : 1];
  g.n = b[g.trans_b ? 0 : 1];
  if (b[g.trans_b ? 1 : 0] != g.k) {
    return NodeError(r.node, absl::StrCat("A ", a.ToString(), g.trans_a ? " transposed" : "",
                                          " and B ", b.ToString(), g.trans_b ? " transposed" : "",
                                          " cannot be multiplied"));
  }
  if (!CheckedElements({g.m, g.n}).ok()) {
    return NodeError(r.node, "the result has too many elements");
  }
  if (r.inputs[1].dtype != r.inputs[0].dtype ||
      (r.HasInput(2) && r.inputs[2].dtype != r.inputs[0].dtype)) {
    return NodeError(r.node, "A, B and C must have the same element type");
  }
  g.has_c = r.HasInput(2);
  if (!g.has_c) return g;
  const Shape& c = r.in(2);
  const int64_t rows = c.rank() < 2 ? 1 : c[0];
  const int64_t columns = c.rank() == 0 ? 1 : c[c.rank() - 1];
  if (c.rank() > 2 || (rows != 1 && rows != g.m) || (columns != 1 && columns != g.n)) {
    return NodeError(r.node, absl::StrCat("C of shape ", c.ToString(), " does not broadcast to [",
                                          g.m, ", ", g.n, "]"));
  }
  g.c_row = rows == 1 ? 0 : columns;
  g.c_column = columns == 1 ? 0 : 1;
  return g;
}

}  // namespace onward

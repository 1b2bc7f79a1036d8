// SPDX-License-Identifier: Apache-2.0
// A tensor seen as [outer, n, inner] by operators that reduce one axis (n).
// With inner = 1 they run vectors along the axis, row by row; otherwise vectors
// hold neighbouring columns.
#ifndef ONWARD_CORE_OPS_CPU_AXIS_VIEW_H_
#define ONWARD_CORE_OPS_CPU_AXIS_VIEW_H_

#include <algorithm>
#include <cstdint>

#include "core/base/parallel.h"
#include "core/base/shape.h"
#include "core/ops/cpu/vec.h"

namespace onward {

struct AxisView {
  int64_t outer = 1, n = 1, inner = 1;

  AxisView() = default;
  AxisView(const Shape& shape, int axis)
      : outer(shape.elements(0, axis)),
        n(shape[axis]),
        inner(shape.elements(axis + 1, shape.rank())) {}

  // Where the columns starting at (o, column) begin; rows have column 0.
  int64_t Offset(int64_t o, int64_t column) const { return o * n * inner + column; }
};

// Elements worth a thread of their own where each needs an exponential or so.
inline constexpr int64_t kAxisGrain = 4096;

// Calls row(o) for each row of a view with inner = 1.
template <typename Row>
void ForRows(const AxisView& v, const Row& row) {
  ParallelFor(v.outer, kAxisGrain / std::max<int64_t>(v.n, 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) row(o);
  });
}

// Calls columns(o, column, count) for each group of up to kLanes<T> columns.
template <typename T, typename Columns>
void ForColumns(const AxisView& v, const Columns& columns) {
  const int64_t groups = (v.inner + kLanes<T> - 1) / kLanes<T>;
  const int64_t grain = kAxisGrain / std::max<int64_t>(v.n * kLanes<T>, 1) + 1;
  ParallelFor(v.outer * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t column = t % groups * kLanes<T>;
      columns(t / groups, column, static_cast<int>(std::min<int64_t>(kLanes<T>, v.inner - column)));
    }
  });
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_AXIS_VIEW_H_

// SPDX-License-Identifier: Apache-2.0
// The geometry of a reduction: which elements of a row-major tensor belong to
// which element of the result, as contiguous runs.
#ifndef ONWARD_CORE_DEVICE_PLAN_REDUCE_H_
#define ONWARD_CORE_DEVICE_PLAN_REDUCE_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/shape.h"

namespace onward {

// A grid of positions; position i counts the last dimension fastest.
struct StridedGrid {
  absl::InlinedVector<int64_t, 4> dims, strides;  // outermost first

  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
  int64_t Offset(int64_t i) const {
    int64_t offset = 0;
    for (int d = static_cast<int>(dims.size()) - 1; d > 0; --d) {
      offset += i % dims[d] * strides[d];
      i /= dims[d];
    }
    return dims.empty() ? 0 : offset + i * strides[0];
  }
};

// Neighbouring dimensions that are all kept or all reduced are one, and
// dimensions of size 1 are gone. The innermost is the run; the others make up
// two grids of runs.
struct ReducePlan {
  Shape shape;          // of the result
  int64_t outputs = 1;  // elements of the result
  int64_t count = 1;    // elements of the data per element of the result
  bool run_reduced = false;
  int64_t run = 1;
  StridedGrid kept, reduced;
};

// `axes` within [-rank, rank), in any order.
absl::StatusOr<ReducePlan> PlanReduce(const Shape& data, absl::Span<const int64_t> axes,
                                      bool keepdims);

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_REDUCE_H_

// SPDX-License-Identifier: Apache-2.0
// Numpy broadcasting as a walk over contiguous runs. Dimensions that all
// operands treat alike are merged, so that the usual cases (equal shapes, a
// scalar, a bias on the last axis, [C,1,1] on NCHW) have one or few long runs,
// in which an operand either advances with the output or stays on one element.
#ifndef ONWARD_CORE_DEVICE_PLAN_BROADCAST_H_
#define ONWARD_CORE_DEVICE_PLAN_BROADCAST_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/shape.h"

namespace onward {

struct BroadcastPlan {
  using Indices = absl::InlinedVector<int64_t, 4>;

  Shape shape;           // of the result
  int64_t elements = 0;  // of the result
  int64_t run = 1;       // length of the innermost merged dimension
  Indices outer;         // the other merged dimensions, outermost first
  // Per operand: strides of the outer dimensions, and whether the operand stays
  // on one element within a run.
  std::vector<Indices> strides;
  std::vector<char> repeats;

  // Calls body(offsets, position, n) for each run, or part of one, that makes up
  // the result's elements [begin, end): offsets[k] is where operand k starts.
  template <typename Body>
  void Walk(int64_t begin, int64_t end, const Body& body) const;
};

absl::StatusOr<BroadcastPlan> PlanBroadcast(absl::Span<const Shape> operands);

template <typename Body>
void BroadcastPlan::Walk(int64_t begin, int64_t end, const Body& body) const {
  if (begin >= end) return;
  const int operands = static_cast<int>(strides.size());
  const int rank = static_cast<int>(outer.size());
  Indices index(rank), start(operands), offsets(operands);
  int64_t row = begin / run;
  int64_t column = begin % run;
  for (int d = rank - 1; d >= 0; --d) {
    index[d] = row % outer[d];
    row /= outer[d];
    for (int k = 0; k < operands; ++k) start[k] += index[d] * strides[k][d];
  }
  while (begin < end) {
    const int64_t n = std::min(run - column, end - begin);
    for (int k = 0; k < operands; ++k) offsets[k] = start[k] + (repeats[k] ? 0 : column);
    body(offsets.data(), begin, n);
    begin += n;
    column = 0;
    for (int d = rank - 1; d >= 0; --d) {
      for (int k = 0; k < operands; ++k) start[k] += strides[k][d];
      if (++index[d] < outer[d]) break;
      for (int k = 0; k < operands; ++k) start[k] -= outer[d] * strides[k][d];
      index[d] = 0;
    }
  }
}

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_BROADCAST_H_

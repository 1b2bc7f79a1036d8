// SPDX-License-Identifier: Apache-2.0
// Which scale and zero point belong to which element: one for all, one per index of an axis, or
// one per block of an axis.
#ifndef ONWARD_CORE_OPS_QUANTIZE_GRANULARITY_H_
#define ONWARD_CORE_OPS_QUANTIZE_GRANULARITY_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/kernel.h"

namespace onward {

struct Granularity {
  // x in runs of `run` elements; those of run r have the scales from Scale(r) on, one each where
  // they advance, and otherwise the same.
  int64_t run = 1;
  bool advances = false;
  int64_t elements = 0;

  int64_t Scale(int64_t r) const {
    if (blocked) return (r / axis * blocks + r % axis / block) * width;
    return advances ? 0 : r % axis;
  }

  // Calls f(first element, n, first scale) for elements [begin, end).
  template <typename F>
  void ForRuns(int64_t begin, int64_t end, const F& f) const {
    while (begin < end) {
      const int64_t r = begin / run, inside = begin % run;
      const int64_t n = std::min(run - inside, end - begin);
      f(begin, n, Scale(r) + (advances ? inside : 0));
      begin += n;
    }
  }

  bool blocked = false;
  // Runs along the axis, how many share their scales, and how many scales stand together.
  int64_t axis = 1, block = 1, blocks = 1, width = 1;
};

// From the shapes of x and of its scales, with the node's axis and block_size.
absl::StatusOr<Granularity> GranularityOf(const Node& node, const Shape& x, const Shape& scale);

// The same for a zero point: its shape is the scale's.
absl::Status CheckZeroPoint(const KernelRequest& request, int scale, int zero);

// Any numbers as floats.
std::vector<float> FloatsOf(const Tensor& t);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_GRANULARITY_H_

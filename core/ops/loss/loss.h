// SPDX-License-Identifier: Apache-2.0
// What the loss kernels and their gradients share: shapes, labels, weights.
#ifndef ONWARD_CORE_OPS_LOSS_LOSS_H_
#define ONWARD_CORE_OPS_LOSS_LOSS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/device/kernel.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/axis_view.h"

namespace onward {

enum class Reduction { kNone, kSum, kMean };

// Scores [batch, classes, ...] seen along their axis 1; a position is one
// (batch, inner) pair and has one label.
struct LossShape {
  AxisView view;  // outer: batch, n: classes
  Reduction reduction = Reduction::kMean;
  std::optional<int64_t> ignore_index;

  int64_t classes() const { return view.n; }
  int64_t positions() const { return view.outer * view.inner; }
  // Offset of the score of class 0 at a position; classes are `inner` apart.
  int64_t Offset(int64_t position) const {
    return view.Offset(position / view.inner, position % view.inner);
  }
};

// Checks input `scores`, the labels after it and the optional weights after
// those.
absl::StatusOr<LossShape> LossShapeOf(const KernelRequest& request, int scores);

// Labels in one form, made anew in each run.
struct Labels {
  const int64_t* label;     // per position; -1: ignored
  double total_weight = 0;  // of the positions that are not ignored
};

// Reads and checks the labels into `buffer` (one int64 per position). A label
// outside [0, classes) that is not ignore_index is an error.
template <typename T>
absl::StatusOr<Labels> ReadLabels(const Node& node, const LossShape& shape, const Tensor& labels,
                                  const T* weights, int64_t* buffer);

// Registration of loss_grad.cc.
void RegisterLossGradKernels(KernelTable& table);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_LOSS_LOSS_H_

// SPDX-License-Identifier: Apache-2.0
// What Resize computes: each resized axis is a sparse matrix, so that the operator and its
// gradient are passes with these matrices or with their transposes.
#ifndef ONWARD_CORE_OPS_IMAGE_RESIZE_H_
#define ONWARD_CORE_OPS_IMAGE_RESIZE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/kernel.h"

namespace onward {

// Output o is the sum of weight[k] * input[index[k]] over k in [starts[o], starts[o + 1]).
// Indices rise within an output; weights are not zero.
struct AxisMap {
  int axis = 0;
  int64_t in = 0, out = 0;
  std::vector<int64_t> starts;
  std::vector<int32_t> index;
  std::vector<double> weight;
  // Outputs without taps, which get the extrapolation value; empty: there are none.
  std::vector<int64_t> outside;
};

AxisMap Transposed(const AxisMap& map);

struct ResizePlan {
  Shape shape;                // of the result
  std::vector<AxisMap> maps;  // of the axes that are not passed through, in rising order
};

// Inputs that are not there are null.
struct ResizeInputs {
  const Tensor* roi = nullptr;
  const Tensor* scales = nullptr;
  const Tensor* sizes = nullptr;
};

// The matrices of a Resize node (as of opset 19) for an input of shape `in`.
absl::StatusOr<ResizePlan> PlanResize(const Node& node, const Shape& in,
                                      const ResizeInputs& inputs);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_IMAGE_RESIZE_H_

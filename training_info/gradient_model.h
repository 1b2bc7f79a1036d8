// SPDX-License-Identifier: Apache-2.0
// Models that compute derivatives beside their own outputs.
#ifndef ONWARD_TRAINING_INFO_GRADIENT_MODEL_H_
#define ONWARD_TRAINING_INFO_GRADIENT_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"

namespace onward {

struct GradientModel {
  Model model;
  std::vector<std::string> gradients;  // new outputs, in the order of xs, order by order
};

inline constexpr int64_t kHighestGradientOrder = 16;  // graphs grow with each

// In standard operators: the derivatives of y by each of xs, of the first order up to
// `order`; later orders differentiate the gradient of each x by that x.
absl::StatusOr<GradientModel> MakeGradientModel(const Model& model, const std::string& y,
                                                const std::vector<std::string>& xs, int64_t order,
                                                const Environment& environment);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_GRADIENT_MODEL_H_

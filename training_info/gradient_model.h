// SPDX-License-Identifier: Apache-2.0
// Models that compute derivatives beside their own outputs.
#ifndef ONWARD_TRAINING_INFO_GRADIENT_MODEL_H_
#define ONWARD_TRAINING_INFO_GRADIENT_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/model.h"
#include "environment/environment.h"

namespace onward {

// What to derive by what.
struct GradientRequest {
  // Differentiated: the sum of all their elements. Values of a training graph, such as the
  // loss, too: the result then takes that graph's inputs and outputs these values.
  std::vector<std::string> ys;
  std::vector<std::string> xs;  // inputs, initializers or inner values
  int64_t order = 1;            // beyond 1, the gradient of each x is differentiated by that x
  // y -> what the gradient of y starts from in the place of ones: a value of the model, or else
  // a new input of that name, with the type of y.
  std::map<std::string, std::string> seeds = {};
  // Values past which no gradient is handed on; they count as constants.
  std::vector<std::string> stop = {};
  // Products of the Hessian by all xs with vectors that are new inputs (`A__vector`).
  bool hessian_vector = false;
};

struct GradientModel {
  Model model;
  std::vector<std::string> gradients;  // new outputs, in the order of xs, order by order
  // With hessian_vector: new outputs and inputs, in the order of xs.
  std::vector<std::string> products = {}, vectors = {};
};

inline constexpr int64_t kHighestGradientOrder = 16;  // graphs grow with each

// The model, in standard operators, with the derivatives as further outputs.
absl::StatusOr<GradientModel> MakeGradientModel(const Model& model, const GradientRequest& request,
                                                const Environment& environment);

}  // namespace onward

#endif  // ONWARD_TRAINING_INFO_GRADIENT_MODEL_H_

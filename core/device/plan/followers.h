// SPDX-License-Identifier: Apache-2.0
// What the nodes FusedConv, FusedMatMul, FusedGemm and FusedBatchNormalization state
// beside the operator.
#ifndef ONWARD_CORE_DEVICE_PLAN_FOLLOWERS_H_
#define ONWARD_CORE_DEVICE_PLAN_FOLLOWERS_H_

#include <limits>
#include <optional>
#include <string>

#include "core/graph/graph.h"

namespace onward {

// The input of a convolution or product that is added to the result.
inline constexpr int kResidual = 3;

// Relu and Clip: the result stays within bounds.
struct ActivationBounds {
  bool is_relu;
  float low, high;
  static ActivationBounds None() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return {false, -kInfinity, kInfinity};
  }
};

// Nothing where the node has no activation.
inline std::optional<ActivationBounds> ReadActivation(const Node& node) {
  const std::string activation = node.String("activation", "");
  if (activation == "Relu")
    return ActivationBounds{true, 0, std::numeric_limits<float>::infinity()};
  if (activation != "Clip") return std::nullopt;
  return ActivationBounds{false, node.Float("activation_low", 0), node.Float("activation_high", 0)};
}

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_FOLLOWERS_H_

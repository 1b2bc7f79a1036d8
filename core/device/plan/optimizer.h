// SPDX-License-Identifier: Apache-2.0
// The optimizer steps of ai.onnx.preview.training and ai.onward: their attributes, and where the
// tensors of a node stand. Inputs are R, then T (but for SgdStep), then tensors grouped by kind:
// X1..Xn, G1..Gn, states; outputs X1'..Xn', states'. The formulas are in each device's kernels.
#ifndef ONWARD_CORE_DEVICE_PLAN_OPTIMIZER_H_
#define ONWARD_CORE_DEVICE_PLAN_OPTIMIZER_H_

#include "absl/status/statusor.h"
#include "core/device/kernel.h"

namespace onward {

struct OptimizerPlaces {
  int first;    // index of X1
  int tensors;  // n
  int X(int i) const { return first + i; }
  int G(int i) const { return first + tensors + i; }
  int State(int k, int i) const { return first + (2 + k) * tensors + i; }
  int NewX(int i) const { return i; }
  int NewState(int k, int i) const { return (1 + k) * tensors + i; }
};

// From the numbers of inputs and outputs alone.
absl::StatusOr<OptimizerPlaces> PlacesOfOptimizer(const KernelRequest& request, int states,
                                                  bool has_t);
// With types and shapes checked.
absl::StatusOr<OptimizerPlaces> PlanOptimizer(const KernelRequest& request, int states, bool has_t);

struct SgdAttributes {
  static constexpr int kStates = 0;
  static constexpr bool kHasT = false;
  double weight_decay;

  static absl::StatusOr<SgdAttributes> Make(const Node& node);
};

struct AdagradAttributes {
  static constexpr int kStates = 1;
  static constexpr bool kHasT = true;
  double decay_factor, epsilon, norm;

  static absl::StatusOr<AdagradAttributes> Make(const Node& node);
};

struct MomentumAttributes {
  static constexpr int kStates = 1;
  static constexpr bool kHasT = true;
  double alpha, beta, norm;
  bool nesterov;

  static absl::StatusOr<MomentumAttributes> Make(const Node& node);
};

struct AdamAttributes {
  static constexpr int kStates = 2;
  static constexpr bool kHasT = true;
  double alpha, beta, epsilon, norm, norm_post;

  static absl::StatusOr<AdamAttributes> Make(const Node& node);
};

struct AdamWAttributes {
  static constexpr int kStates = 2;
  static constexpr bool kHasT = true;
  double alpha, beta, epsilon, eps, weight_decay;

  static absl::StatusOr<AdamWAttributes> Make(const Node& node);
};

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_OPTIMIZER_H_

// SPDX-License-Identifier: Apache-2.0
// The attributes and sizes of RNN, GRU and LSTM and of their gradients, read and checked.
//
// T steps, batch B, D directions, I inputs, H hidden units. Beside the standard
// operators there are, in ai.onward, <op>Training, which gives what the backward
// pass needs as further outputs, and <op>Grad (docs/functions.md). What is kept:
//   gates [D, T, B, width * H]  the arguments of the gates' activations, in the
//                               order of W; GRU with linear_before_reset also has
//                               the product of R and the last state
//   cells [D, T, B, H]          C of each step (LSTM)
// Both are zero where a sequence has ended.
#ifndef ONWARD_CORE_DEVICE_PLAN_RNN_H_
#define ONWARD_CORE_DEVICE_PLAN_RNN_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/kernel.h"
#include "core/device/plan/rnn_activation.h"

namespace onward {

struct RnnActivation {
  using Kind = RnnActivationKind;
  Kind kind = Kind::kTanh;
  float alpha = 0, beta = 0;
  bool has_alpha = false, has_beta = false;  // which of them the formula reads

  // By the name in the attribute `activations` (letter case is ignored), with
  // the default alpha and beta.
  static std::optional<RnnActivation> Named(std::string_view name);
};

// Inputs of all three forms of an operator; C0 and P are LSTM's only.
struct RnnInput {
  enum { kX, kW, kR, kB, kLengths, kH0, kC0, kP };
};

struct RnnPlan {
  enum class Kind { kRnn, kGru, kLstm };
  enum class Form { kStandard, kTraining, kGrad };
  Kind kind = Kind::kRnn;
  Form form = Form::kStandard;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
  int64_t gates = 1;         // 1, 3 or 4
  int64_t width = 1;         // hidden-sized pieces of a row of what is kept
  bool batch_major = false;  // layout 1
  bool reverse = false;      // the first direction
  bool linear_before_reset = false, input_forget = false;
  double clip = 0;                         // infinity: none
  std::vector<RnnActivation> activations;  // direction by direction

  bool lstm() const { return kind == Kind::kLstm; }
  bool gru() const { return kind == Kind::kGru; }
  // Standard inputs: 8 for LSTM, else 6.
  int standard_inputs() const { return lstm() ? 8 : 6; }
  int standard_outputs() const { return lstm() ? 3 : 2; }
  const RnnActivation& activation(int64_t direction, int i) const {
    return activations[direction * (activations.size() / directions) + i];
  }
  // The step that a direction takes as its s-th.
  int64_t Step(int64_t direction, int64_t s) const {
    return reverse || direction == 1 ? steps - 1 - s : s;
  }
  // The step before step t, -1 or `steps` at the border.
  int64_t Before(int64_t direction, int64_t t) const {
    return reverse || direction == 1 ? t + 1 : t - 1;
  }
  // Rows of H elements in Y, in the states (initial_h, Y_h, ...) and in what is
  // kept.
  int64_t YRow(int64_t direction, int64_t t, int64_t b) const {
    return batch_major ? (b * steps + t) * directions + direction
                       : (t * directions + direction) * batch + b;
  }
  int64_t StateRow(int64_t direction, int64_t b) const {
    return batch_major ? b * directions + direction : direction * batch + b;
  }
  int64_t KeptRow(int64_t direction, int64_t t, int64_t b) const {
    return (direction * steps + t) * batch + b;
  }

  Shape YShape() const;
  Shape StateShape() const;
  Shape GatesShape() const { return {directions, steps, batch, width * hidden}; }
  Shape CellsShape() const { return {directions, steps, batch, hidden}; }
};

// Reads and checks the attributes and the standard inputs of any form.
absl::StatusOr<RnnPlan> PlanRnn(const KernelRequest& request);

// The length of each sequence of the batch; empty: all have every step.
absl::StatusOr<std::vector<int64_t>> SequenceLengths(const RnnPlan& plan, const Node& node,
                                                     const Tensor* lengths);

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_RNN_H_

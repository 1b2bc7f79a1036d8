// SPDX-License-Identifier: Apache-2.0
// Bodies of the Training and Grad forms of RNN, GRU and LSTM (docs/functions.md)
// have this in common: what a call says, and its values step by step. Where a
// value of each step depends on the last, the body is written out for every
// step, or is a Scan where the number of steps is not known.
#ifndef ONWARD_AUTOGRAD_FUNCTIONS_RNN_H_
#define ONWARD_AUTOGRAD_FUNCTIONS_RNN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/graph/builder.h"
#include "core/graph/graph.h"

namespace onward {

// One entry of the attribute `activations`, in small letters.
struct RnnFunction {
  std::string name;
  double alpha = 0, beta = 0;
  std::optional<double> clip;  // the argument is limited to [-clip, clip]

  // f(x), and f'(x) where y = f(x).
  Expr Value(const Expr& x) const;
  Expr Slope(const Expr& x, const Expr& y) const;
};

// What a call says, whatever its form.
struct RnnCall {
  enum class Kind { kRnn, kGru, kLstm };
  Kind kind = Kind::kRnn;
  int64_t directions = 1, steps = -1;  // -1: known when it runs
  bool reverse = false, batch_major = false, linear_before_reset = false, input_forget = false;
  std::vector<RnnFunction> functions;  // direction by direction

  bool lstm() const { return kind == Kind::kLstm; }
  bool gru() const { return kind == Kind::kGru; }
  int gates() const { return lstm() ? 4 : gru() ? 3 : 1; }
  int width() const { return gates() + (linear_before_reset ? 1 : 0); }
  int standard_inputs() const { return lstm() ? 8 : 6; }
  int standard_outputs() const { return lstm() ? 3 : 2; }
  bool reversed(int64_t direction) const { return reverse || direction == 1; }
  const RnnFunction& function(int64_t direction, int i) const {
    return functions[direction * (functions.size() / directions) + i];
  }
  // The step that a direction takes as its s-th.
  int64_t Step(int64_t direction, int64_t s) const {
    return reversed(direction) ? steps - 1 - s : s;
  }
};

// Reads the attributes; nullopt, with an error kept, on those that are wrong.
std::optional<RnnCall> ReadRnnCall(GraphBuilder& b, const Node& call);
// The same, and the number of steps from X where it is known.
std::optional<RnnCall> ReadRnnCall(GraphBuilder& b, const Node& call, const Expr& x);

// The standard inputs for one direction, the steps first. What a call omits is
// undefined, but states are zeros.
struct RnnValues {
  Expr x;       // [T, B, I]
  Expr w, r;    // [gates*H, I], [gates*H, H]
  Expr wb, rb;  // [gates*H]
  Expr h0, c0;  // [B, H]
  Expr p;       // [3*H]
  Expr y;       // [T, B, H]
  Expr last;    // [T, B, H]: h before each step
  Expr active;  // bool [T, B, 1]: the sequence has not ended
};
RnnValues ValuesOf(const RnnCall& rnn, const std::vector<Expr>& in, const Expr& y,
                   int64_t direction);

// What one step sees: states, slices of what is scanned, and values around the steps.
struct RnnStep {
  std::vector<Expr> states, slices;
  absl::FunctionRef<Expr(const Expr&)> around;
};
// States after the last step, and what every step gave, along a new first axis.
struct RnnSteps {
  std::vector<Expr> states, results;
};
// Runs `each` (new states, then results) step by step in the order of a direction, or
// against it. Slices are along the first axis; what is undefined stays so.
RnnSteps ForSteps(const RnnCall& rnn, int64_t direction, bool backward, std::vector<Expr> states,
                  const std::vector<Expr>& scanned,
                  absl::FunctionRef<std::vector<Expr>(const RnnStep&)> each);

// Zeros like a state of y.
Expr NoState(const RnnCall& rnn, const Expr& y);
// x where the sequence has not ended, else 0.
Expr Masked(const Expr& x, const Expr& active);
// Element i of the first axis, which goes away.
Expr At(const Expr& x, int64_t i);
// n equal parts of the last axis.
std::vector<Expr> Parts(const Expr& x, int n);
// Along a new first axis.
Expr Stack(const std::vector<Expr>& xs);
Expr Transposed(const Expr& matrix);

// Gives the gradients of the standard inputs, see docs/functions.md.
std::vector<Expr> RnnGradBody(GraphBuilder& b, const Node& call, const std::vector<Expr>& in);

}  // namespace onward

#endif  // ONWARD_AUTOGRAD_FUNCTIONS_RNN_H_

// SPDX-License-Identifier: Apache-2.0
// A body that runs again and again: what it is called with and what it leaves.
#ifndef ONWARD_CORE_RUNTIME_CONTROL_BODY_H_
#define ONWARD_CORE_RUNTIME_CONTROL_BODY_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/runtime/control/control.h"
#include "core/runtime/devices/queues.h"
#include "core/runtime/execute/program.h"

namespace onward {

class Body {
 public:
  Body(const Control& control, int which);

  int inputs() const { return own_inputs_; }  // without the captured ones
  int outputs() const { return static_cast<int>(graph().outputs.size()); }
  const Graph& graph() const { return *body_.graph; }

  // Runs on `own` inputs and on what the step's call brings along.
  absl::StatusOr<absl::Span<const Value>> Run(absl::Span<const Value* const> own,
                                              const ValueCall& call, const RunOptions& options);
  // The type of output `i` as far as it can be told without running.
  ValueType OutputType(int i, absl::Span<const Value* const> own, const ValueCall& call) const;

 private:
  const Control& control_;
  const Control::Body& body_;
  int own_inputs_;
  Program program_;
  std::vector<const Value*> given_;
};

// Values that one iteration leaves to the next: copies, since the body's memory is used again.
class CarriedValues {
 public:
  // `queues`: of the devices that values may be on; null where all are on the host.
  CarriedValues(absl::Span<const Value* const> initial, Queues* queues);
  size_t size() const { return now_.size(); }
  const Value& operator[](size_t i) const { return now_[i].value; }
  absl::Status Leave(size_t i, const Value& value);  // for the next iteration
  void Advance() { now_.swap(next_); }

 private:
  struct Slot {
    Value value;
    bool own = false;  // memory that nobody else sees
  };
  Queues* queues_;
  std::vector<Slot> now_, next_;
};

// Sets what an iteration runs with: its draws differ from those of the others. An error where
// somebody has asked to stop (a body may have no step that asks), or where the iterations before
// have left too much.
absl::Status BeginIteration(const Control& control, const RunOptions& options, int64_t iteration,
                            const CarriedValues& carried, RunOptions* run);

// Equal tensors, one from each iteration, stacked along a new first axis, where the first one is.
class StackedOutput {
 public:
  // `expected`: how many will come, if known (otherwise -1); `limit`: bytes there may be.
  StackedOutput(int64_t expected, size_t limit, Queues* queues)
      : expected_(expected), limit_(limit), queues_(queues) {}
  absl::Status Add(const Value& value);
  // `otherwise`: the type of one where there was none; what is unknown of it counts as 0.
  absl::StatusOr<Tensor> Take(absl::FunctionRef<ValueType()> otherwise);

 private:
  absl::Status Grow(int64_t capacity);

  bool Fits(int64_t capacity) const;
  absl::Status CopyTo(const Tensor& from, int64_t elements, Tensor* to, int64_t at) const;

  int64_t expected_;
  size_t limit_;
  Queues* queues_;
  Tensor stacked_;  // of `capacity` along the first axis
  int64_t count_ = 0, capacity_ = 0;
};

// What the iterations of one run leave: values for the next one, and slices to be stacked.
class Iterations {
 public:
  // `expected`: how many there will be, if known (otherwise -1).
  Iterations(const Control& control, absl::Span<const Value* const> initial, int stacked,
             int64_t expected)
      : node_(control.node),
        queues_(control.options.queues.get()),
        carried_(initial, queues_),
        stacks_(stacked, StackedOutput(expected, control.options.device->memory_limit(), queues_)) {
  }
  const CarriedValues& carried() const { return carried_; }
  // Takes what the body gave: carried values, then slices.
  absl::Status Take(absl::Span<const Value> results);
  // Hands all of it out. Of stacked output k, `type(k)` is the type of one slice, should there
  // be none, and `place(k, tensor)` makes the output of the stack.
  using SliceType = absl::FunctionRef<ValueType(int k)>;
  using Place = absl::FunctionRef<absl::StatusOr<Tensor>(int k, Tensor stacked)>;
  absl::Status Give(absl::Span<Value* const> outputs, SliceType type, Place place);

 private:
  absl::Status Failed(int stacked, const absl::Status& status) const;

  const Node& node_;
  Queues* queues_;
  CarriedValues carried_;
  std::vector<StackedOutput> stacks_;
};

// The same elements with axis `from` moved to place `to`.
absl::StatusOr<Tensor> MoveAxis(const Tensor& tensor, int from, int to);

// The same with memory of its own, wherever it is.
absl::StatusOr<Value> OwnedValue(const Value& value, Queues* queues);

// A scalar of type bool or int64 in whatever shape it came.
absl::StatusOr<bool> AsBool(const Node& node, const Value& value, const char* what);
absl::StatusOr<int64_t> AsInt(const Node& node, const Value& value, const char* what);

}  // namespace onward

#endif  // ONWARD_CORE_RUNTIME_CONTROL_BODY_H_

// SPDX-License-Identifier: Apache-2.0
// If: one of two bodies.
#include <deque>

#include "absl/algorithm/container.h"
#include "core/base/status.h"
#include "core/runtime/control/body.h"

namespace onward {
namespace {

class Branch : public ControlFlow {
 public:
  explicit Branch(const Control& control)
      : node_(control.node), queues_(control.options.queues.get()) {
    bodies_.emplace_back(control, 0);
    bodies_.emplace_back(control, 1);
  }

  absl::Status Run(const ValueCall& call, const RunOptions& options) override {
    if (call.inputs.empty() || call.inputs[0] == nullptr) {
      return NodeError(node_, "has no condition");
    }
    ONWARD_ASSIGN_OR_RETURN(const bool condition, AsBool(node_, *call.inputs[0], "its condition"));
    RunOptions run = options;
    run.writer = nullptr;
    ONWARD_ASSIGN_OR_RETURN(absl::Span<const Value> results,
                            bodies_[condition ? 0 : 1].Run({}, call, run));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.outputs[i] == nullptr) continue;
      *call.outputs[i] = results[i];
      // The body's own memory lasts; what it hands on as it got it need not.
      if (!IsInput(results[i], call)) continue;
      ONWARD_ASSIGN_OR_RETURN(*call.outputs[i], OwnedValue(results[i], queues_));
    }
    return absl::OkStatus();
  }

 private:
  static bool IsInput(const Value& result, const ValueCall& call) {
    const Tensor* t = result.tensor();
    return t != nullptr && absl::c_any_of(call.inputs, [&](const Value* input) {
             const Tensor* other = input == nullptr ? nullptr : input->tensor();
             return other != nullptr && other->raw() == t->raw();
           });
  }

  const Node& node_;
  Queues* queues_;
  std::deque<Body> bodies_;  // then, else
};

}  // namespace

std::unique_ptr<ControlFlow> MakeBranch(const Control& control) {
  return std::make_unique<Branch>(control);
}

}  // namespace onward

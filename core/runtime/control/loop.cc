// SPDX-License-Identifier: Apache-2.0
// Loop: a body run up to M times, and as long as a condition holds.
//   inputs   M (optional), cond (optional), v_0 ...
//   body     (iteration, cond, v ...) -> (cond, v ..., scanned ...)
//   outputs  v ..., scanned ... stacked along a new first axis
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/runtime/control/body.h"
#include "core/runtime/control/settles.h"

namespace onward {
namespace {

// Exporters declare the iteration and the condition as scalars or as vectors of one.
Shape DeclaredShape(const Graph& body, int input) {
  return body.inputs[input].type.rank() == 1 ? Shape{1} : Shape{};
}

class Loop : public ControlFlow {
 public:
  explicit Loop(const Control& control)
      : control_(control),
        node_(control.node),
        body_(control, 0),
        settles_at_(ConditionSettlesAt(body_.graph(), body_.inputs())) {
    if (body_.inputs() < kFirstState) return;
    iteration_ = Tensor(DType::kInt64, DeclaredShape(body_.graph(), 0));
    condition_ = Tensor(DType::kBool, DeclaredShape(body_.graph(), 1));
  }

  absl::Status Run(const ValueCall& call, const RunOptions& options) override {
    const int states = static_cast<int>(node_.inputs.size()) - kFirstState;
    const int scanned = body_.outputs() - 1 - states;
    if (states < 0 || scanned < 0 || body_.inputs() != kFirstState + states ||
        static_cast<int>(call.outputs.size()) > states + scanned) {
      return NodeError(
          node_, absl::StrCat("has ", node_.inputs.size(), " inputs and ", call.outputs.size(),
                              " outputs, its body ", body_.inputs(), " and ", body_.outputs()));
    }
    int64_t most = kNoTripCount;
    bool condition = true;
    if (call.inputs[0] != nullptr) {
      ONWARD_ASSIGN_OR_RETURN(most, AsInt(node_, *call.inputs[0], "the number of iterations"));
    }
    if (call.inputs[1] != nullptr) {
      ONWARD_ASSIGN_OR_RETURN(condition, AsBool(node_, *call.inputs[1], "its condition"));
    }
    Iterations iterations(control_, call.inputs.subspan(kFirstState, states), scanned,
                          most == kNoTripCount ? -1 : most);
    std::vector<const Value*> own(body_.inputs());
    RunOptions run = options;
    for (int64_t i = 0; i < most && condition; ++i) {
      PointAt(i, condition, iterations.carried(), &own);
      ONWARD_RETURN_IF_ERROR(BeginIteration(control_, options, i, iterations.carried(), &run));
      ONWARD_ASSIGN_OR_RETURN(absl::Span<const Value> results, body_.Run(own, call, run));
      ONWARD_ASSIGN_OR_RETURN(const Value left, OnHost(results[0]));
      ONWARD_ASSIGN_OR_RETURN(condition, AsBool(node_, left, "the condition that its body leaves"));
      if (condition && most == kNoTripCount && settles_at_.has_value() && i >= *settles_at_) {
        return NodeError(node_,
                         "never ends: it has no trip count, and the condition that its body leaves "
                         "stays true; give it a trip count (input M), or let the body compute the "
                         "condition from the iteration or from a value that it carries on");
      }
      ONWARD_RETURN_IF_ERROR(iterations.Take(results.subspan(1)));
    }
    const auto type_of_slice = [&](int k) {
      PointAt(0, condition, iterations.carried(), &own);
      return body_.OutputType(1 + states + k, own, call);
    };
    return iterations.Give(call.outputs, type_of_slice,
                           [](int, Tensor stacked) -> absl::StatusOr<Tensor> { return stacked; });
  }

 private:
  static constexpr int kFirstState = 2;
  // Exporters of loops that only a condition ends write the largest number there is.
  static constexpr int64_t kNoTripCount = std::numeric_limits<int64_t>::max();

  // A condition that a body within the body has left on a device.
  absl::StatusOr<Value> OnHost(const Value& value) const {
    const Tensor* t = value.tensor();
    if (t == nullptr || t->place() == kHost) return value;
    return control_.options.queues->Fetch(*t);
  }

  void PointAt(int64_t iteration, bool condition, const CarriedValues& carried,
               std::vector<const Value*>* own) {
    *iteration_.tensor()->data<int64_t>() = iteration;
    *condition_.tensor()->data<bool>() = condition;
    (*own)[0] = &iteration_;
    (*own)[1] = &condition_;
    for (size_t k = 0; k < carried.size(); ++k) (*own)[kFirstState + k] = &carried[k];
  }

  const Control& control_;
  const Node& node_;
  Body body_;
  const std::optional<int> settles_at_;
  Value iteration_, condition_;
};

}  // namespace

std::unique_ptr<ControlFlow> MakeLoop(const Control& control) {
  return std::make_unique<Loop>(control);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Scan: a body run once for each slice of its scanned inputs.
//   inputs   state_0 ..., scanned_0 ... (num_scan_inputs of them)
//   body     (state ..., slice ...) -> (state ..., slice ...)
//   outputs  state ..., stacked slices ...
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/runtime/control/body.h"
#include "core/tensor/elements.h"

namespace onward {
namespace {

// Where and in which direction inputs or outputs are scanned.
struct Ways {
  std::vector<int64_t> axes, directions;

  static absl::StatusOr<Ways> Of(const Node& node, const std::string& which, size_t count) {
    Ways ways{node.Ints("scan_" + which + "_axes", std::vector<int64_t>(count, 0)),
              node.Ints("scan_" + which + "_directions", std::vector<int64_t>(count, 0))};
    if (ways.axes.size() != count || ways.directions.size() != count) {
      return NodeError(node, absl::StrCat("scan_", which, "_axes and scan_", which,
                                          "_directions must name ", count, " values"));
    }
    return ways;
  }
  // The axis among `rank`, or -1.
  int Axis(size_t i, int rank) const {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    return axis >= 0 && axis < rank ? static_cast<int>(axis) : -1;
  }
};

class Scan : public ControlFlow {
 public:
  explicit Scan(const Control& control)
      : control_(control),
        node_(control.node),
        limit_(control.options.device->memory_limit()),
        queues_(control.options.queues.get()),
        body_(control, 0) {}

  absl::Status Run(const ValueCall& call, const RunOptions& options) override {
    const int given = static_cast<int>(node_.inputs.size());
    const int64_t scans = node_.Int("num_scan_inputs", 0);
    const int states = given - static_cast<int>(std::clamp<int64_t>(scans, 0, given));
    const int slices = body_.outputs() - states;
    if (scans < 1 || scans > given || body_.inputs() != given || slices < 0 ||
        static_cast<int>(call.outputs.size()) > body_.outputs()) {
      return NodeError(
          node_, absl::StrCat("has ", given, " inputs, of which ", scans, " are scanned, and ",
                              call.outputs.size(), " outputs, its body ", body_.inputs(),
                              " inputs and ", body_.outputs(), " outputs"));
    }
    ONWARD_ASSIGN_OR_RETURN(const Ways in, Ways::Of(node_, "input", scans));
    ONWARD_ASSIGN_OR_RETURN(const Ways out, Ways::Of(node_, "output", slices));
    ONWARD_ASSIGN_OR_RETURN(const std::vector<Tensor> scanned,
                            Scanned(call.inputs.subspan(states, scans), in));
    const int64_t length = scanned[0].shape()[0];
    Iterations iterations(control_, call.inputs.subspan(0, states), slices, length);
    std::vector<Value> slice(scans);
    std::vector<const Value*> own(given);
    RunOptions run = options;
    const auto point = [&] {
      for (int k = 0; k < given; ++k) {
        own[k] = k < states ? &iterations.carried()[k] : &slice[k - states];
      }
    };
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t k = 0; k < scans; ++k) {
        ONWARD_RETURN_IF_ERROR(
            PutSlice(SliceOf(scanned[k], in.directions[k] == 1 ? length - 1 - i : i), &slice[k]));
      }
      point();
      ONWARD_RETURN_IF_ERROR(BeginIteration(control_, options, i, iterations.carried(), &run));
      ONWARD_ASSIGN_OR_RETURN(absl::Span<const Value> results, body_.Run(own, call, run));
      ONWARD_RETURN_IF_ERROR(iterations.Take(results));
    }
    const auto type_of_slice = [&](int k) {
      for (int64_t j = 0; j < scans; ++j) slice[j] = Like(scanned[j]);
      point();
      return body_.OutputType(states + k, own, call);
    };
    return iterations.Give(call.outputs, type_of_slice,
                           [&](int k, const Tensor& stacked) { return Placed(stacked, out, k); });
  }

 private:
  // On a device slices come to the same place, for which the body's work is recorded.
  absl::Status PutSlice(const Tensor& slice, Value* at) const {
    if (slice.place() == kHost) {
      *at = slice;
      return absl::OkStatus();
    }
    if (at->tensor() != nullptr) return queues_->Copy(slice, at->tensor());
    ONWARD_ASSIGN_OR_RETURN(*at, queues_->CopyTo(slice, slice.place()));
    return absl::OkStatus();
  }

  // A slice of a tensor that may have none.
  static Value Like(const Tensor& scanned) {
    return Tensor(scanned.dtype(), Shape(scanned.shape().dims().subspan(1)));
  }

  // The scanned inputs, each with its axis first.
  absl::StatusOr<std::vector<Tensor>> Scanned(absl::Span<const Value* const> inputs,
                                              const Ways& ways) const {
    std::vector<Tensor> tensors;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Tensor* t = inputs[k] == nullptr ? nullptr : inputs[k]->tensor();
      const int axis = t == nullptr ? -1 : ways.Axis(k, t->shape().rank());
      if (axis < 0) {
        return NodeError(node_,
                         absl::StrCat("scans axis ", ways.axes[k], " of ",
                                      inputs[k] == nullptr ? "nothing" : inputs[k]->ToString()));
      }
      ONWARD_ASSIGN_OR_RETURN(Tensor moved, MoveAxis(*t, axis, 0));
      ONWARD_RETURN_IF_ERROR(CheckWholeBytes(moved.dtype(), "what is scanned"));
      if (!tensors.empty() && moved.shape()[0] != tensors[0].shape()[0]) {
        return NodeError(node_, absl::StrCat("scans ", tensors[0].shape()[0], " and ",
                                             moved.shape()[0], " slices at once"));
      }
      tensors.push_back(std::move(moved));
    }
    return tensors;
  }

  // In the wanted direction, along the wanted axis.
  absl::StatusOr<Tensor> Placed(const Tensor& stacked, const Ways& ways, int k) const {
    const int axis = ways.Axis(k, stacked.shape().rank());
    if (axis < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", ways.axes[k], " is not among ", stacked.shape().rank()));
    }
    if (ways.directions[k] == 0) return MoveAxis(stacked, 0, axis);
    StackedOutput reversed(stacked.shape()[0], limit_, queues_);
    for (int64_t i = stacked.shape()[0] - 1; i >= 0; --i) {
      ONWARD_RETURN_IF_ERROR(reversed.Add(SliceOf(stacked, i)));
    }
    ONWARD_ASSIGN_OR_RETURN(Tensor turned, reversed.Take([&] {
      return ValueType::Of(stacked.dtype(), Shape(stacked.shape().dims().subspan(1)));
    }));
    return MoveAxis(turned, 0, axis);
  }

  const Control& control_;
  const Node& node_;
  const size_t limit_;
  Queues* queues_;
  Body body_;
};

}  // namespace

std::unique_ptr<ControlFlow> MakeScan(const Control& control) {
  return std::make_unique<Scan>(control);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/rnn/rnn.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/cuda/request.h"

namespace onward::cuda {
namespace {

CellActivation ActivationOf(const RnnPlan& plan, int64_t direction, size_t i) {
  if (i >= plan.activations.size() / plan.directions) return {};
  const RnnActivation& f = plan.activation(direction, static_cast<int>(i));
  return {static_cast<int>(f.kind), f.alpha, f.beta};
}

CellRows RowsFrom(DType dtype, const void* data, int64_t first, int64_t second, int64_t width) {
  return {const_cast<void*>(Offset(dtype, data, first * width)), (second - first) * width};
}

}  // namespace

absl::StatusOr<RnnPlan> PlanServedRnn(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  const DType dtype = r.inputs[RnnInput::kX].dtype;
  if (dtype != DType::kFloat && dtype != DType::kDouble) return Unserved(r);
  ONWARD_ASSIGN_OR_RETURN(RnnPlan plan, PlanRnn(r));
  if (plan.steps < 1 || plan.batch < 1 || plan.inputs < 1 || plan.hidden < 1) return Unserved(r);
  if (r.HasInput(RnnInput::kLengths)) {
    const ValueSpec& lengths = r.inputs[RnnInput::kLengths];
    if (lengths.dtype != DType::kInt32) return Unserved(r);
    if (lengths.constant != nullptr) {
      ONWARD_RETURN_IF_ERROR(SequenceLengths(plan, r.node, lengths.constant).status());
    }
  }
  return plan;
}

CellStep CellOf(const RnnPlan& plan, int64_t direction, int64_t t, const KernelCall& call) {
  CellStep cell;
  cell.batch = plan.batch;
  cell.hidden = plan.hidden;
  cell.t = t;
  cell.before = plan.Before(direction, t);
  cell.lengths = static_cast<const int32_t*>(In(call, RnnInput::kLengths));
  cell.f = ActivationOf(plan, direction, 0);
  cell.g = ActivationOf(plan, direction, 1);
  cell.h = ActivationOf(plan, direction, 2);
  cell.clip = plan.clip;
  cell.input_forget = plan.input_forget ? 1 : 0;
  cell.linear_before_reset = plan.linear_before_reset ? 1 : 0;
  if (plan.lstm()) {
    cell.peepholes = Offset(call.inputs[RnnInput::kX]->dtype(), In(call, RnnInput::kP),
                            direction * 3 * plan.hidden);
  }
  return cell;
}

CellRows YRows(const RnnPlan& plan, DType dtype, const void* y, int64_t direction, int64_t t) {
  return RowsFrom(dtype, y, plan.YRow(direction, t, 0), plan.YRow(direction, t, 1), plan.hidden);
}

CellRows StateRows(const RnnPlan& plan, DType dtype, const void* state, int64_t direction) {
  return RowsFrom(dtype, state, plan.StateRow(direction, 0), plan.StateRow(direction, 1),
                  plan.hidden);
}

CellRows KeptRows(const RnnPlan& plan, DType dtype, const void* kept, int64_t width,
                  int64_t direction, int64_t t) {
  return RowsFrom(dtype, kept, plan.KeptRow(direction, t, 0), plan.KeptRow(direction, t, 1), width);
}

void RegisterRnn(const Context& context, KernelTable& table) {
  const auto entry = [&](auto make) -> KernelTable::Entry {
    return {"cublas", 1, [context, make](const KernelRequest& r) { return make(context, r); },
            "float, double"};
  };
  for (const std::string op : {"RNN", "GRU", "LSTM"}) {
    table.Add(op, entry(MakeRnn));
    table.Add(absl::StrCat(op, "Training"), entry(MakeRnn), kOnwardDomain);
    table.Add(absl::StrCat(op, "Grad"), entry(MakeRnnGrad), kOnwardDomain);
  }
}

}  // namespace onward::cuda

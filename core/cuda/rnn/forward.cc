// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM, and their Training forms. One product gives W*X of all steps; then each step
// is one product with R (GRU: two) and the cell.
#include <memory>
#include <utility>

#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/request.h"
#include "core/cuda/rnn/rnn.h"

namespace onward::cuda {
namespace {

// Sizes, and where things are in the workspace.
struct ForwardPlan {
  RnnPlan rnn;
  DType dtype;
  bool tf32;
  std::shared_ptr<Libraries> libraries;
  size_t x = 0, gates = 0, h = 0, c = 0, reset = 0;
};

class ForwardRun {
 public:
  ForwardRun(const ForwardPlan& plan, const KernelCall& call, cublasHandle_t handle)
      : plan_(plan),
        rnn_(plan.rnn),
        call_(call),
        handle_(handle),
        stream_(StreamOf(call)),
        row_(plan.rnn.width * plan.rnn.hidden) {
    gates_ = Out(call, rnn_.standard_outputs());
    keeps_ = gates_ != nullptr;
    if (!keeps_) gates_ = At(plan.gates);
  }

  absl::Status Run() {
    x_ = In(call_, RnnInput::kX);
    if (const void* lengths = In(call_, RnnInput::kLengths); lengths != nullptr) {
      ONWARD_RETURN_IF_ERROR(Queued(CheckLengths(static_cast<const int32_t*>(lengths), rnn_.batch,
                                                 rnn_.steps, FaultOf(call_), stream_)));
    }
    if (rnn_.batch_major) {
      ONWARD_RETURN_IF_ERROR(Queued(SwapFirstAxes(plan_.dtype, x_, rnn_.batch, rnn_.steps,
                                                  rnn_.inputs, At(plan_.x), stream_)));
      x_ = At(plan_.x);
    }
    for (int64_t d = 0; d < rnn_.directions; ++d) ONWARD_RETURN_IF_ERROR(RunDirection(d));
    return absl::OkStatus();
  }

 private:
  static absl::Status Queued(cudaError_t error) { return StatusOf(error, "a recurrence"); }
  void* At(size_t offset) const { return static_cast<char*>(call_.workspace) + offset; }
  CellRows Dense(size_t offset) const { return {At(offset), rnn_.hidden}; }

  absl::Status RunDirection(int64_t d) const {
    ONWARD_RETURN_IF_ERROR(MultiplyInput(d));
    ONWARD_RETURN_IF_ERROR(SetState(RnnInput::kH0, d, Dense(plan_.h)));
    if (rnn_.lstm()) ONWARD_RETURN_IF_ERROR(SetState(RnnInput::kC0, d, Dense(plan_.c)));
    for (int64_t s = 0; s < rnn_.steps; ++s) ONWARD_RETURN_IF_ERROR(RunStep(d, rnn_.Step(d, s)));
    ONWARD_RETURN_IF_ERROR(StoreState(1, d, Dense(plan_.h)));
    return rnn_.lstm() ? StoreState(2, d, Dense(plan_.c)) : absl::OkStatus();
  }

  absl::Status SetState(int input, int64_t d, const CellRows& to) const {
    return Queued(CopyRows(plan_.dtype, rnn_.batch, rnn_.hidden,
                           StateRows(rnn_, plan_.dtype, In(call_, input), d), to, stream_));
  }
  absl::Status StoreState(int output, int64_t d, const CellRows& from) const {
    void* to = Out(call_, output);
    if (to == nullptr) return absl::OkStatus();
    return Queued(CopyRows(plan_.dtype, rnn_.batch, rnn_.hidden, from,
                           StateRows(rnn_, plan_.dtype, to, d), stream_));
  }

  // gates = X * W^T for all steps.
  absl::Status MultiplyInput(int64_t d) const {
    const int64_t n = rnn_.gates * rnn_.hidden;
    Product p = DenseProduct(plan_.dtype, rnn_.steps * rnn_.batch, n, rnn_.inputs, false, true);
    p.tf32 = plan_.tf32;
    p.c_row = row_;
    return Multiply(handle_, p, x_,
                    Offset(plan_.dtype, In(call_, RnnInput::kW), d * n * rnn_.inputs),
                    KeptRows(rnn_, plan_.dtype, gates_, row_, d, 0).data);
  }

  // `count` gates of the step from gate `to` on: (added to) rows * R^T, R from gate `from` on.
  absl::Status MultiplyState(int64_t d, const CellRows& rows, int64_t from, int64_t count,
                             const CellRows& gates, int64_t to, bool add) const {
    Product p =
        DenseProduct(plan_.dtype, rnn_.batch, count * rnn_.hidden, rnn_.hidden, false, true);
    p.tf32 = plan_.tf32;
    p.a_row = rows.step;
    p.c_row = row_;
    p.beta = add ? 1 : 0;
    const int64_t first = (d * rnn_.gates + from) * rnn_.hidden * rnn_.hidden;
    return Multiply(handle_, p, rows.data, Offset(plan_.dtype, In(call_, RnnInput::kR), first),
                    Offset(plan_.dtype, gates.data, to * rnn_.hidden));
  }

  absl::Status RunStep(int64_t d, int64_t t) const {
    ForwardCell cell;
    static_cast<CellStep&>(cell) = CellOf(rnn_, d, t, call_);
    cell.keeps = keeps_ ? 1 : 0;
    cell.bias = Offset(plan_.dtype, In(call_, RnnInput::kB), d * 2 * rnn_.gates * rnn_.hidden);
    cell.gates = KeptRows(rnn_, plan_.dtype, gates_, row_, d, t);
    cell.y = YRows(rnn_, plan_.dtype, Out(call_, 0), d, t);
    cell.state = Dense(plan_.h);
    if (rnn_.gru()) return RunGruStep(d, cell);
    ONWARD_RETURN_IF_ERROR(MultiplyState(d, cell.state, 0, rnn_.gates, cell.gates, 0, true));
    if (!rnn_.lstm()) return Queued(RnnCell(plan_.dtype, cell, stream_));
    cell.cell = Dense(plan_.c);
    cell.cells =
        KeptRows(rnn_, plan_.dtype, Out(call_, rnn_.standard_outputs() + 1), rnn_.hidden, d, t);
    return Queued(LstmCell(plan_.dtype, cell, stream_));
  }

  absl::Status RunGruStep(int64_t d, ForwardCell& cell) const {
    ONWARD_RETURN_IF_ERROR(MultiplyState(d, cell.state, 0, 2, cell.gates, 0, true));
    if (rnn_.linear_before_reset) {
      ONWARD_RETURN_IF_ERROR(MultiplyState(d, cell.state, 2, 1, cell.gates, 3, false));
      ONWARD_RETURN_IF_ERROR(Queued(GruGates(plan_.dtype, cell, stream_)));
    } else {
      cell.reset = Dense(plan_.reset);
      ONWARD_RETURN_IF_ERROR(Queued(GruGates(plan_.dtype, cell, stream_)));
      ONWARD_RETURN_IF_ERROR(MultiplyState(d, cell.reset, 2, 1, cell.gates, 2, true));
    }
    return Queued(GruCell(plan_.dtype, cell, stream_));
  }

  const ForwardPlan& plan_;
  const RnnPlan& rnn_;
  const KernelCall& call_;
  const cublasHandle_t handle_;
  const cudaStream_t stream_;
  const int64_t row_;  // elements of a row of gates
  const void* x_ = nullptr;
  void* gates_;
  bool keeps_;
};

absl::Status CheckOutputs(const KernelRequest& r, const RnnPlan& rnn) {
  const int standard = rnn.standard_outputs();
  const bool training = rnn.form == RnnPlan::Form::kTraining;
  const int most = standard + (training ? (rnn.lstm() ? 2 : 1) : 0);
  if (static_cast<int>(r.outputs.size()) > most) return Unserved(r);
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, rnn.YShape()));
  for (int i = 1; i < standard; ++i) ONWARD_RETURN_IF_ERROR(CheckOutput(r, i, rnn.StateShape()));
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, standard, rnn.GatesShape()));
  return CheckOutput(r, standard + 1, rnn.CellsShape());
}

}  // namespace

absl::StatusOr<Kernel> MakeRnn(const Context& context, const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const RnnPlan rnn, PlanServedRnn(r));
  ONWARD_RETURN_IF_ERROR(CheckOutputs(r, rnn));
  auto plan = std::make_shared<ForwardPlan>();
  plan->rnn = rnn;
  plan->dtype = r.inputs[RnnInput::kX].dtype;
  plan->tf32 = context.options.allow_tf32;
  plan->libraries = context.libraries;
  const int64_t size = DTypeBits(plan->dtype) / 8, states = rnn.batch * rnn.hidden * size;
  Scratch scratch;
  if (rnn.batch_major) plan->x = scratch.Add(r.in(RnnInput::kX).elements() * size);
  if (!r.HasOutput(rnn.standard_outputs())) {
    plan->gates = scratch.Add(rnn.GatesShape().elements() * size);
  }
  plan->h = scratch.Add(states);
  if (rnn.lstm()) plan->c = scratch.Add(states);
  if (rnn.gru() && !rnn.linear_before_reset) plan->reset = scratch.Add(states);
  if (!CanMultiply(DenseProduct(plan->dtype, rnn.steps * rnn.batch, rnn.width * rnn.hidden,
                                rnn.inputs, false, true))) {
    return Unserved(r);
  }
  Kernel kernel;
  kernel.workspace_bytes = scratch.bytes();
  if (r.HasInput(RnnInput::kLengths)) kernel.fault = "sequence length";
  kernel.run = [plan = std::move(plan)](const KernelCall& call) {
    return plan->libraries->WithBlas(StreamOf(call), call.workspace, [&](cublasHandle_t handle) {
      return ForwardRun(*plan, call, handle).Run();
    });
  };
  return kernel;
}

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// RNNGrad, GRUGrad and LSTMGrad: backwards through time, direction by direction. Each step is the
// cell's derivatives and a product with R; the derivatives of all gates' arguments are stored, and
// one product each then gives dX, dW and dR.
#include <memory>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/request.h"
#include "core/cuda/rnn/rnn.h"

namespace onward::cuda {
namespace {

struct GradOutput {
  enum { kX, kW, kR, kB, kH0, kC0, kP };
};

// Sizes, and where things are in the workspace.
struct GradPlan {
  RnnPlan rnn;
  DType dtype;
  bool tf32;
  std::shared_ptr<Libraries> libraries;
  size_t x = 0, dx = 0, dgates = 0, last = 0, reset = 0, dreset = 0, dh = 0, dc = 0;
};

class GradRun {
 public:
  GradRun(const GradPlan& plan, const KernelCall& call, cublasHandle_t handle)
      : plan_(plan),
        rnn_(plan.rnn),
        dtype_(plan.dtype),
        call_(call),
        handle_(handle),
        stream_(StreamOf(call)),
        hidden_(plan.rnn.hidden),
        row_(plan.rnn.width * plan.rnn.hidden) {
    int next = rnn_.standard_inputs();
    y_ = In(call, next++);
    gates_ = In(call, next++);
    if (rnn_.lstm()) cells_ = In(call, next++);
    dy_ = In(call, next++);
    dy_h_ = In(call, next++);
    if (rnn_.lstm()) dy_c_ = In(call, next++);
  }

  absl::Status Run() {
    x_ = In(call_, RnnInput::kX);
    if (rnn_.batch_major && Out(call_, GradOutput::kW) != nullptr) {
      ONWARD_RETURN_IF_ERROR(Queued(
          SwapFirstAxes(dtype_, x_, rnn_.batch, rnn_.steps, rnn_.inputs, At(plan_.x), stream_)));
      x_ = At(plan_.x);
    }
    for (int64_t d = 0; d < rnn_.directions; ++d) {
      ONWARD_RETURN_IF_ERROR(Recur(d));
      ONWARD_RETURN_IF_ERROR(InputGrad(d));
      ONWARD_RETURN_IF_ERROR(WeightGrads(d));
      ONWARD_RETURN_IF_ERROR(BiasGrad(d));
      ONWARD_RETURN_IF_ERROR(PeepholeGrad(d));
    }
    void* dx = Out(call_, GradOutput::kX);
    if (dx == nullptr || !rnn_.batch_major) return absl::OkStatus();
    return Queued(
        SwapFirstAxes(dtype_, At(plan_.dx), rnn_.steps, rnn_.batch, rnn_.inputs, dx, stream_));
  }

 private:
  static absl::Status Queued(cudaError_t error) {
    return StatusOf(error, "the gradient of a recurrence");
  }
  void* At(size_t offset) const { return static_cast<char*>(call_.workspace) + offset; }
  CellRows Dense(size_t offset) const { return {At(offset), hidden_}; }
  // Derivatives of the arguments at step t, from gate i on.
  void* DGates(int64_t t, int64_t i) const {
    return Offset(dtype_, At(plan_.dgates), t * rnn_.batch * row_ + i * hidden_);
  }
  CellRows AtStep(size_t offset, int64_t t) const {
    return {Offset(dtype_, At(offset), t * rnn_.batch * hidden_), hidden_};
  }

  absl::Status Multiply(Product p, const void* a, const void* b, void* c, bool add) const {
    p.tf32 = plan_.tf32;
    p.beta = add ? 1 : 0;
    return cuda::Multiply(handle_, p, a, b, c);
  }

  absl::Status Recur(int64_t d) const {
    ONWARD_RETURN_IF_ERROR(SetState(dy_h_, d, Dense(plan_.dh)));
    if (rnn_.lstm()) ONWARD_RETURN_IF_ERROR(SetState(dy_c_, d, Dense(plan_.dc)));
    for (int64_t s = rnn_.steps - 1; s >= 0; --s) {
      const int64_t t = rnn_.Step(d, s);
      const BackwardCell cell = CellAt(d, t);
      ONWARD_RETURN_IF_ERROR(Queued(RunCell(cell)));
      if (rnn_.gru()) ONWARD_RETURN_IF_ERROR(GruRecurrence(d, t, cell));
      if (s == 0 && Out(call_, GradOutput::kH0) == nullptr) break;
      ONWARD_RETURN_IF_ERROR(
          MultiplyByState(d, t, 0, 0, rnn_.gru() ? 2 : rnn_.gates, At(plan_.dh), true));
    }
    ONWARD_RETURN_IF_ERROR(StoreState(GradOutput::kH0, d, Dense(plan_.dh)));
    return rnn_.lstm() ? StoreState(GradOutput::kC0, d, Dense(plan_.dc)) : absl::OkStatus();
  }

  absl::Status SetState(const void* from, int64_t d, const CellRows& to) const {
    return Queued(
        CopyRows(dtype_, rnn_.batch, hidden_, StateRows(rnn_, dtype_, from, d), to, stream_));
  }
  absl::Status StoreState(int output, int64_t d, const CellRows& from) const {
    void* to = Out(call_, output);
    if (to == nullptr) return absl::OkStatus();
    return Queued(
        CopyRows(dtype_, rnn_.batch, hidden_, from, StateRows(rnn_, dtype_, to, d), stream_));
  }

  BackwardCell CellAt(int64_t d, int64_t t) const {
    BackwardCell cell;
    static_cast<CellStep&>(cell) = CellOf(rnn_, d, t, call_);
    cell.gates = KeptRows(rnn_, dtype_, gates_, row_, d, t);
    cell.y = YRows(rnn_, dtype_, y_, d, t);
    cell.first_state = StateRows(rnn_, dtype_, In(call_, RnnInput::kH0), d);
    cell.dy = YRows(rnn_, dtype_, dy_, d, t);
    cell.dgates = {DGates(t, 0), row_};
    cell.dstate = Dense(plan_.dh);
    const bool border = cell.before < 0 || cell.before >= rnn_.steps;
    if (!border) cell.last_y = YRows(rnn_, dtype_, y_, d, cell.before);
    if (rnn_.lstm()) {
      cell.cells = KeptRows(rnn_, dtype_, cells_, hidden_, d, t);
      if (!border) cell.last_cells = KeptRows(rnn_, dtype_, cells_, hidden_, d, cell.before);
      cell.first_cell = StateRows(rnn_, dtype_, In(call_, RnnInput::kC0), d);
      cell.dcell = Dense(plan_.dc);
    }
    if (rnn_.gru() && !rnn_.linear_before_reset) {
      cell.reset = AtStep(plan_.reset, t);
      cell.dreset = Dense(plan_.dreset);
    }
    return cell;
  }

  cudaError_t RunCell(const BackwardCell& cell) const {
    if (rnn_.lstm()) return LstmCellGrad(dtype_, cell, stream_);
    if (rnn_.gru()) return GruCellGrad(dtype_, cell, stream_);
    return RnnCellGrad(dtype_, cell, stream_);
  }

  // to = (or is added to) `count` gates of dgates at step t, from gate `from` on, times R from gate
  // `gate` on.
  absl::Status MultiplyByState(int64_t d, int64_t t, int64_t from, int64_t gate, int64_t count,
                               void* to, bool add) const {
    Product p = DenseProduct(dtype_, rnn_.batch, hidden_, count * hidden_, false, false);
    p.a_row = row_;
    const int64_t first = (d * rnn_.gates + gate) * hidden_ * hidden_;
    return Multiply(p, DGates(t, from), Offset(dtype_, In(call_, RnnInput::kR), first), to, add);
  }

  // The part of the candidate's product in dh: dq*R; or, with e = dg*R, what the reset gate makes
  // of that.
  absl::Status GruRecurrence(int64_t d, int64_t t, const BackwardCell& cell) const {
    if (rnn_.linear_before_reset) return MultiplyByState(d, t, 3, 2, 1, At(plan_.dh), true);
    ONWARD_RETURN_IF_ERROR(MultiplyByState(d, t, 2, 2, 1, At(plan_.dreset), false));
    return Queued(GruResetGrad(dtype_, cell, stream_));
  }

  // dX = dgates * W, summed over the directions.
  absl::Status InputGrad(int64_t d) const {
    void* dx = Out(call_, GradOutput::kX);
    if (dx == nullptr) return absl::OkStatus();
    const int64_t n = rnn_.gates * hidden_;
    Product p = DenseProduct(dtype_, rnn_.steps * rnn_.batch, rnn_.inputs, n, false, false);
    p.a_row = row_;
    return Multiply(p, DGates(0, 0), Offset(dtype_, In(call_, RnnInput::kW), d * n * rnn_.inputs),
                    rnn_.batch_major ? At(plan_.dx) : dx, d > 0);
  }

  // dW = dgates^T * X, dR = dgates^T * (the states before each step). The candidate of GRU saw
  // r * state, or with linear_before_reset has its own derivatives.
  absl::Status WeightGrads(int64_t d) const {
    if (void* dw = Out(call_, GradOutput::kW)) {
      ONWARD_RETURN_IF_ERROR(WeightGrad(d, 0, 0, rnn_.gates, x_, rnn_.inputs, dw));
    }
    void* dr = Out(call_, GradOutput::kR);
    if (dr == nullptr) return absl::OkStatus();
    ONWARD_RETURN_IF_ERROR(
        Queued(GatherLastStates(dtype_, LastOf(d, y_), At(plan_.last), stream_)));
    const void* last = At(plan_.last);
    if (!rnn_.gru()) return WeightGrad(d, 0, 0, rnn_.gates, last, hidden_, dr);
    ONWARD_RETURN_IF_ERROR(WeightGrad(d, 0, 0, 2, last, hidden_, dr));
    return rnn_.linear_before_reset ? WeightGrad(d, 3, 2, 1, last, hidden_, dr)
                                    : WeightGrad(d, 2, 2, 1, At(plan_.reset), hidden_, dr);
  }

  // Gates [gate, gate + count) of the weights: `count` gates of dgates from gate `from` on, with
  // what multiplied them.
  absl::Status WeightGrad(int64_t d, int64_t from, int64_t gate, int64_t count, const void* by,
                          int64_t columns, void* to) const {
    Product p =
        DenseProduct(dtype_, count * hidden_, columns, rnn_.steps * rnn_.batch, true, false);
    p.a_row = row_;
    return Multiply(p, DGates(0, from), by,
                    Offset(dtype_, to, (d * rnn_.gates + gate) * hidden_ * columns), false);
  }

  LastStates LastOf(int64_t d, const void* y) const {
    const int64_t first = rnn_.YRow(d, 0, 0);
    return {rnn_.steps,
            rnn_.batch,
            hidden_,
            rnn_.Before(d, 0),
            static_cast<const int32_t*>(In(call_, RnnInput::kLengths)),
            Offset(dtype_, y, first * hidden_),
            (rnn_.YRow(d, 1, 0) - first) * hidden_,
            (rnn_.YRow(d, 0, 1) - first) * hidden_,
            StateRows(rnn_, dtype_, In(call_, RnnInput::kH0), d)};
  }

  // dWb = dRb = sum of dgates (GRU with linear_before_reset: dRb of h is the sum of dq).
  absl::Status BiasGrad(int64_t d) const {
    const int64_t n = rnn_.gates * hidden_, rows = rnn_.steps * rnn_.batch;
    void* db = Offset(dtype_, Out(call_, GradOutput::kB), d * 2 * n);
    if (db == nullptr) return absl::OkStatus();
    for (const int64_t half : {int64_t{0}, n}) {
      ONWARD_RETURN_IF_ERROR(
          Queued(SumRows(dtype_, DGates(0, 0), rows, row_, n, Offset(dtype_, db, half), stream_)));
    }
    if (!rnn_.linear_before_reset) return absl::OkStatus();
    return Queued(SumRows(dtype_, DGates(0, 3), rows, row_, hidden_,
                          Offset(dtype_, db, n + 2 * hidden_), stream_));
  }

  absl::Status PeepholeGrad(int64_t d) const {
    const bool wanted = rnn_.lstm() && In(call_, RnnInput::kP) != nullptr;
    void* dp = wanted ? Offset(dtype_, Out(call_, GradOutput::kP), d * 3 * hidden_) : nullptr;
    if (dp == nullptr) return absl::OkStatus();
    PeepholeSums sums;
    sums.last = LastOf(d, nullptr);
    sums.cells = KeptRows(rnn_, dtype_, cells_, hidden_, d, 0).data;
    sums.last.y = sums.cells;
    sums.last.y_time = rnn_.batch * hidden_;
    sums.last.y_batch = hidden_;
    sums.last.first = StateRows(rnn_, dtype_, In(call_, RnnInput::kC0), d);
    sums.dgates = DGates(0, 0);
    sums.stride = row_;
    return Queued(SumPeepholes(dtype_, sums, dp, stream_));
  }

  const GradPlan& plan_;
  const RnnPlan& rnn_;
  const DType dtype_;
  const KernelCall& call_;
  const cublasHandle_t handle_;
  const cudaStream_t stream_;
  const int64_t hidden_, row_;  // row_: elements of a row of gates and dgates
  const void *x_ = nullptr, *y_, *gates_, *cells_ = nullptr, *dy_, *dy_h_, *dy_c_ = nullptr;
};

// What follows the standard inputs: Y, gates, cells; then the gradients, each of which may be
// omitted. Outputs are like the inputs they belong to.
absl::Status CheckGrad(const KernelRequest& r, const RnnPlan& rnn) {
  const int first = rnn.standard_inputs();
  std::vector<Shape> shapes = {rnn.YShape(), rnn.GatesShape()};
  if (rnn.lstm()) shapes.push_back(rnn.CellsShape());
  const size_t required = shapes.size();
  shapes.push_back(rnn.YShape());
  shapes.insert(shapes.end(), rnn.lstm() ? 2 : 1, rnn.StateShape());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int input = first + static_cast<int>(i);
    if (r.HasInput(input) ? r.in(input) != shapes[i] : i < required) return Unserved(r);
  }
  for (int i = 0; i < static_cast<int>(r.outputs.size()); ++i) {
    const int like = i < GradOutput::kH0 ? i : i + 1;
    if (!r.HasOutput(i)) continue;
    if (!r.HasInput(like) || r.out(i) != r.in(like)) return Unserved(r);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Kernel> MakeRnnGrad(const Context& context, const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const RnnPlan rnn, PlanServedRnn(r));
  ONWARD_RETURN_IF_ERROR(CheckGrad(r, rnn));
  auto plan = std::make_shared<GradPlan>();
  plan->rnn = rnn;
  plan->dtype = r.inputs[RnnInput::kX].dtype;
  plan->tf32 = context.options.allow_tf32;
  plan->libraries = context.libraries;
  const int64_t size = DTypeBits(plan->dtype) / 8, rows = rnn.steps * rnn.batch;
  const int64_t states = rnn.batch * rnn.hidden * size;
  Scratch scratch;
  if (rnn.batch_major) plan->x = scratch.Add(rows * rnn.inputs * size);
  if (rnn.batch_major) plan->dx = scratch.Add(rows * rnn.inputs * size);
  plan->dgates = scratch.Add(rows * rnn.width * rnn.hidden * size);
  plan->last = scratch.Add(rows * rnn.hidden * size);
  if (rnn.gru() && !rnn.linear_before_reset) {
    plan->reset = scratch.Add(rows * rnn.hidden * size);
    plan->dreset = scratch.Add(states);
  }
  plan->dh = scratch.Add(states);
  if (rnn.lstm()) plan->dc = scratch.Add(states);
  if (!CanMultiply(
          DenseProduct(plan->dtype, rows, rnn.width * rnn.hidden, rnn.inputs, false, true))) {
    return Unserved(r);
  }
  Kernel kernel;
  kernel.workspace_bytes = scratch.bytes();
  kernel.run = [plan = std::move(plan)](const KernelCall& call) {
    return plan->libraries->WithBlas(StreamOf(call), call.workspace, [&](cublasHandle_t handle) {
      return GradRun(*plan, call, handle).Run();
    });
  };
  return kernel;
}

}  // namespace onward::cuda

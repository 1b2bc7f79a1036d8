// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM, and their Training forms. One product gives W*X of all
// steps; then every thread takes its rows of the batch through all steps, each
// step one product with R, packed beforehand, and the cell.
#include "core/ops/rnn/rnn.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/device/arrangements.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/register.h"
#include "core/ops/rnn/rnn_gemm.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

// Sizes, and where things are in the workspace.
struct ForwardPlan {
  RnnPlan rnn;
  Node node;  // for messages
  size_t x, weights, bias, gates, h, c, rows;
  int64_t w_size, r_size;  // elements of one direction's packed W and R
  int64_t row_size;        // elements of a row's scratch
  // W and R of all directions, where they are constant.
  std::shared_ptr<const Tensor> packed;
  bool starts_at_zero;  // initial_h is omitted or known to be zero
};

// Packs W^T and R^T of each direction (R of GRU: first z and r, then h).
template <typename T>
void PackWeights(const ForwardPlan& plan, const T* w, const T* r, T* to) {
  const RnnPlan& rnn = plan.rnn;
  const int64_t h = rnn.hidden, n = rnn.gates * h, first = rnn.gru() ? 2 * h : n;
  for (int64_t d = 0; d < rnn.directions; ++d) {
    Pack<T>({w, rnn.inputs, true}, rnn.inputs, n, to);
    to += plan.w_size;
    Pack<T>({r, h, true}, h, first, to);
    if (rnn.gru()) {
      Pack<T>({r + first * h, h, true}, h, h, to + PackedMatrix<T>::Elements(h, first));
    }
    to += plan.r_size;
    w += n * rnn.inputs;
    r += n * h;
  }
}

// One call. `T*` members are null for what is omitted.
template <typename T>
class ForwardRun {
 public:
  ForwardRun(const ForwardPlan& plan, const KernelCall& call)
      : plan_(plan),
        rnn_(plan.rnn),
        call_(call),
        hidden_(plan.rnn.hidden),
        stride_(plan.rnn.width * plan.rnn.hidden),
        clip_(static_cast<T>(plan.rnn.clip)) {
    x_ = In(RnnInput::kX);
    b_ = In(RnnInput::kB);
    h0_ = In(RnnInput::kH0);
    if (rnn_.lstm()) {
      c0_ = In(RnnInput::kC0);
      p_ = In(RnnInput::kP);
    }
    const int outputs = rnn_.standard_outputs();
    y_ = Out(0);
    y_h_ = Out(1);
    if (rnn_.lstm()) y_c_ = Out(2);
    gates_ = Out(outputs);
    keeps_ = gates_ != nullptr;
    if (!keeps_) gates_ = Scratch(plan.gates);
    if (rnn_.lstm()) cells_ = Out(outputs + 1);
  }

  absl::Status Run() {
    const Tensor* lengths = RnnInput::kLengths < static_cast<int>(call_.inputs.size())
                                ? call_.inputs[RnnInput::kLengths]
                                : nullptr;
    ONWARD_ASSIGN_OR_RETURN(lengths_, SequenceLengths(rnn_, plan_.node, lengths));
    if (plan_.packed != nullptr) {
      weights_ = plan_.packed->data<T>();
    } else {
      PackWeights(plan_, In(RnnInput::kW), In(RnnInput::kR), Scratch(plan_.weights));
      weights_ = Scratch(plan_.weights);
    }
    MultiplyInput();
    SumBiases();
    ForRnnTasks(rnn_, [&](const RnnTask& task) { Recur(task); });
    return absl::OkStatus();
  }

 private:
  const T* In(int i) const { return InputOrNull<T>(call_, i); }
  T* Out(int i) const { return OutputOrNull<T>(call_, i); }
  T* Scratch(size_t offset) const { return At<T>(call_.workspace, offset); }
  bool Active(int64_t t, int64_t b) const { return lengths_.empty() || t < lengths_[b]; }

  // gates = X * W^T for all steps.
  void MultiplyInput() {
    const T* x = x_;
    if (rnn_.batch_major) {
      SwapFirstAxes(x_, rnn_.batch, rnn_.steps, rnn_.inputs, Scratch(plan_.x));
      x = Scratch(plan_.x);
    }
    const int64_t rows = rnn_.steps * rnn_.batch;
    for (int64_t d = 0; d < rnn_.directions; ++d) {
      const PackedMatrix<T> w = {DirectionWeights(d), rnn_.inputs, rnn_.gates * hidden_};
      LargeProduct<T>({x, rnn_.inputs}, rows, {{w, gates_ + d * rows * stride_, stride_}});
    }
  }

  // Those of W and R in one; the candidate of GRU with linear_before_reset needs
  // them apart.
  void SumBiases() {
    const int64_t n = rnn_.gates * hidden_, joined = rnn_.linear_before_reset ? 2 * hidden_ : n;
    for (int64_t d = 0; d < rnn_.directions; ++d) {
      T* bias = Bias(d);
      std::fill_n(bias, stride_, T(0));
      if (b_ == nullptr) continue;
      const T *wb = b_ + d * 2 * n, *rb = wb + n;
      for (int64_t i = 0; i < joined; ++i) bias[i] = wb[i] + rb[i];
      if (rnn_.linear_before_reset) {
        std::copy_n(wb + joined, hidden_, bias + joined);
        std::copy_n(rb + joined, hidden_, bias + joined + hidden_);
      }
    }
  }

  const T* DirectionWeights(int64_t d) const {
    return weights_ + d * (plan_.w_size + plan_.r_size);
  }
  T* Bias(int64_t d) const { return Scratch(plan_.bias) + d * stride_; }
  // R^T, all of it or (GRU) its part for z and r; `second`: that for h.
  PackedMatrix<T> Weights(int64_t d, bool second = false) const {
    const T* all = DirectionWeights(d) + plan_.w_size;
    const int64_t first = (rnn_.gru() ? 2 : rnn_.gates) * hidden_;
    if (!second) return {all, hidden_, first};
    return {all + PackedMatrix<T>::Elements(hidden_, first), hidden_, hidden_};
  }

  void Recur(const RnnTask& task) {
    const int64_t d = task.direction;
    T* h = Scratch(plan_.h) + d * rnn_.batch * hidden_;
    T* c = rnn_.lstm() ? Scratch(plan_.c) + d * rnn_.batch * hidden_ : nullptr;
    for (int64_t b = task.begin; b < task.end; ++b) {
      SetRow(h0_, rnn_.StateRow(d, b), h + b * hidden_);
      if (c != nullptr) SetRow(c0_, rnn_.StateRow(d, b), c + b * hidden_);
    }
    for (int64_t s = 0; s < rnn_.steps; ++s) {
      const int64_t t = rnn_.Step(d, s);
      T* gates = gates_ + rnn_.KeptRow(d, t, 0) * stride_;
      const bool from_zero = s == 0 && plan_.starts_at_zero;
      PackedMatrix<T> weights = Weights(d);
      if (from_zero) weights.k = 0;
      AddProduct<T>(h + task.begin * hidden_, hidden_, task.end - task.begin, weights, Bias(d),
                    gates + task.begin * stride_, stride_);
      if (rnn_.gru()) GruCandidate(task, t, h, gates);
      for (int64_t b = task.begin; b < task.end; ++b) {
        T* row = gates + b * stride_;
        T* y = y_ == nullptr ? nullptr : y_ + rnn_.YRow(d, t, b) * hidden_;
        T* cell = cells_ == nullptr ? nullptr : cells_ + rnn_.KeptRow(d, t, b) * hidden_;
        if (!Active(t, b)) {
          if (y != nullptr) std::fill_n(y, hidden_, T(0));
          if (keeps_) std::fill_n(row, stride_, T(0));
          if (cell != nullptr) std::fill_n(cell, hidden_, T(0));
          continue;
        }
        T* state = h + b * hidden_;
        if (rnn_.lstm()) {
          LstmCell(d, row, c + b * hidden_, state, Row(task));
          if (cell != nullptr) std::copy_n(c + b * hidden_, hidden_, cell);
        } else if (rnn_.gru()) {
          GruCell(d, row, state, Row(d, b));
        } else {
          Activate(rnn_.activation(d, 0), clip_, row, state, hidden_);
        }
        if (y != nullptr) std::copy_n(state, hidden_, y);
      }
    }
    for (int64_t b = task.begin; b < task.end; ++b) {
      const int64_t to = rnn_.StateRow(d, b) * hidden_;
      if (y_h_ != nullptr) std::copy_n(h + b * hidden_, hidden_, y_h_ + to);
      if (y_c_ != nullptr) std::copy_n(c + b * hidden_, hidden_, y_c_ + to);
    }
  }

  void SetRow(const T* from, int64_t row, T* to) const {
    if (from == nullptr) {
      std::fill_n(to, hidden_, T(0));
    } else {
      std::copy_n(from + row * hidden_, hidden_, to);
    }
  }

  // Scratch of a row, and of a task that needs only one at a time.
  T* Row(int64_t d, int64_t b) const {
    return Scratch(plan_.rows) + (d * rnn_.batch + b) * plan_.row_size;
  }
  T* Row(const RnnTask& task) const { return Row(task.direction, task.begin); }

  // i, o, f = F(gates), g = G(gate of c);  C = f*C + i*g;  h = o * H(C).
  // Peepholes add Pi*C and Pf*C before, Po*C after the new C.
  void LstmCell(int64_t d, T* gates, T* c, T* h, T* acts) const {
    const int64_t n = hidden_;
    T *i = acts, *o = acts + n, *f = acts + 2 * n, *g = acts + 3 * n, *out = acts + 4 * n;
    const RnnActivation& activation = rnn_.activation(d, 0);
    const T* peep = p_ == nullptr ? nullptr : p_ + d * 3 * n;
    if (peep != nullptr) {
      for (int64_t u = 0; u < n; ++u) {
        gates[u] += peep[u] * c[u];
        gates[2 * n + u] += peep[2 * n + u] * c[u];
      }
    }
    Activate(activation, clip_, gates, acts, 3 * n);
    Activate(rnn_.activation(d, 1), clip_, gates + 3 * n, g, n);
    if (rnn_.input_forget) {
      for (int64_t u = 0; u < n; ++u) f[u] = T(1) - i[u];
    }
    for (int64_t u = 0; u < n; ++u) c[u] = f[u] * c[u] + i[u] * g[u];
    if (peep != nullptr) {
      for (int64_t u = 0; u < n; ++u) gates[n + u] += peep[n + u] * c[u];
      Activate(activation, clip_, gates + n, o, n);
    }
    Activate(rnn_.activation(d, 2), kUnlimited, c, out, n);
    for (int64_t u = 0; u < n; ++u) h[u] = o[u] * out[u];
  }

  // z, r = F(gates), then the argument of the candidate: (r*h) R^T, or with
  // linear_before_reset r * (h R^T + Rb).
  void GruCandidate(const RnnTask& task, int64_t t, const T* h, T* gates) const {
    const int64_t d = task.direction, n = hidden_, count = task.end - task.begin;
    T* first = gates + task.begin * stride_;
    if (rnn_.linear_before_reset) {
      for (int64_t b = 0; b < count; ++b) std::fill_n(first + b * stride_ + 3 * n, n, T(0));
      AddProduct<T>(h + task.begin * n, n, count, Weights(d, true), Bias(d) + 3 * n, first + 3 * n,
                    stride_);
    }
    for (int64_t b = task.begin; b < task.end; ++b) {
      if (!Active(t, b)) continue;
      T *row = gates + b * stride_, *acts = Row(d, b);
      Activate(rnn_.activation(d, 0), clip_, row, acts, 2 * n);
      const T *r = acts + n, *state = h + b * n, *bias = Bias(d) + 2 * n;
      if (rnn_.linear_before_reset) {
        T *argument = row + 2 * n, *product = row + 3 * n;
        for (int64_t u = 0; u < n; ++u) argument[u] += bias[u] + r[u] * product[u];
      } else {
        T* reset = acts + 2 * n;
        for (int64_t u = 0; u < n; ++u) reset[u] = r[u] * state[u];
      }
    }
    if (rnn_.linear_before_reset) return;
    AddProduct<T>(Row(task) + 2 * n, plan_.row_size, count, Weights(d, true), Bias(d) + 2 * n,
                  first + 2 * n, stride_);
  }

  // h = (1 - z) * G(candidate) + z * h
  void GruCell(int64_t d, const T* gates, T* h, T* acts) const {
    const int64_t n = hidden_;
    T *z = acts, *candidate = acts + n;
    Activate(rnn_.activation(d, 1), clip_, gates + 2 * n, candidate, n);
    for (int64_t u = 0; u < n; ++u) h[u] = (T(1) - z[u]) * candidate[u] + z[u] * h[u];
  }

  // The argument of H is not a gate's: clip does not apply to it, as in
  // onnxruntime.
  static constexpr T kUnlimited = std::numeric_limits<T>::infinity();

  const ForwardPlan& plan_;
  const RnnPlan& rnn_;
  const KernelCall& call_;
  const int64_t hidden_, stride_;  // stride_: of a row of gates_
  const T clip_;
  const T *x_, *b_, *h0_, *c0_ = nullptr, *p_ = nullptr;
  const T* weights_ = nullptr;
  T *y_, *y_h_, *y_c_ = nullptr, *gates_, *cells_ = nullptr;
  bool keeps_;
  std::vector<int64_t> lengths_;
};

// Exporters write zeros where the standard would let them omit a state.
template <typename T>
bool IsZero(const Tensor& t) {
  const absl::Span<const T> values = t.values<T>();
  return std::all_of(values.begin(), values.end(), [](T v) { return v == T(0); });
}

template <typename T>
Kernel MakeForward(const KernelRequest& r, const RnnPlan& rnn) {
  auto plan = std::make_shared<ForwardPlan>();
  plan->rnn = rnn;
  plan->node = r.node;
  WorkspacePlan space;
  const int64_t h = rnn.hidden, n = rnn.gates * h, states = rnn.directions * rnn.batch * h;
  const auto add = [&](int64_t elements) { return space.Add(elements * sizeof(T)); };
  if (rnn.batch_major) plan->x = add(r.in(RnnInput::kX).elements());
  plan->w_size = PackedMatrix<T>::Elements(rnn.inputs, n);
  plan->r_size = rnn.gru() ? PackedMatrix<T>::Elements(h, 2 * h) + PackedMatrix<T>::Elements(h, h)
                           : PackedMatrix<T>::Elements(h, n);
  const Tensor* h0 = r.HasInput(RnnInput::kH0) ? r.inputs[RnnInput::kH0].constant : nullptr;
  plan->starts_at_zero = !r.HasInput(RnnInput::kH0) || (h0 != nullptr && IsZero<T>(*h0));
  const int64_t weights = rnn.directions * (plan->w_size + plan->r_size);
  const Tensor *w = r.inputs[RnnInput::kW].constant, *recurrent = r.inputs[RnnInput::kR].constant;
  if (w != nullptr && recurrent != nullptr) {
    const auto pack = [&] {
      Tensor packed(DTypeOf<T>::value, Shape{weights});
      PackWeights(*plan, w->data<T>(), recurrent->data<T>(), packed.data<T>());
      return packed;
    };
    const std::string form = absl::StrCat("recurrent ", rnn.inputs, " ", h, " ", n, " ",
                                          rnn.directions, rnn.gru() ? " gru" : "");
    plan->packed = r.arrangements == nullptr
                       ? std::make_shared<const Tensor>(pack())
                       : r.arrangements->Get<Tensor>({w, recurrent}, form, pack);
  } else {
    plan->weights = add(weights);
  }
  plan->bias = add(rnn.directions * rnn.width * h);
  if (!r.HasOutput(rnn.standard_outputs())) plan->gates = add(rnn.GatesShape().elements());
  plan->h = add(states);
  if (rnn.lstm()) plan->c = add(states);
  plan->row_size = (rnn.lstm() ? 5 : 3) * h;
  plan->rows = add(rnn.directions * rnn.batch * plan->row_size);
  Kernel kernel;
  kernel.workspace_bytes = space.bytes();
  kernel.run = [plan = std::move(plan)](const KernelCall& call) {
    return ForwardRun<T>(*plan, call).Run();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeRnn(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const RnnPlan rnn, PlanRnn(r));
  const int most = rnn.standard_outputs() + (rnn.form == RnnPlan::Form::kStandard ? 0
                                             : rnn.lstm()                         ? 2
                                                                                  : 1);
  if (static_cast<int>(r.outputs.size()) > most) {
    return NodeError(
        r.node, absl::StrCat("has ", r.outputs.size(), " outputs, at most ", most, " are defined"));
  }
  Kernel kernel;
  const bool known = DispatchFloat(r.inputs[RnnInput::kX].dtype,
                                   [&]<typename T>() { kernel = MakeForward<T>(r, rnn); });
  if (!known) return NodeUnimplemented(r.node, "takes floating-point tensors");
  return kernel;
}

Shape RnnOutputShape(const KernelRequest& r, int output) {
  const RnnPlan rnn = *PlanRnn(r);
  if (output == 0) return rnn.YShape();
  if (output < rnn.standard_outputs()) return rnn.StateShape();
  return output == rnn.standard_outputs() ? rnn.GatesShape() : rnn.CellsShape();
}

}  // namespace

void RegisterRnnKernels(KernelTable& table) {
  const KernelTable::Entry entry = {"reference", 1, Adapt(MakeRnn, RnnOutputShape),
                                    "float, double, float16, bfloat16"};
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    table.Add(op, entry);
    table.Add(absl::StrCat(op, "Training"), entry, kOnwardDomain);
  }
  RegisterRnnGradKernels(table);
}

}  // namespace onward

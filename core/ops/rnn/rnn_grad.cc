// SPDX-License-Identifier: Apache-2.0
// RNNGrad, GRUGrad and LSTMGrad: backwards through time. Every thread takes its
// rows of the batch from the last step to the first: the cell's derivatives, then
// one product with R, packed beforehand. The derivatives of all gates' arguments
// are stored, and one product each gives dX, dW and dR.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/rnn/rnn.h"
#include "core/ops/rnn/rnn_gemm.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

struct RnnGradOutput {
  enum { kX, kW, kR, kB, kH0, kC0, kP };
};

// Where things are in the workspace.
struct GradPlan {
  RnnPlan rnn;
  Node node;  // for messages
  size_t x, dx, packed, packed_states, r, dgates, last, reset, dh, dc, rows, zeros;
  int64_t r_size;    // elements of one direction's packed R
  int64_t row_size;  // elements of a row's scratch
  int64_t stride;    // of a row of dgates
};

// One call. `T*` members are null for what is omitted.
template <typename T>
class GradRun {
 public:
  GradRun(const GradPlan& plan, const KernelCall& call)
      : plan_(plan),
        rnn_(plan.rnn),
        call_(call),
        hidden_(plan.rnn.hidden),
        kept_(plan.rnn.width * plan.rnn.hidden),
        clip_(static_cast<T>(plan.rnn.clip)) {
    int next = rnn_.standard_inputs();
    h0_ = In(RnnInput::kH0);
    if (rnn_.lstm()) {
      c0_ = In(RnnInput::kC0);
      p_ = In(RnnInput::kP);
    }
    y_ = In(next++);
    gates_ = In(next++);
    if (rnn_.lstm()) cells_ = In(next++);
    dy_ = In(next++);
    dy_h_ = In(next++);
    if (rnn_.lstm()) dy_c_ = In(next++);
    zeros_ = Scratch(plan.zeros);
    dgates_ = Scratch(plan.dgates);
  }

  absl::Status Run() {
    ONWARD_ASSIGN_OR_RETURN(lengths_,
                            SequenceLengths(rnn_, plan_.node, call_.inputs[RnnInput::kLengths]));
    std::fill_n(Scratch(plan_.zeros), hidden_, T(0));
    PackWeights();
    ForRnnTasks(rnn_, [&](const RnnTask& task) { Recur(task); });
    InputGrad();
    WeightGrads();
    for (int64_t d = 0; d < rnn_.directions; ++d) {
      if (T* db = Out(RnnGradOutput::kB)) BiasGrad(d, db + d * 2 * rnn_.gates * hidden_);
      if (rnn_.lstm() && p_ != nullptr) {
        if (T* dp = Out(RnnGradOutput::kP)) PeepholeGrad(d, dp + d * 3 * hidden_);
      }
    }
    return absl::OkStatus();
  }

 private:
  const T* In(int i) const { return InputOrNull<T>(call_, i); }
  T* Out(int i) const { return OutputOrNull<T>(call_, i); }
  T* Scratch(size_t offset) const { return At<T>(call_.workspace, offset); }
  bool Active(int64_t t, int64_t b) const {
    return t >= 0 && t < rnn_.steps && (lengths_.empty() || t < lengths_[b]);
  }
  T* DGates(int64_t d, int64_t t, int64_t b) const {
    return dgates_ + rnn_.KeptRow(d, t, b) * plan_.stride;
  }
  T* Row(int64_t d, int64_t b) const {
    return Scratch(plan_.rows) + (d * rnn_.batch + b) * plan_.row_size;
  }

  // h and C before step t.
  const T* LastState(int64_t d, int64_t t, int64_t b) const {
    const int64_t before = rnn_.Before(d, t);
    if (Active(before, b)) return y_ + rnn_.YRow(d, before, b) * hidden_;
    return h0_ == nullptr ? zeros_ : h0_ + rnn_.StateRow(d, b) * hidden_;
  }
  const T* LastCell(int64_t d, int64_t t, int64_t b) const {
    const int64_t before = rnn_.Before(d, t);
    if (Active(before, b)) return cells_ + rnn_.KeptRow(d, before, b) * hidden_;
    return c0_ == nullptr ? zeros_ : c0_ + rnn_.StateRow(d, b) * hidden_;
  }

  // R of each direction; GRU: first the rows of z and r, then those of h.
  void PackWeights() {
    const int64_t n = rnn_.gates * hidden_;
    for (int64_t d = 0; d < rnn_.directions; ++d) {
      const T* r = In(RnnInput::kR) + d * n * hidden_;
      T* to = Scratch(plan_.r) + d * plan_.r_size;
      const int64_t first = rnn_.gru() ? 2 * hidden_ : n;
      Pack<T>({r, hidden_}, first, hidden_, to);
      if (!rnn_.gru()) continue;
      Pack<T>({r + first * hidden_, hidden_}, hidden_, hidden_,
              to + PackedMatrix<T>::Elements(first, hidden_));
    }
  }
  PackedMatrix<T> Weights(int64_t d, bool second = false) const {
    const T* all = Scratch(plan_.r) + d * plan_.r_size;
    const int64_t first = (rnn_.gru() ? 2 : rnn_.gates) * hidden_;
    if (!second) return {all, first, hidden_};
    return {all + PackedMatrix<T>::Elements(first, hidden_), hidden_, hidden_};
  }

  void Recur(const RnnTask& task) {
    const int64_t d = task.direction, count = task.end - task.begin;
    T* dh = Scratch(plan_.dh) + d * rnn_.batch * hidden_;
    T* dc = rnn_.lstm() ? Scratch(plan_.dc) + d * rnn_.batch * hidden_ : nullptr;
    for (int64_t b = task.begin; b < task.end; ++b) {
      SetRow(dy_h_, d, b, dh);
      if (dc != nullptr) SetRow(dy_c_, d, b, dc);
    }
    for (int64_t s = rnn_.steps - 1; s >= 0; --s) {
      const int64_t t = rnn_.Step(d, s);
      for (int64_t b = task.begin; b < task.end; ++b) {
        if (!Active(t, b)) {
          std::fill_n(DGates(d, t, b), kept_, T(0));
          if (rnn_.gru()) std::fill_n(Row(d, b), plan_.row_size, T(0));
          if (rnn_.gru() && !rnn_.linear_before_reset) std::fill_n(Reset(d, t, b), hidden_, T(0));
          continue;
        }
        T* state = dh + b * hidden_;
        if (dy_ != nullptr) {
          const T* dy = dy_ + rnn_.YRow(d, t, b) * hidden_;
          for (int64_t u = 0; u < hidden_; ++u) state[u] += dy[u];
        }
        if (rnn_.lstm()) {
          LstmCell(d, t, b, state, dc + b * hidden_);
        } else if (rnn_.gru()) {
          GruCell(d, t, b, state);
        } else {
          RnnCell(d, t, b, state);
        }
      }
      const T* rows = DGates(d, t, task.begin);
      T* to = dh + task.begin * hidden_;
      if (rnn_.gru()) GruRecurrence(task, t, dh);
      if (s == 0 && Out(RnnGradOutput::kH0) == nullptr) break;
      AddProduct<T>(rows, plan_.stride, count, Weights(d), nullptr, to, hidden_);
    }
    StoreStates(task, Out(RnnGradOutput::kH0), dh);
    if (rnn_.lstm()) StoreStates(task, Out(RnnGradOutput::kC0), dc);
  }

  void SetRow(const T* from, int64_t d, int64_t b, T* to) const {
    if (from == nullptr) {
      std::fill_n(to + b * hidden_, hidden_, T(0));
    } else {
      std::copy_n(from + rnn_.StateRow(d, b) * hidden_, hidden_, to + b * hidden_);
    }
  }
  void StoreStates(const RnnTask& task, T* to, const T* from) const {
    for (int64_t b = task.begin; to != nullptr && b < task.end; ++b) {
      std::copy_n(from + b * hidden_, hidden_, to + rnn_.StateRow(task.direction, b) * hidden_);
    }
  }

  // h = F(a);  da = dh * F'(a)
  void RnnCell(int64_t d, int64_t t, int64_t b, T* dh) const {
    const T *a = gates_ + rnn_.KeptRow(d, t, b) * kept_, *y = y_ + rnn_.YRow(d, t, b) * hidden_;
    T* da = DGates(d, t, b);
    std::copy_n(dh, hidden_, da);
    ActivateGrad(rnn_.activation(d, 0), clip_, a, y, da, hidden_);
    std::fill_n(dh, hidden_, T(0));
  }

  // C = f*Cp + i*g, h = o * H(C);  with dC summed over both its uses
  //   do = dh*H(C), dC += dh*o*H'(C), di = dC*g, df = dC*Cp, dg = dC*i, dCp = dC*f.
  // Peepholes: the arguments hold Pi*Cp, Pf*Cp and Po*C. input_forget: f = 1 - i.
  void LstmCell(int64_t d, int64_t t, int64_t b, T* dh, T* dc) const {
    const int64_t n = hidden_;
    const T* a = gates_ + rnn_.KeptRow(d, t, b) * kept_;
    const T* cell = cells_ + rnn_.KeptRow(d, t, b) * n;
    const T* last = LastCell(d, t, b);
    const T* peep = p_ == nullptr ? nullptr : p_ + d * 3 * n;
    T *acts = Row(d, b), *da = DGates(d, t, b);
    T *i = acts, *o = acts + n, *f = acts + 2 * n, *g = acts + 3 * n, *out = acts + 4 * n;
    T *di = da, *d_o = da + n, *df = da + 2 * n, *dg = da + 3 * n, *dout = acts + 5 * n;
    const RnnActivation& activation = rnn_.activation(d, 0);
    Activate(activation, clip_, a, acts, 3 * n);
    Activate(rnn_.activation(d, 1), clip_, a + 3 * n, g, n);
    Activate(rnn_.activation(d, 2), kUnlimited, cell, out, n);
    if (rnn_.input_forget) {
      for (int64_t u = 0; u < n; ++u) f[u] = T(1) - i[u];
    }
    for (int64_t u = 0; u < n; ++u) {
      d_o[u] = dh[u] * out[u];
      dout[u] = dh[u] * o[u];
      dh[u] = T(0);
    }
    ActivateGrad(activation, clip_, a + n, o, d_o, n);
    ActivateGrad(rnn_.activation(d, 2), kUnlimited, cell, out, dout, n);
    if (peep != nullptr) {
      for (int64_t u = 0; u < n; ++u) dout[u] += peep[n + u] * d_o[u];
    }
    for (int64_t u = 0; u < n; ++u) {
      const T total = dc[u] + dout[u];
      di[u] = total * g[u];
      df[u] = total * last[u];
      dg[u] = total * i[u];
      dc[u] = total * f[u];
    }
    if (rnn_.input_forget) {
      for (int64_t u = 0; u < n; ++u) di[u] -= df[u];
      std::fill_n(df, n, T(0));
    }
    ActivateGrad(activation, clip_, a, i, di, n);
    if (!rnn_.input_forget) ActivateGrad(activation, clip_, a + 2 * n, f, df, n);
    ActivateGrad(rnn_.activation(d, 1), clip_, a + 3 * n, g, dg, n);
    if (peep != nullptr) {
      for (int64_t u = 0; u < n; ++u) dc[u] += peep[u] * di[u] + peep[2 * n + u] * df[u];
    }
  }

  // h = (1-z)*g + z*hp;  dz = dh*(hp - g), dg = dh*(1-z), dhp = dh*z + what
  // comes through the gates. With linear_before_reset the argument of g holds
  // r*q, q = hp*R + Rb:  dr = da*q, dq = da*r. Otherwise it holds (r*hp)*R, and
  // GruRecurrence does the rest.
  void GruCell(int64_t d, int64_t t, int64_t b, T* dh) const {
    const int64_t n = hidden_;
    const T *a = gates_ + rnn_.KeptRow(d, t, b) * kept_, *last = LastState(d, t, b);
    T *acts = Row(d, b), *da = DGates(d, t, b);
    T *z = acts, *r = acts + n, *g = acts + 2 * n;
    T *dz = da, *dr = da + n, *dg = da + 2 * n;
    Activate(rnn_.activation(d, 0), clip_, a, acts, 2 * n);
    Activate(rnn_.activation(d, 1), clip_, a + 2 * n, g, n);
    for (int64_t u = 0; u < n; ++u) {
      dz[u] = dh[u] * (last[u] - g[u]);
      dg[u] = dh[u] * (T(1) - z[u]);
      dh[u] *= z[u];
    }
    ActivateGrad(rnn_.activation(d, 0), clip_, a, z, dz, n);
    ActivateGrad(rnn_.activation(d, 1), clip_, a + 2 * n, g, dg, n);
    if (rnn_.linear_before_reset) {
      const T* q = a + 3 * n;
      T* dq = da + 3 * n;
      for (int64_t u = 0; u < n; ++u) {
        dr[u] = dg[u] * q[u];
        dq[u] = dg[u] * r[u];
      }
      ActivateGrad(rnn_.activation(d, 0), clip_, a + n, r, dr, n);
    } else {
      T* reset = Reset(d, t, b);
      for (int64_t u = 0; u < n; ++u) reset[u] = r[u] * last[u];
      std::fill_n(g, n, T(0));  // becomes d(r*hp)
    }
  }

  // The part of the candidate's product in dh: dq*R; or, with e = dg*R,
  // dr = e*hp and dhp += e*r.
  void GruRecurrence(const RnnTask& task, int64_t t, T* dh) const {
    const int64_t d = task.direction, n = hidden_, count = task.end - task.begin;
    const T* rows = DGates(d, t, task.begin);
    if (rnn_.linear_before_reset) {
      AddProduct<T>(rows + 3 * n, plan_.stride, count, Weights(d, true), nullptr,
                    dh + task.begin * n, n);
      return;
    }
    AddProduct<T>(rows + 2 * n, plan_.stride, count, Weights(d, true), nullptr,
                  Row(d, task.begin) + 2 * n, plan_.row_size);
    for (int64_t b = task.begin; b < task.end; ++b) {
      if (!Active(t, b)) continue;
      const T *last = LastState(d, t, b), *acts = Row(d, b);
      const T *r = acts + n, *e = acts + 2 * n;
      T *dr = DGates(d, t, b) + n, *state = dh + b * n;
      for (int64_t u = 0; u < n; ++u) {
        dr[u] = e[u] * last[u];
        state[u] += e[u] * r[u];
      }
      ActivateGrad(rnn_.activation(d, 0), clip_, gates_ + rnn_.KeptRow(d, t, b) * kept_ + n, r, dr,
                   n);
    }
  }

  // dX = dgates * W, summed over the directions.
  void InputGrad() {
    T* dx = Out(RnnGradOutput::kX);
    if (dx == nullptr) return;
    T* to = rnn_.batch_major ? Scratch(plan_.dx) : dx;
    const int64_t n = rnn_.gates * hidden_;
    for (int64_t d = 0; d < rnn_.directions; ++d) {
      const PackedMatrix<T> w = Pack<T>({In(RnnInput::kW) + d * n * rnn_.inputs, rnn_.inputs}, n,
                                        rnn_.inputs, Scratch(plan_.packed));
      LargeProduct<T>({DGates(d, 0, 0), plan_.stride}, rnn_.steps * rnn_.batch,
                      {{w, to, rnn_.inputs}}, d > 0);
    }
    if (rnn_.batch_major) SwapFirstAxes(to, rnn_.steps, rnn_.batch, rnn_.inputs, dx);
  }

  T* Reset(int64_t d, int64_t t, int64_t b) const {
    return Scratch(plan_.reset) + rnn_.KeptRow(d, t, b) * hidden_;
  }

  // X of all steps as a right matrix.
  PackedMatrix<T> PackX() {
    const T* x = In(RnnInput::kX);
    if (rnn_.batch_major) {
      SwapFirstAxes(x, rnn_.batch, rnn_.steps, rnn_.inputs, Scratch(plan_.x));
      x = Scratch(plan_.x);
    }
    return Pack<T>({x, rnn_.inputs}, rnn_.steps * rnn_.batch, rnn_.inputs, Scratch(plan_.packed));
  }

  // The states before each step as a right matrix.
  PackedMatrix<T> PackLast(int64_t d) {
    T* last = Scratch(plan_.last);
    ParallelFor(rnn_.steps, 8, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        for (int64_t b = 0; b < rnn_.batch; ++b) {
          std::copy_n(LastState(d, t, b), hidden_, last + (t * rnn_.batch + b) * hidden_);
        }
      }
    });
    return PackStates(last);
  }
  PackedMatrix<T> PackStates(const T* states) {
    return Pack<T>({states, hidden_}, rnn_.steps * rnn_.batch, hidden_,
                   Scratch(plan_.packed_states));
  }

  // dW = dgates^T * X, dR = dgates^T * (the states before each step). The
  // candidate of GRU saw r * state, or with linear_before_reset has its own
  // derivatives.
  void WeightGrads() {
    T *dw = Out(RnnGradOutput::kW), *dr = Out(RnnGradOutput::kR);
    if (dw == nullptr && dr == nullptr) return;
    PackedMatrix<T> x = {}, last = {};
    if (dw != nullptr) x = PackX();
    const int64_t n = hidden_;
    for (int64_t d = 0; d < rnn_.directions; ++d) {
      if (dr != nullptr) last = PackLast(d);
      // Gates [from, from + count): of dgates, with what multiplied them.
      const auto add = [&](int64_t from, int64_t count, int64_t gate, bool by_x,
                           const PackedMatrix<T>* states) {
        absl::InlinedVector<ProductPart<T>, 2> parts;
        const int64_t row = (d * rnn_.gates + gate) * n;
        if (by_x && dw != nullptr) parts.push_back({x, dw + row * rnn_.inputs, rnn_.inputs});
        if (states != nullptr && dr != nullptr) parts.push_back({*states, dr + row * n, n});
        LargeProduct<T>({DGates(d, 0, 0) + from * n, plan_.stride, true}, count * n, parts);
      };
      if (!rnn_.gru()) {
        add(0, rnn_.gates, 0, true, &last);
        continue;
      }
      add(0, 2, 0, true, &last);
      if (rnn_.linear_before_reset) {
        add(2, 1, 2, true, nullptr);
        add(3, 1, 2, false, &last);
      } else {
        if (dr != nullptr) last = PackStates(Reset(d, 0, 0));
        add(2, 1, 2, true, &last);
      }
    }
  }

  // dWb = dRb = sum of dgates (GRU with linear_before_reset: dRb of h is the sum
  // of dq).
  void BiasGrad(int64_t d, T* db) {
    const int64_t n = rnn_.gates * hidden_;
    SumRows(DGates(d, 0, 0), n, db);
    std::copy_n(db, n, db + n);
    if (!rnn_.linear_before_reset) return;
    SumRows(DGates(d, 0, 0) + 3 * hidden_, hidden_, db + n + 2 * hidden_);
  }

  void SumRows(const T* from, int64_t columns, T* sums) const {
    constexpr int64_t kColumns = 64, kGrain = 65536;
    const int64_t rows = rnn_.steps * rnn_.batch, blocks = (columns + kColumns - 1) / kColumns;
    ParallelFor(blocks, kGrain / std::max<int64_t>(rows * kColumns, 1) + 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t block = begin; block < end; ++block) {
                    const int64_t first = block * kColumns,
                                  count = std::min(kColumns, columns - first);
                    T totals[kColumns] = {};
                    for (int64_t row = 0; row < rows; ++row) {
                      const T* x = from + row * plan_.stride + first;
                      for (int64_t j = 0; j < count; ++j) totals[j] += x[j];
                    }
                    std::copy_n(totals, count, sums + first);
                  }
                });
  }

  // dPi = sum di*Cp, dPo = sum do*C, dPf = sum df*Cp
  void PeepholeGrad(int64_t d, T* dp) const {
    const int64_t n = hidden_;
    std::fill_n(dp, 3 * n, T(0));
    for (int64_t t = 0; t < rnn_.steps; ++t) {
      for (int64_t b = 0; b < rnn_.batch; ++b) {
        if (!Active(t, b)) continue;
        const T *da = DGates(d, t, b), *last = LastCell(d, t, b);
        const T* cell = cells_ + rnn_.KeptRow(d, t, b) * n;
        for (int64_t u = 0; u < n; ++u) {
          dp[u] += da[u] * last[u];
          dp[n + u] += da[n + u] * cell[u];
          dp[2 * n + u] += da[2 * n + u] * last[u];
        }
      }
    }
  }

  static constexpr T kUnlimited = std::numeric_limits<T>::infinity();

  const GradPlan& plan_;
  const RnnPlan& rnn_;
  const KernelCall& call_;
  const int64_t hidden_, kept_;  // kept_: elements of a row of gates_
  const T clip_;
  const T *h0_, *c0_ = nullptr, *p_ = nullptr, *y_, *gates_, *cells_ = nullptr;
  const T *dy_, *dy_h_, *dy_c_ = nullptr, *zeros_;
  T* dgates_;
  std::vector<int64_t> lengths_;
};

template <typename T>
Kernel MakeBackward(const KernelRequest& r, const RnnPlan& rnn) {
  auto plan = std::make_shared<GradPlan>();
  plan->rnn = rnn;
  plan->node = r.node;
  WorkspacePlan space;
  const int64_t h = rnn.hidden, n = rnn.gates * h, rows = rnn.steps * rnn.batch;
  const int64_t states = rnn.directions * rnn.batch * h, all_rows = rnn.directions * rows;
  const auto add = [&](int64_t elements) { return space.Add(elements * sizeof(T)); };
  const auto packed = [](int64_t depth, int64_t columns) {
    return PackedMatrix<T>::Elements(depth, columns);
  };
  if (rnn.batch_major) plan->x = add(rows * rnn.inputs);
  if (rnn.batch_major) plan->dx = add(rows * rnn.inputs);
  plan->packed = add(std::max(packed(n, rnn.inputs), packed(rows, rnn.inputs)));
  plan->packed_states = add(packed(rows, h));
  plan->r_size = rnn.gru() ? packed(2 * h, h) + packed(h, h) : packed(n, h);
  plan->r = add(rnn.directions * plan->r_size);
  // Rows that are a power of two apart would meet in the same cache lines.
  plan->stride = rnn.width * h + 16;
  plan->dgates = add(all_rows * plan->stride);
  plan->last = add(rows * h);
  if (rnn.gru() && !rnn.linear_before_reset) plan->reset = add(all_rows * h);
  plan->dh = add(states);
  if (rnn.lstm()) plan->dc = add(states);
  plan->row_size = (rnn.lstm() ? 6 : 3) * h;
  plan->rows = add(rnn.directions * rnn.batch * plan->row_size);
  plan->zeros = add(h);
  Kernel kernel;
  kernel.workspace_bytes = space.bytes();
  kernel.run = [plan = std::move(plan)](const KernelCall& call) {
    return GradRun<T>(*plan, call).Run();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeRnnGrad(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const RnnPlan rnn, PlanRnn(r));
  const int first = rnn.standard_inputs();
  std::vector<Shape> shapes = {rnn.YShape(), rnn.GatesShape()};
  if (rnn.lstm()) shapes.push_back(rnn.CellsShape());
  const size_t required = shapes.size();
  shapes.push_back(rnn.YShape());
  shapes.insert(shapes.end(), rnn.lstm() ? 2 : 1, rnn.StateShape());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int input = first + static_cast<int>(i);
    if (r.HasInput(input) ? r.in(input) != shapes[i] : i < required) {
      return NodeError(r.node,
                       absl::StrCat("input ", input, " must have shape ", shapes[i].ToString()));
    }
  }
  Kernel kernel;
  const bool known = DispatchFloat(r.inputs[RnnInput::kX].dtype,
                                   [&]<typename T>() { kernel = MakeBackward<T>(r, rnn); });
  if (!known) return NodeUnimplemented(r.node, "takes floating-point tensors");
  return kernel;
}

// Each output is like one of the standard inputs, which it then requires.
int LikeOf(int output) { return output < RnnGradOutput::kH0 ? output : output + 1; }

absl::StatusOr<Kernel> MakeCheckedRnnGrad(const KernelRequest& r) {
  for (int i = 0; i < static_cast<int>(r.outputs.size()); ++i) {
    if (r.HasOutput(i) && !r.HasInput(LikeOf(i))) {
      return NodeError(
          r.node, absl::StrCat("output ", i, " is wanted, but input ", LikeOf(i), " is omitted"));
    }
  }
  return MakeRnnGrad(r);
}

}  // namespace

void RegisterRnnGradKernels(KernelTable& table) {
  const auto shape = [](const KernelRequest& r, int output) { return r.in(LikeOf(output)); };
  const KernelTable::Entry entry = {
      "reference", 1, Adapt(MakeCheckedRnnGrad, shape, {.shape_only = {RnnInput::kB}}),
      "float, double, float16, bfloat16"};
  for (const char* op : {"RNNGrad", "GRUGrad", "LSTMGrad"}) table.Add(op, entry, kOnwardDomain);
}

}  // namespace onward

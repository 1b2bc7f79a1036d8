// SPDX-License-Identifier: Apache-2.0
// Bodies of RNNGrad, GRUGrad and LSTMGrad: backwards through the steps for the
// derivatives of the gates' arguments, then one product for all steps each.
#include <utility>

#include "autograd/functions.h"
#include "autograd/functions/rnn.h"

namespace onward {
namespace {

// The inputs of a Grad call behind the standard ones; dys may be undefined.
struct KeptStates {
  Expr y, gates, cells, dy, dy_h, dy_c;
};

KeptStates KeptStatesOf(const RnnCall& rnn, const std::vector<Expr>& in) {
  size_t i = rnn.standard_inputs();
  KeptStates k;
  k.y = Argument(in, i++);
  k.gates = Argument(in, i++);
  if (rnn.lstm()) k.cells = Argument(in, i++);
  k.dy = Argument(in, i++);
  k.dy_h = Argument(in, i++);
  if (rnn.lstm()) k.dy_c = Argument(in, i++);
  return k;
}

// Gradients for one direction.
struct DirectionGrads {
  Expr for_w;  // [T, B, gates*H]: of the gates' arguments, as W's product sees them
  Expr dr;     // [gates*H, H]
  Expr dwb, drb, dh0, dc0, dp;
};

class Backward {
 public:
  Backward(const RnnCall& rnn, const std::vector<Expr>& in, const KeptStates& kept,
           int64_t direction)
      : rnn_(rnn), d_(direction), v_(ValuesOf(rnn, in, kept.y, direction)) {
    gates_ = At(kept.gates, d_);
    if (rnn.lstm()) cells_ = At(kept.cells, d_);
    if (kept.dy.defined()) {
      dy_ = Gather(rnn.batch_major ? Transpose(kept.dy, {1, 2, 0, 3}) : kept.dy,
                   kept.dy.builder().Int(d_), 1);
    }
    dh_ = State(kept.dy_h);
    if (rnn.lstm()) dc_ = State(kept.dy_c);
  }

  DirectionGrads Run() {
    if (rnn_.lstm()) return Lstm();
    return rnn_.gru() ? Gru() : Rnn();
  }

 private:
  Expr State(const Expr& given) const {
    if (!given.defined()) return NoState(rnn_, v_.y);
    return Gather(given, given.builder().Int(d_), rnn_.batch_major ? 1 : 0);
  }
  // The slices that every backward step sees first.
  enum { kActive, kDy, kOthers };
  // Against the order of the steps; `others` are scanned behind the above.
  RnnSteps StepsBack(std::vector<Expr> states, const std::vector<Expr>& others,
                     absl::FunctionRef<std::vector<Expr>(const RnnStep&)> each) const {
    std::vector<Expr> scanned = {v_.active, dy_};
    scanned.insert(scanned.end(), others.begin(), others.end());
    return ForSteps(rnn_, d_, /*backward=*/true, std::move(states), scanned, each);
  }
  // dh of a step, what later steps and Y give.
  static Expr StateGrad(const RnnStep& step) {
    const Expr& dy = step.slices[kDy];
    return dy.defined() ? step.states[0] + dy : step.states[0];
  }
  // A gradient that passes steps after the end of a sequence unchanged.
  static Expr Passed(const Expr& next, const Expr& now, const RnnStep& step) {
    const Expr& active = step.slices[kActive];
    return active.defined() ? Where(active, next, now) : next;
  }
  // sum over the steps of da^T * b
  static Expr Product(const Expr& da, const Expr& b) {
    return ReduceSum(MatMul(Transpose(da, {0, 2, 1}), b), {0}, false);
  }
  static Expr SumAll(const Expr& da) { return ReduceSum(da, {0, 1}, false); }

  // h = F(a);  da = dh * F'(a)
  DirectionGrads Rnn() {
    const Expr slope = Slope(0, gates_);
    const RnnSteps steps = StepsBack({dh_}, {slope}, [&](const RnnStep& step) {
      const Expr da = Masked(StateGrad(step) * step.slices[kOthers], step.slices[kActive]);
      const Expr last = MatMul(da, step.around(v_.r));
      return std::vector<Expr>{Passed(last, step.states[0], step), da};
    });
    DirectionGrads g;
    g.for_w = steps.results[0];
    g.dr = Product(g.for_w, v_.last);
    g.dwb = g.drb = SumAll(g.for_w);
    g.dh0 = steps.states[0];
    return g;
  }

  // h = (1-z)*g + z*hp;  dz = dh*(hp - g), dg = dh*(1-z), dhp = dh*z + ...
  // The candidate's argument holds r*q, q = hp*R + Rb:  dr = da*q, dq = da*r;
  // or (r*hp)*R:  e = da*R, dr = e*hp, dhp += e*r.
  DirectionGrads Gru() {
    const std::vector<Expr> a = Parts(gates_, rnn_.width());
    const Expr z = Value(0, a[0]), r = Value(0, a[1]), g = Value(1, a[2]);
    const bool linear = rnn_.linear_before_reset;
    const Expr to_z = (v_.last - g) * Slope(0, a[0], z), to_g = (1 - z) * Slope(1, a[2], g);
    const Expr to_r = (linear ? a[3] : v_.last) * Slope(0, a[1], r);
    GraphBuilder& b = z.builder();
    const std::vector<Expr> weights = b.Ops("Split", {v_.r}, 3, {{"axis", 0}, {"num_outputs", 3}});
    const auto each = [&](const RnnStep& step) -> std::vector<Expr> {
      const Expr *of = &step.slices[kOthers], &active = step.slices[kActive];  // z, r, to_*
      const Expr dh = StateGrad(step), dz = dh * of[2], dg = dh * of[3];
      const Expr dq = linear ? dg * of[1] : dg;
      const Expr e = MatMul(dq, step.around(weights[2]));
      const Expr dr = (linear ? dg : e) * of[4];
      const Expr last = dh * of[0] + (linear ? e : e * of[1]) +
                        MatMul(dz, step.around(weights[0])) + MatMul(dr, step.around(weights[1]));
      return {Passed(last, step.states[0], step), Masked(Concat({dz, dr, dg}, -1), active),
              Masked(dq, active)};
    };
    const RnnSteps steps = StepsBack({dh_}, {z, r, to_z, to_g, to_r}, each);
    DirectionGrads grads;
    grads.for_w = steps.results[0];
    const std::vector<Expr> parts = Parts(grads.for_w, 3);
    const Expr zr = Concat({parts[0], parts[1]}, -1), dq = steps.results[1];
    grads.dr = Concat({Product(zr, v_.last), Product(dq, linear ? v_.last : r * v_.last)}, 0);
    grads.dwb = SumAll(grads.for_w);
    grads.drb = SumAll(Concat({zr, dq}, -1));
    grads.dh0 = steps.states[0];
    return grads;
  }

  // C = f*Cp + i*g, h = o * H(C);  with dC summed over both its uses
  //   do = dh*H(C), dC += dh*o*H'(C), di = dC*g, df = dC*Cp, dg = dC*i, dCp = dC*f.
  // Peepholes: the arguments hold Pi*Cp, Pf*Cp and Po*C. input_forget: f = 1 - i.
  DirectionGrads Lstm() {
    const std::vector<Expr> a = Parts(gates_, 4);
    const Expr i = Value(0, a[0]), o = Value(0, a[1]), g = Value(1, a[3]);
    const Expr f = rnn_.input_forget ? 1 - i : Value(0, a[2]);
    const Expr out = Value(2, cells_), last = LastCells();
    const Expr to_o = out * Slope(0, a[1], o), to_c = o * Slope(2, cells_, out);
    const Expr to_i = (rnn_.input_forget ? g - last : g) * Slope(0, a[0], i);
    const Expr to_f = rnn_.input_forget ? ZerosLike(last) : last * Slope(0, a[2], f);
    const Expr to_g = i * Slope(1, a[3], g);
    std::vector<Expr> peep;
    if (v_.p.defined()) peep = Parts(v_.p, 3);
    const auto each = [&](const RnnStep& step) -> std::vector<Expr> {
      const Expr* of = &step.slices[kOthers];  // f, to_o, to_c, to_i, to_f, to_g
      const Expr dh = StateGrad(step), d_o = dh * of[1];
      Expr dc = step.states[1] + dh * of[2];
      if (v_.p.defined()) dc = dc + d_o * step.around(peep[1]);
      const Expr di = dc * of[3], df = dc * of[4], dg = dc * of[5];
      Expr before = dc * of[0];
      if (v_.p.defined()) before = before + di * step.around(peep[0]) + df * step.around(peep[2]);
      const Expr da = Masked(Concat({di, d_o, df, dg}, -1), step.slices[kActive]);
      return {Passed(MatMul(da, step.around(v_.r)), step.states[0], step),
              Passed(before, step.states[1], step), da};
    };
    const RnnSteps steps = StepsBack({dh_, dc_}, {f, to_o, to_c, to_i, to_f, to_g}, each);
    DirectionGrads grads;
    grads.for_w = steps.results[0];
    grads.dr = Product(grads.for_w, v_.last);
    grads.dwb = grads.drb = SumAll(grads.for_w);
    grads.dh0 = steps.states[0];
    grads.dc0 = steps.states[1];
    if (v_.p.defined()) {
      const std::vector<Expr> da = Parts(grads.for_w, 4);
      grads.dp = Concat({SumAll(da[0] * last), SumAll(da[1] * cells_), SumAll(da[2] * last)}, 0);
    }
    return grads;
  }

  // C before each step. Where a sequence starts at its own end, that is C0.
  Expr LastCells() const {
    const auto each = [](const RnnStep& step) -> std::vector<Expr> {
      const Expr &c = step.states[0], &cell = step.slices[0], &active = step.slices[1];
      return {active.defined() ? Where(active, cell, c) : cell, c};
    };
    return ForSteps(rnn_, d_, /*backward=*/false, {v_.c0}, {cells_, v_.active}, each).results[0];
  }

  Expr Value(int i, const Expr& a) const { return rnn_.function(d_, i).Value(a); }
  Expr Slope(int i, const Expr& a, const Expr& y) const { return rnn_.function(d_, i).Slope(a, y); }
  Expr Slope(int i, const Expr& a) const { return Slope(i, a, Value(i, a)); }

  const RnnCall& rnn_;
  const int64_t d_;
  const RnnValues v_;
  Expr gates_, cells_, dy_, dh_, dc_;
};

}  // namespace

std::vector<Expr> RnnGradBody(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const std::optional<RnnCall> rnn = ReadRnnCall(b, call, in[0]);
  if (!rnn) return {};
  const KeptStates kept = KeptStatesOf(*rnn, in);
  if (!kept.y.defined() || !kept.gates.defined() || (rnn->lstm() && !kept.cells.defined())) {
    FailAt(b, call, "Y or what the forward pass kept is missing");
    return {};
  }
  Expr dx;
  std::vector<Expr> dw, dr, db, dh0, dc0, dp;
  for (int64_t d = 0; d < rnn->directions; ++d) {
    const RnnValues v = ValuesOf(*rnn, in, kept.y, d);
    const DirectionGrads g = Backward(*rnn, in, kept, d).Run();
    const Expr part = MatMul(g.for_w, v.w);
    dx = dx.defined() ? dx + part : part;
    dw.push_back(ReduceSum(MatMul(Transpose(g.for_w, {0, 2, 1}), v.x), {0}, false));
    dr.push_back(g.dr);
    db.push_back(Concat({g.dwb, g.drb}, 0));
    dh0.push_back(g.dh0);
    if (rnn->lstm()) dc0.push_back(g.dc0);
    if (g.dp.defined()) dp.push_back(g.dp);
  }
  const auto states = [&](const std::vector<Expr>& parts) {
    return rnn->batch_major ? Transpose(Stack(parts), {1, 0, 2}) : Stack(parts);
  };
  std::vector<Expr> results = {rnn->batch_major ? Transpose(dx, {1, 0, 2}) : dx, Stack(dw),
                               Stack(dr), Stack(db), states(dh0)};
  if (!rnn->lstm()) return results;
  results.push_back(states(dc0));
  results.push_back(dp.empty() ? Expr() : Stack(dp));
  return results;
}

}  // namespace onward

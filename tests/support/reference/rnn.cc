// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM, one number at a time.
#include <cctype>
#include <cmath>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

struct Activation {
  std::string name;
  Number alpha = 0, beta = 0;

  Number operator()(Number x) const {
    if (name == "relu") return x > 0 ? x : 0;
    if (name == "tanh") return std::tanh(x);
    if (name == "sigmoid") return 1 / (1 + std::exp(-x));
    if (name == "affine") return alpha * x + beta;
    if (name == "leakyrelu") return x >= 0 ? x : alpha * x;
    if (name == "thresholdedrelu") return x > alpha ? x : 0;
    if (name == "scaledtanh") return alpha * std::tanh(beta * x);
    if (name == "hardsigmoid") return std::fmin(std::fmax(alpha * x + beta, Number{0}), Number{1});
    if (name == "elu") return x >= 0 ? x : alpha * std::expm1(x);
    if (name == "softsign") return x / (1 + std::fabs(x));
    if (name == "softplus") return std::log1p(std::exp(x));
    throw std::runtime_error("no reference for the activation " + name);
  }
};

struct Defaults {
  bool alpha = false, beta = false;  // whether the activation takes them
  Number usual_alpha = 0, usual_beta = 0;
};

Defaults DefaultsOf(const std::string& name) {
  if (name == "affine") return {true, true, 1, 0};
  if (name == "leakyrelu") return {true, false, 0.01f, 0};
  if (name == "thresholdedrelu") return {true, false, 1, 0};
  if (name == "scaledtanh") return {true, true, 1, 1};
  if (name == "hardsigmoid") return {true, true, 0.2f, 0.5f};
  if (name == "elu") return {true, false, 1, 0};
  return {};
}

std::vector<float> Floats(const Node& node, const std::string& name) {
  auto it = node.attributes.find(name);
  if (it == node.attributes.end()) return {};
  return std::get<std::vector<float>>(it->second.value);
}

// Those of all directions, one after the other; numbers go to those that take some, in turn.
std::vector<Activation> ActivationsOf(const Node& node, std::vector<std::string> usual,
                                      int64_t directions) {
  std::vector<std::string> names = node.Strings("activations");
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), usual.begin(), usual.end());
  }
  const std::vector<float> alphas = Floats(node, "activation_alpha");
  const std::vector<float> betas = Floats(node, "activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<Activation> found;
  for (std::string& name : names) {
    for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
    const Defaults d = DefaultsOf(name);
    Activation a{name, d.usual_alpha, d.usual_beta};
    if (d.alpha && alpha < alphas.size()) a.alpha = alphas[alpha++];
    if (d.beta && beta < betas.size()) a.beta = betas[beta++];
    found.push_back(std::move(a));
  }
  return found;
}

// One operator's inputs by name, whatever their layout.
struct Recurrence {
  const Call& c;
  int64_t gates, hidden, directions, steps, batch, inputs;
  bool batch_major;
  Number clip;

  Recurrence(const Call& call, int64_t gate_count)
      : c(call), gates(gate_count), hidden(call.in[2].shape[2]), directions(call.in[1].shape[0]) {
    batch_major = c.node.Int("layout", 0) != 0;
    steps = c.in[0].shape[batch_major ? 1 : 0];
    batch = c.in[0].shape[batch_major ? 0 : 1];
    inputs = c.in[0].shape[2];
    clip = c.node.Float("clip", 0);
  }

  Number X(int64_t t, int64_t b, int64_t i) const {
    return c.in[0][batch_major ? Index{b, t, i} : Index{t, b, i}];
  }
  Number Initial(size_t input, int64_t d, int64_t b, int64_t h) const {
    return c.Has(input) ? c.in[input][batch_major ? Index{b, d, h} : Index{d, b, h}] : 0;
  }
  Number Bias(int64_t d, int64_t row, bool recurrent) const {
    return c.Has(3) ? c.in[3][{d, row + (recurrent ? gates * hidden : 0)}] : 0;
  }
  int64_t Length(int64_t b) const { return c.Has(4) ? c.in[4].Ints()[b] : steps; }
  bool Backwards(int64_t d) const {
    return d == 1 || c.node.String("direction", "forward") == "reverse";
  }
  // x W^T + Wb of row `gate * hidden + h`.
  Number FromInput(int64_t d, int64_t gate, int64_t h, int64_t t, int64_t b) const {
    const int64_t row = gate * hidden + h;
    Number sum = Bias(d, row, false);
    for (int64_t i = 0; i < inputs; ++i) sum += X(t, b, i) * c.in[1][{d, row, i}];
    return sum;
  }
  // state R^T + Rb.
  Number FromState(int64_t d, int64_t gate, int64_t h, const std::vector<Number>& state) const {
    const int64_t row = gate * hidden + h;
    Number sum = Bias(d, row, true);
    for (int64_t i = 0; i < hidden; ++i) sum += state[i] * c.in[2][{d, row, i}];
    return sum;
  }
  Number Clipped(Number x) const { return clip == 0 ? x : std::fmax(-clip, std::fmin(clip, x)); }
};

// What one step makes of the states h and c.
template <typename Step>
Arrays Run(const Recurrence& r, bool cells, Step step) {
  const DType dtype = r.c.in[0].dtype;
  const Shape all = r.batch_major ? Shape{r.batch, r.steps, r.directions, r.hidden}
                                  : Shape{r.steps, r.directions, r.batch, r.hidden};
  const Shape last = r.batch_major ? Shape{r.batch, r.directions, r.hidden}
                                   : Shape{r.directions, r.batch, r.hidden};
  Array y(dtype, all), y_h(dtype, last), y_c(dtype, last);
  for (int64_t d = 0; d < r.directions; ++d) {
    for (int64_t b = 0; b < r.batch; ++b) {
      std::vector<Number> h(r.hidden), c(r.hidden);
      for (int64_t i = 0; i < r.hidden; ++i) {
        h[i] = r.Initial(5, d, b, i);
        c[i] = cells ? r.Initial(6, d, b, i) : 0;
      }
      for (int64_t s = 0; s < r.Length(b); ++s) {
        const int64_t t = r.Backwards(d) ? r.Length(b) - 1 - s : s;
        step(d, t, b, h, c);
        for (int64_t i = 0; i < r.hidden; ++i) {
          y[r.batch_major ? Index{b, t, d, i} : Index{t, d, b, i}] = h[i];
        }
      }
      for (int64_t i = 0; i < r.hidden; ++i) {
        const Index at = r.batch_major ? Index{b, d, i} : Index{d, b, i};
        y_h[at] = h[i];
        y_c[at] = c[i];
      }
    }
  }
  if (cells) return {y, y_h, y_c};
  return {y, y_h};
}

using State = std::vector<Number>;

Arrays Rnn(const Call& c) {
  const Recurrence r(c, 1);
  const auto f = ActivationsOf(c.node, {"Tanh"}, r.directions);
  return Run(r, false, [&](int64_t d, int64_t t, int64_t b, State& h, State&) {
    State next(h.size());
    for (int64_t i = 0; i < r.hidden; ++i) {
      next[i] = f[d](r.Clipped(r.FromInput(d, 0, i, t, b) + r.FromState(d, 0, i, h)));
    }
    h = next;
  });
}

// Gates z, r, h.
Arrays Gru(const Call& c) {
  const Recurrence r(c, 3);
  const auto f = ActivationsOf(c.node, {"Sigmoid", "Tanh"}, r.directions);
  const bool linear = c.node.Int("linear_before_reset", 0) != 0;
  return Run(r, false, [&](int64_t d, int64_t t, int64_t b, State& h, State&) {
    State z(h.size()), reset(h.size()), scaled(h.size()), next(h.size());
    const auto gate = [&](int64_t g, int64_t i) {
      return f[2 * d](r.Clipped(r.FromInput(d, g, i, t, b) + r.FromState(d, g, i, h)));
    };
    for (int64_t i = 0; i < r.hidden; ++i) {
      z[i] = gate(0, i);
      reset[i] = gate(1, i);
      scaled[i] = reset[i] * h[i];
    }
    for (int64_t i = 0; i < r.hidden; ++i) {
      const Number from_state =
          linear ? reset[i] * r.FromState(d, 2, i, h) : r.FromState(d, 2, i, scaled);
      const Number candidate = f[2 * d + 1](r.Clipped(r.FromInput(d, 2, i, t, b) + from_state));
      next[i] = (1 - z[i]) * candidate + z[i] * h[i];
    }
    h = next;
  });
}

// Gates i, o, f, c; peepholes i, o, f.
Arrays Lstm(const Call& c) {
  const Recurrence r(c, 4);
  const auto f = ActivationsOf(c.node, {"Sigmoid", "Tanh", "Tanh"}, r.directions);
  const bool coupled = c.node.Int("input_forget", 0) != 0;
  return Run(r, true, [&](int64_t d, int64_t t, int64_t b, State& h, State& cell) {
    const auto peep = [&](int64_t gate, int64_t i) {
      return c.Has(7) ? c.in[7][{d, gate * r.hidden + i}] : 0;
    };
    const auto sum = [&](int64_t gate, int64_t i) {
      return r.FromInput(d, gate, i, t, b) + r.FromState(d, gate, i, h);
    };
    const Activation *gate = &f[3 * d], *candidate = &f[3 * d + 1], *shown = &f[3 * d + 2];
    State next(h.size());
    State next_cell(h.size());
    for (int64_t i = 0; i < r.hidden; ++i) {
      const Number in = (*gate)(r.Clipped(sum(0, i) + peep(0, i) * cell[i]));
      const Number forget = coupled ? 1 - in : (*gate)(r.Clipped(sum(2, i) + peep(2, i) * cell[i]));
      next_cell[i] = forget * cell[i] + in * (*candidate)(r.Clipped(sum(3, i)));
      const Number out = (*gate)(r.Clipped(sum(1, i) + peep(1, i) * next_cell[i]));
      next[i] = out * (*shown)(next_cell[i]);
    }
    h = next;
    cell = next_cell;
  });
}

}  // namespace

const Table& RnnTable() {
  static const auto* const table = new Table{{"RNN", Rnn}, {"GRU", Gru}, {"LSTM", Lstm}};
  return *table;
}

}  // namespace onward::reference

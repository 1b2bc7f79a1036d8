// SPDX-License-Identifier: Apache-2.0
// Bodies of RNNTraining, GRUTraining and LSTMTraining: the standard operator,
// and from its Y what the backward pass needs.
#include "autograd/functions/rnn.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/functions.h"
#include "core/base/status.h"

namespace onward {
namespace {

// a * m^T, plus biases where there are any.
Expr Linear(const Expr& a, const Expr& m, const Expr& bias = {}, const Expr& other_bias = {}) {
  Expr y = MatMul(a, Transposed(m));
  if (bias.defined()) y = y + bias;
  if (other_bias.defined()) y = y + other_bias;
  return y;
}

// Rows [first, last) of n equal parts of a weight or bias.
Expr Rows(const Expr& m, int n, int first, int last) {
  if (!m.defined()) return m;
  GraphBuilder& b = m.builder();
  const std::vector<Expr> parts = b.Ops("Split", {m}, n, {{"axis", 0}, {"num_outputs", n}});
  if (last - first == 1) return parts[first];
  return Concat({parts.begin() + first, parts.begin() + last}, 0);
}

// a = W x + R h of all gates of all steps.
Expr PlainGates(const RnnValues& v) { return Linear(v.x, v.w, v.wb, v.rb) + Linear(v.last, v.r); }

// z and r as above; the candidate sees (r * h) R, or with linear_before_reset
// r * q, q = h R + Rb, which is kept too.
Expr GruGates(const RnnCall& rnn, const RnnValues& v, int64_t d) {
  auto part = [](const Expr& m, int first, int last) { return Rows(m, 3, first, last); };
  const Expr zr = Linear(v.x, part(v.w, 0, 2), part(v.wb, 0, 2), part(v.rb, 0, 2)) +
                  Linear(v.last, part(v.r, 0, 2));
  const Expr r = rnn.function(d, 0).Value(Parts(zr, 2)[1]);
  const Expr x = Linear(v.x, part(v.w, 2, 3), part(v.wb, 2, 3));
  if (!rnn.linear_before_reset) {
    return Concat({zr, x + Linear(r * v.last, part(v.r, 2, 3), part(v.rb, 2, 3))}, -1);
  }
  const Expr q = Linear(v.last, part(v.r, 2, 3), part(v.rb, 2, 3));
  return Concat({zr, x + r * q, q}, -1);
}

struct LstmKept {
  Expr gates, cells;
};

// C = f*C + i*g step by step; peepholes put C into the gates' arguments.
LstmKept LstmSteps(const RnnCall& rnn, const RnnValues& v, int64_t d) {
  const Expr plain = PlainGates(v);
  std::vector<Expr> peep;
  if (v.p.defined()) peep = Parts(v.p, 3);
  const RnnFunction &f = rnn.function(d, 0), &g = rnn.function(d, 1);
  const auto each = [&](const RnnStep& step) -> std::vector<Expr> {
    const Expr &c = step.states[0], &active = step.slices[1];
    std::vector<Expr> a = Parts(step.slices[0], 4);  // i, o, f, c
    if (v.p.defined()) {
      a[0] = a[0] + step.around(peep[0]) * c;
      a[2] = a[2] + step.around(peep[2]) * c;
    }
    const Expr i = f.Value(a[0]);
    const Expr forget = rnn.input_forget ? 1 - i : f.Value(a[2]);
    const Expr next = forget * c + i * g.Value(a[3]);
    const Expr state = active.defined() ? Where(active, next, c) : next;
    if (!v.p.defined()) return {state, next};
    a[1] = a[1] + step.around(peep[1]) * next;
    return {state, next, Concat(a, -1)};
  };
  const RnnSteps steps = ForSteps(rnn, d, /*backward=*/false, {v.c0}, {plain, v.active}, each);
  return {v.p.defined() ? steps.results[1] : plain, steps.results[0]};
}

std::vector<Expr> RnnTrainingBody(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const std::optional<RnnCall> rnn = ReadRnnCall(b, call, in[0]);
  if (!rnn) return {};
  const char* op = rnn->lstm() ? "LSTM" : rnn->gru() ? "GRU" : "RNN";
  std::vector<Expr> results = b.Ops(op, in, rnn->standard_outputs(), call.attributes);
  std::vector<Expr> gates, cells;
  for (int64_t d = 0; d < rnn->directions; ++d) {
    const RnnValues v = ValuesOf(*rnn, in, results[0], d);
    if (rnn->lstm()) {
      const LstmKept kept = LstmSteps(*rnn, v, d);
      gates.push_back(Masked(kept.gates, v.active));
      cells.push_back(Masked(kept.cells, v.active));
    } else {
      gates.push_back(Masked(rnn->gru() ? GruGates(*rnn, v, d) : PlainGates(v), v.active));
    }
  }
  results.push_back(Stack(gates));
  if (rnn->lstm()) results.push_back(Stack(cells));
  return results;
}

Dim Times(const Dim& dim, int64_t factor) {
  return dim.known() ? Dim{dim.value * factor, ""} : Dim{};
}

// The standard operator's outputs, then gates [D, T, B, width*H] and (LSTM)
// cells [D, T, B, H].
absl::StatusOr<std::vector<ValueType>> RnnTrainingTypes(const Node& call,
                                                        absl::Span<const InputFact> inputs,
                                                        const OperatorSet& operators,
                                                        const std::map<std::string, int>& opsets) {
  Graph scratch;
  GraphBuilder b(&scratch, nullptr);
  const std::optional<RnnCall> rnn = ReadRnnCall(b, call);
  if (!rnn) return b.status();
  Node standard = call;
  standard.op_type = rnn->lstm() ? "LSTM" : rnn->gru() ? "GRU" : "RNN";
  standard.domain.clear();
  standard.outputs.resize(std::min<size_t>(call.outputs.size(), rnn->standard_outputs()));
  ONWARD_ASSIGN_OR_RETURN(std::vector<ValueType> types, operators.Infer(standard, inputs, opsets));
  types.resize(call.outputs.size());
  const ValueType *x = inputs.empty() ? nullptr : inputs[0].type,
                  *r = inputs.size() < 3 ? nullptr : inputs[2].type;
  if (x == nullptr || r == nullptr || x->rank() != 3 || r->rank() != 3) return types;
  const Dim steps = x->dims[rnn->batch_major ? 1 : 0], batch = x->dims[rnn->batch_major ? 0 : 1];
  const Dim hidden = r->dims[2];
  for (size_t i = rnn->standard_outputs(); i < types.size(); ++i) {
    const bool gates = static_cast<int>(i) == rnn->standard_outputs();
    types[i] = {
        ValueType::Kind::kTensor,
        x->dtype,
        true,
        {Dim{rnn->directions, ""}, steps, batch, gates ? Times(hidden, rnn->width()) : hidden}};
  }
  return types;
}

}  // namespace

void RegisterRnnFunctions(FunctionLibrary& library) {
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    std::vector<std::string> attributes = {
        "activation_alpha", "activation_beta", "activations", "clip",
        "direction",        "hidden_size",     "layout"};
    const bool lstm = std::string(op) == "LSTM";
    if (lstm) attributes.push_back("input_forget");
    if (std::string(op) == "GRU") attributes.push_back("linear_before_reset");
    library.Add(absl::StrCat(op, "Training"), {.body = RnnTrainingBody,
                                               .types = RnnTrainingTypes,
                                               .output_like = {},
                                               .shape_only = {},
                                               .attributes = attributes,
                                               .required = 3,
                                               .operands = "TTTTIT"});
    std::vector<int> like = {0, 1, 2, 3, 5};
    if (lstm) like.insert(like.end(), {6, 7});
    library.Add(absl::StrCat(op, "Grad"), {.body = RnnGradBody,
                                           .types = nullptr,
                                           .output_like = like,
                                           .shape_only = {3},
                                           .attributes = attributes,
                                           .required = 3,
                                           .operands = "TTTTIT"});
  }
}

}  // namespace onward

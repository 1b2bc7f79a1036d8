// SPDX-License-Identifier: Apache-2.0
// What a call of a recurrent network says, and its values.
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "autograd/body.h"
#include "autograd/functions.h"
#include "autograd/functions/rnn.h"

namespace onward {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();  // of an axis, for Slice

struct FunctionDefault {
  const char* name;
  std::optional<double> alpha, beta;
};

constexpr FunctionDefault kFunctions[] = {
    {"relu", {}, {}},
    {"tanh", {}, {}},
    {"sigmoid", {}, {}},
    {"affine", 1.0, 0.0},
    {"leakyrelu", static_cast<double>(0.01f), {}},
    {"thresholdedrelu", 1.0, {}},
    {"scaledtanh", 1.0, 1.0},
    {"hardsigmoid", static_cast<double>(0.2f), 0.5},
    {"elu", 1.0, {}},
    {"softsign", {}, {}},
    {"softplus", {}, {}},
};

std::vector<float> Floats(const Node& node, const char* name) {
  auto it = node.attributes.find(name);
  if (it == node.attributes.end()) return {};
  const auto* values = std::get_if<std::vector<float>>(&it->second.value);
  return values == nullptr ? std::vector<float>() : *values;
}

std::vector<std::string> FunctionNames(const RnnCall& rnn, const Node& call) {
  std::vector<std::string> names = call.Strings("activations");
  if (!names.empty()) return names;
  for (int64_t d = 0; d < rnn.directions; ++d) {
    if (rnn.lstm() || rnn.gru()) names.push_back("sigmoid");
    names.push_back("tanh");
    if (rnn.lstm()) names.push_back("tanh");
  }
  return names;
}

// Alphas and betas are consumed in order by those functions that have one.
bool ReadFunctions(GraphBuilder& b, const Node& call, RnnCall* rnn) {
  const std::vector<float> alphas = Floats(call, "activation_alpha");
  const std::vector<float> betas = Floats(call, "activation_beta");
  size_t alpha = 0, beta = 0;
  const size_t per_direction = rnn->lstm() ? 3 : rnn->gru() ? 2 : 1;
  for (const std::string& name : FunctionNames(*rnn, call)) {
    RnnFunction f;
    f.name = absl::AsciiStrToLower(name);
    const FunctionDefault* known = nullptr;
    for (const FunctionDefault& row : kFunctions) {
      if (f.name == row.name) known = &row;
    }
    if (known == nullptr) {
      FailAt(b, call, absl::StrCat("unknown activation '", name, "'"));
      return false;
    }
    f.alpha = known->alpha.value_or(0);
    f.beta = known->beta.value_or(0);
    if (known->alpha && alpha < alphas.size()) f.alpha = alphas[alpha++];
    if (known->beta && beta < betas.size()) f.beta = betas[beta++];
    // clip limits the arguments of gates, not that of LSTM's third function.
    const bool of_gate = rnn->functions.size() % per_direction < 2;
    if (call.Has("clip") && of_gate) f.clip = call.Float("clip", 0);
    rnn->functions.push_back(std::move(f));
  }
  if (rnn->functions.size() == per_direction * rnn->directions) return true;
  FailAt(b, call, "activations has the wrong number of entries");
  return false;
}

// Element `direction` of an axis, which goes away.
Expr Select(const Expr& x, int64_t direction, int64_t axis) {
  return Gather(x, x.builder().Int(direction), axis);
}

// h before each step: the step before's where there is one, else h0.
Expr LastStates(const RnnCall& rnn, const RnnValues& v, int64_t direction) {
  GraphBuilder& b = v.y.builder();
  const Expr first = Unsqueeze(v.h0, {0});
  if (rnn.steps == 1) return first;
  const bool reversed = rnn.reversed(direction);
  const int64_t end = rnn.steps > 0 ? rnn.steps : kEnd;
  const Expr others = Slice(v.y, b.Ints({reversed ? 1 : 0}),
                            b.Ints({reversed        ? end
                                    : rnn.steps > 0 ? end - 1
                                                    : -1}),
                            b.Ints({0}));
  if (!reversed) return Concat({first, others}, 0);
  if (!v.active.defined()) return Concat({others, first}, 0);
  // A sequence that ends before the last step starts from h0 at its own end.
  const Expr started = Slice(v.active, b.Ints({1}), b.Ints({end}), b.Ints({0}));
  return Concat({Where(started, others, v.h0), first}, 0);
}

// All that steps take and give are matrices. Types need not tell (behind an If, say), but
// onnxruntime runs no Scan whose body leaves a rank open.
ValueType Matrix(ValueType type) {
  if (type.has_rank) return type;
  type.has_rank = true;
  type.dims.assign(2, Dim{});
  return type;
}

// A Scan of the same steps.
RnnSteps ScanSteps(GraphBuilder& b, bool from_last, const std::vector<Expr>& states,
                   const std::vector<Expr>& scanned,
                   absl::FunctionRef<std::vector<Expr>(const RnnStep&)> each) {
  Graph graph;
  graph.name = "step";
  BodyBuilder body(b, std::move(graph));
  const auto around = [&](const Expr& value) { return body.Captured(value); };
  RnnStep step{{}, {}, around};
  std::vector<Expr> inputs = states;
  for (const Expr& state : states) {
    step.states.push_back(body.b().Input(body.b().UniqueName("state"), Matrix(state.type())));
  }
  for (const Expr& all : scanned) {
    step.slices.emplace_back();
    if (!all.defined()) continue;
    ValueType type = all.type();
    if (type.rank() > 0) type.dims.erase(type.dims.begin());
    step.slices.back() = body.b().Input(body.b().UniqueName("slice"), Matrix(std::move(type)));
    inputs.push_back(all);
  }
  const std::vector<Expr> results = each(step);
  // A node of the body gives each of them.
  for (const Expr& result : results) {
    const Expr given = body.b().Op("Identity", {result});
    ValueType& type = body.b().graph().types[given.name()];
    type = Matrix(std::move(type));
    body.b().Output(given);
  }
  absl::StatusOr<Attribute::Body> finished = body.Finish();
  if (!finished.ok()) {
    b.Fail(finished.status());
    return {states, std::vector<Expr>(results.size() - states.size(), b.Value("failed"))};
  }
  const size_t slices = inputs.size() - states.size(), stacked = results.size() - states.size();
  const int64_t direction = from_last ? 1 : 0;
  std::vector<Expr> given =
      b.Ops("Scan", std::move(inputs), static_cast<int>(results.size()),
            {{"body", *std::move(finished)},
             {"num_scan_inputs", static_cast<int64_t>(slices)},
             {"scan_input_directions", std::vector<int64_t>(slices, direction)},
             {"scan_output_directions", std::vector<int64_t>(stacked, direction)}});
  return {{given.begin(), given.begin() + states.size()},
          {given.begin() + states.size(), given.end()}};
}

Expr Limited(const Expr& x, double clip) {
  GraphBuilder& b = x.builder();
  return Max(Min(x, b.Scalar(clip, x)), b.Scalar(-clip, x));
}

}  // namespace

Expr RnnFunction::Value(const Expr& argument) const {
  GraphBuilder& b = argument.builder();
  const Expr x = clip ? Limited(argument, *clip) : argument;
  const Expr zero = b.Scalar(0, x);
  if (name == "relu") return b.Op("Relu", {x});
  if (name == "tanh") return Tanh(x);
  if (name == "sigmoid") return Sigmoid(x);
  if (name == "affine") return x * alpha + beta;
  if (name == "leakyrelu") return Where(Less(x, zero), x * alpha, x);
  if (name == "thresholdedrelu") return Where(LessOrEqual(x, b.Scalar(alpha, x)), zero, x);
  if (name == "scaledtanh") return Tanh(x * beta) * alpha;
  if (name == "hardsigmoid") return Min(Max(x * alpha + beta, zero), b.Scalar(1, x));
  if (name == "elu") return Where(Less(x, zero), (Exp(Min(x, zero)) - 1) * alpha, x);
  if (name == "softsign") return x / (Abs(x) + 1);
  return b.Op("Softplus", {x});
}

Expr RnnFunction::Slope(const Expr& argument, const Expr& y) const {
  GraphBuilder& b = argument.builder();
  const Expr x = clip ? Limited(argument, *clip) : argument;
  const Expr zero = b.Scalar(0, x), one = b.Scalar(1, x);
  Expr slope;
  if (name == "relu") slope = Where(Greater(y, zero), one, zero);
  if (name == "tanh") slope = 1 - y * y;
  if (name == "sigmoid") slope = y * (1 - y);
  if (name == "affine") slope = ZerosLike(x) + alpha;
  if (name == "leakyrelu") slope = Where(Less(x, zero), b.Scalar(alpha, x), one);
  if (name == "thresholdedrelu") slope = Where(LessOrEqual(x, b.Scalar(alpha, x)), zero, one);
  if (name == "scaledtanh") {
    const Expr t = Tanh(x * beta);
    slope = (1 - t * t) * (alpha * beta);
  }
  if (name == "hardsigmoid") {
    slope = Where(And(Greater(y, zero), Less(y, one)), b.Scalar(alpha, x), zero);
  }
  if (name == "elu") slope = Where(Less(x, zero), y + alpha, one);
  if (name == "softsign") {
    const Expr r = 1 / (Abs(x) + 1);
    slope = r * r;
  }
  if (name == "softplus") slope = Sigmoid(x);
  if (!clip) return slope;
  return Where(Greater(Abs(argument), b.Scalar(*clip, argument)), zero, slope);
}

std::optional<RnnCall> ReadRnnCall(GraphBuilder& b, const Node& call) {
  RnnCall rnn;
  if (call.op_type.starts_with("LSTM")) rnn.kind = RnnCall::Kind::kLstm;
  if (call.op_type.starts_with("GRU")) rnn.kind = RnnCall::Kind::kGru;
  const std::string direction = call.String("direction", "forward");
  rnn.directions = direction == "bidirectional" ? 2 : 1;
  rnn.reverse = direction == "reverse";
  rnn.batch_major = call.Int("layout", 0) != 0;
  rnn.linear_before_reset = rnn.gru() && call.Int("linear_before_reset", 0) != 0;
  rnn.input_forget = rnn.lstm() && call.Int("input_forget", 0) != 0;
  if (!ReadFunctions(b, call, &rnn)) return std::nullopt;
  return rnn;
}

std::optional<RnnCall> ReadRnnCall(GraphBuilder& b, const Node& call, const Expr& x) {
  std::optional<RnnCall> rnn = ReadRnnCall(b, call);
  if (!rnn) return std::nullopt;
  rnn->steps = x.dim(rnn->batch_major ? 1 : 0);
  return rnn;
}

RnnSteps ForSteps(const RnnCall& rnn, int64_t direction, bool backward, std::vector<Expr> states,
                  const std::vector<Expr>& scanned,
                  absl::FunctionRef<std::vector<Expr>(const RnnStep&)> each) {
  if (rnn.steps <= 0) {
    return ScanSteps(states[0].builder(), rnn.reversed(direction) != backward, states, scanned,
                     each);
  }
  std::vector<std::vector<Expr>> results;
  for (int64_t k = 0; k < rnn.steps; ++k) {
    const int64_t t = rnn.Step(direction, backward ? rnn.steps - 1 - k : k);
    const auto around = [](const Expr& value) { return value; };
    RnnStep step{states, {}, around};
    for (const Expr& all : scanned) step.slices.push_back(all.defined() ? At(all, t) : Expr());
    std::vector<Expr> given = each(step);
    results.resize(given.size() - states.size(), std::vector<Expr>(rnn.steps));
    for (size_t i = 0; i < results.size(); ++i) results[i][t] = given[states.size() + i];
    given.resize(states.size());
    states = std::move(given);
  }
  RnnSteps steps{std::move(states), {}};
  for (const std::vector<Expr>& all : results) steps.results.push_back(Stack(all));
  return steps;
}

Expr NoState(const RnnCall& rnn, const Expr& y) {
  if (rnn.steps > 0) return ZerosLike(At(y, 0));
  return Expand(y.builder().Scalar(0, y), ShapeOf(y, 1, 3));
}

RnnValues ValuesOf(const RnnCall& rnn, const std::vector<Expr>& in, const Expr& y,
                   int64_t direction) {
  GraphBuilder& b = y.builder();
  RnnValues v;
  v.x = rnn.batch_major ? Transpose(in[0], {1, 0, 2}) : in[0];
  v.w = Select(in[1], direction, 0);
  v.r = Select(in[2], direction, 0);
  if (const Expr bias = Argument(in, 3); bias.defined()) {
    const std::vector<Expr> parts = Parts(Select(bias, direction, 0), 2);
    v.wb = parts[0];
    v.rb = parts[1];
  }
  v.y = Select(rnn.batch_major ? Transpose(y, {1, 2, 0, 3}) : y, direction, 1);
  const Expr zeros = NoState(rnn, v.y);
  const auto state = [&](size_t i) {
    const Expr s = Argument(in, i);
    return s.defined() ? Select(s, direction, rnn.batch_major ? 1 : 0) : zeros;
  };
  v.h0 = state(5);
  if (rnn.lstm()) {
    v.c0 = state(6);
    if (const Expr p = Argument(in, 7); p.defined()) v.p = Select(p, direction, 0);
  }
  if (const Expr lengths = Argument(in, 4); lengths.defined()) {
    const Expr numbers =
        rnn.steps > 0 ? b.Ints(AxesRange(0, rnn.steps))
                      : b.Op("Range", {b.Int(0), Squeeze(ShapeOf(v.y, 0, 1), {0}), b.Int(1)});
    v.active =
        Less(Reshape(numbers, {-1, 1, 1}), Reshape(Cast(lengths, DType::kInt64), {1, -1, 1}));
  }
  v.last = LastStates(rnn, v, direction);
  return v;
}

Expr Masked(const Expr& x, const Expr& active) {
  return active.defined() ? Where(active, x, x.builder().Scalar(0, x)) : x;
}

Expr At(const Expr& x, int64_t i) { return Gather(x, x.builder().Int(i), 0); }

std::vector<Expr> Parts(const Expr& x, int n) {
  if (n == 1) return {x};
  return x.builder().Ops("Split", {x}, n, {{"axis", -1}, {"num_outputs", n}});
}

Expr Stack(const std::vector<Expr>& xs) {
  std::vector<Expr> rows;
  for (const Expr& x : xs) rows.push_back(Unsqueeze(x, {0}));
  return rows.size() == 1 ? rows[0] : Concat(std::move(rows), 0);
}

Expr Transposed(const Expr& matrix) { return Transpose(matrix, {1, 0}); }

}  // namespace onward

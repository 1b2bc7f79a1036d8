// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification (Graves et al. 2006): -log of the probability of all
// paths over T steps that give the label once repetitions and blanks are taken out.
//
// Between, before and behind the S classes of a label stand blanks: 2S + 1 places. With
// a_t(s) the logarithm of the probability of all beginnings that end in place s at step t,
//
//   a_t(s) = log p_t(s) + logsumexp(a_{t-1}(s), a_{t-1}(s-1), a_{t-1}(s-2))
//
// where the last counts only if place s is a class other than that of place s-2. The loss is
// -logsumexp of the last two places at the last step. The recursion is a Scan.
#include <limits>

#include "losses/definition.h"

namespace onward {
namespace {

// The logarithm of a probability of zero: finite, so that differences of it are numbers.
constexpr double kImpossible = -1e30;

// log(exp(a) + exp(b) + ..)
Expr LogSumExp(const std::vector<Expr>& xs) {
  Expr top = xs[0];
  for (size_t i = 1; i < xs.size(); ++i) top = Max(top, xs[i]);
  Expr sum;
  for (const Expr& x : xs) sum = sum.defined() ? sum + Exp(x - top) : Exp(x - top);
  return top + Log(sum);
}

// [N, L] moved by one place, with `first` [N, 1] in the first.
Expr Shifted(const Expr& x, const Expr& first) {
  GraphBuilder& b = x.builder();
  return Concat({first, Slice(x, b.Ints({0}), b.Ints({-1}), b.Ints({1}))}, 1);
}

// The places of each label [N, S]: int64 [N, 2S + 1].
Expr Places(const Expr& classes, const Expr& blank) {
  const Expr blanks = Expand(blank, ShapeOf(classes));
  const Expr pairs = Concat({Unsqueeze(blanks, {2}), Unsqueeze(classes, {2})}, 2);
  GraphBuilder& b = classes.builder();
  const Expr last = Expand(blank, Concat({ShapeOf(classes, 0, 1), b.Ints({1})}, 0));
  // -1 could not tell how long rows of no length are.
  const Expr length = ShapeOf(classes, 1, 2) * b.Ints({2});
  return Concat({Reshape(pairs, Concat({ShapeOf(classes, 0, 1), length}, 0)), last}, 1);
}

// One step of the recursion for all examples; `barred` is kImpossible where place s-2 does
// not count, else 0, and `none` a column of kImpossible.
Attribute::Body StepBody(GraphBuilder& around, const Expr& start, const Expr& barred,
                         const Expr& none) {
  Graph graph;
  graph.name = "ctc_step";
  graph.opsets = around.graph().opsets;
  ValueType matrix = start.type();
  if (!matrix.has_rank) {
    matrix.has_rank = true;
    matrix.dims.assign(2, Dim{});
  }
  GraphBuilder b(&graph, around.operators(), "ctc", &around.names());
  const Expr before = b.Input(b.UniqueName("before"), matrix);
  const Expr seen = b.Input(b.UniqueName("seen"), matrix);
  for (const Expr& captured : {barred, none}) graph.types[captured.name()] = captured.type();
  const Expr column = b.Value(none.name());
  const Expr one = Shifted(before, column), two = Shifted(one, column);
  const Expr after = seen + LogSumExp({before, one, two + b.Value(barred.name())});
  graph.types[after.name()] = matrix;
  b.Output(after);
  if (!b.status().ok()) around.Fail(b.status());
  graph.types.erase(barred.name());
  graph.types.erase(none.name());
  return std::make_shared<const Graph>(std::move(graph));
}

Expr Ctc(const LossCall& c) {
  GraphBuilder& b = c.b;
  Expr log_p = Widened(c.output());
  if (c.On("batch_first")) log_p = Transpose(log_p, {1, 0, 2});
  if (c.Is("logits", "logits")) log_p = b.Op("LogSoftmax", {log_p}, {{"axis", -1}});
  if (c.Is("logits", "probabilities")) log_p = ClampedLog(log_p);
  const Expr label = Cast(c.label, DType::kInt64);
  const Expr blank = b.Int(static_cast<int64_t>(c.Number("blank")));
  const Expr counts = And(GreaterOrEqual(label, b.Int(0)), Not(Equal(label, blank)));
  const Expr lengths = ReduceSum(Cast(counts, DType::kInt64), {1}, /*keepdims=*/false);
  const Expr places = Places(Where(counts, label, blank), blank);

  const Expr zero = b.Scalar(0, log_p), impossible = b.Scalar(kImpossible, log_p);
  const auto allowed = [&](const Expr& condition) { return Where(condition, zero, impossible); };
  const Expr none = Expand(impossible, Concat({ShapeOf(places, 0, 1), b.Ints({1})}, 0));
  const Expr blanks = Expand(blank, Concat({ShapeOf(places, 0, 1), b.Ints({1})}, 0));
  // A blank in the places before the first: no class skips these.
  const Expr earlier = Shifted(Shifted(places, blanks), blanks);
  const Expr index = b.Op("Range", {b.Int(0), Squeeze(ShapeOf(places, 1, 2), {0}), b.Int(1)});
  const Expr skips = And(And(Not(Equal(places, blank)), Not(Equal(places, earlier))),
                         GreaterOrEqual(index, b.Int(2)));

  const Expr steps = ShapeOf(log_p, 0, 1);
  const Expr seen = b.Op(
      "GatherElements",
      {log_p, Expand(Unsqueeze(places, {0}), Concat({steps, ShapeOf(places)}, 0))}, {{"axis", 2}});
  const Expr start = Gather(seen, b.Int(0)) + allowed(LessOrEqual(index, b.Int(1)));
  const Expr rest =
      Slice(seen, b.Ints({1}), b.Ints({std::numeric_limits<int64_t>::max()}), b.Ints({0}));
  const Expr barred = allowed(skips);
  const Expr end = b.Op("Scan", {start, rest},
                        {{"body", StepBody(b, start, barred, none)}, {"num_scan_inputs", 1}});

  // The last blank, and the last class where there is one.
  const Expr last = Unsqueeze(lengths * b.Int(2), {1});
  const auto at = [&](const Expr& place) {
    return Squeeze(b.Op("GatherElements", {end, place}, {{"axis", 1}}), {1});
  };
  const Expr on_class = at(Max(last - b.Int(1), b.Int(0)));
  const Expr ends = LogSumExp({at(last), on_class + allowed(Greater(lengths, b.Int(0)))});
  const Expr possible = Greater(ends, b.Scalar(kImpossible / 10, ends));
  const double otherwise = c.On("zero_infinity") ? 0 : std::numeric_limits<double>::infinity();
  Expr each = Where(possible, -ends, b.Scalar(otherwise, ends));
  if (c.Is("reduction", "mean")) each = each / CastLike(Max(lengths, b.Int(1)), each);
  return CastLike(c.Reduced(each), c.output());
}

}  // namespace

LossDef CtcLoss() {
  return {.name = "ctc",
          .summary =
              "of log-probabilities [T, N, C] and labels [N, S], padded with the blank or "
              "negative numbers",
          .labels = LabelKind::kSequences,
          .numbers = {NumberOption::Count("blank", 0, 0), NumberOption::Switch("zero_infinity"),
                      NumberOption::Switch("batch_first")},
          .words = {{"logits", {"log_probabilities", "logits", "probabilities"}}},
          .build = Ctc};
}

}  // namespace onward

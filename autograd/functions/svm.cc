// SPDX-License-Identifier: Apache-2.0
// Support vector machines as standard operators: the kernel between rows and support vectors is
// a matrix, and the scores of pairs of classes are its product with the coefficients.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "autograd/body.h"
#include "autograd/functions.h"
#include "autograd/functions/ml.h"
#include "core/graph/attribute_lists.h"

namespace onward::ml {
namespace {

std::vector<double> Floats(const Node& call, const std::string& attribute) {
  const std::vector<float> floats = FloatsOf(call, attribute);
  return {floats.begin(), floats.end()};
}

// vectors [n, width], as [width, n]
std::vector<double> Turned(const std::vector<double>& vectors, int64_t n, int64_t width) {
  std::vector<double> turned(vectors.size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) turned[j * n + i] = vectors[i * width + j];
  }
  return turned;
}

// K [N, n]: LINEAR x v, POLY (gamma x v + coef0)^degree, SIGMOID tanh(gamma x v + coef0),
// RBF exp(-gamma |x - v|^2) with |x - v|^2 = |x|^2 + |v|^2 - 2 x v
Expr KernelMatrix(const Node& call, const Expr& x, const std::vector<double>& vectors, int64_t n,
                  int64_t width) {
  const std::string kind = call.String("kernel_type", "LINEAR");
  std::vector<double> params = Floats(call, "kernel_params");
  params.resize(3);
  const Expr dot = MatMul(x, Numbers(Turned(vectors, n, width), Shape{width, n}, x));
  if (kind == "POLY") return Pow(params[0] * dot + params[1], params[2]);
  if (kind == "SIGMOID") return Tanh(params[0] * dot + params[1]);
  if (kind != "RBF") return dot;
  std::vector<double> squares(n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      squares[i] += vectors[i * width + j] * vectors[i * width + j];
    }
  }
  const Expr distance = ReduceSum(x * x, {1}) + Numbers(squares, Shape{n}, x) - 2 * dot;
  return Exp(-params[0] * distance);
}

// Whether `count` vectors make up the list; their length.
bool Divide(const std::vector<double>& vectors, int64_t count, int64_t* width) {
  const int64_t size = static_cast<int64_t>(vectors.size());
  if (count < 1 || size == 0 || size % count != 0) return false;
  *width = size / count;
  return true;
}

}  // namespace

std::vector<Expr> SvmRegressor(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const int64_t supports = call.Int("n_supports", 0), n = std::max<int64_t>(1, supports);
  const std::vector<double> coefficients = Floats(call, "coefficients"), rho = Floats(call, "rho");
  const std::vector<double> vectors = supports > 0 ? Floats(call, "support_vectors") : coefficients;
  int64_t width = 0;
  const bool fits = supports == 0 || static_cast<int64_t>(coefficients.size()) == supports;
  if (!Divide(vectors, n, &width) || !fits || rho.empty()) {
    return {FailAt(b, call, "its vectors, coefficients and rho do not fit together")};
  }
  const Expr x = AsRows(AsFloating(in[0]), width);
  Expr score = supports > 0 ? MatMul(KernelMatrix(call, x, vectors, n, width),
                                     Numbers(coefficients, Shape{n, 1}, x))
                            : MatMul(x, Numbers(vectors, Shape{width, 1}, x));
  score = score + Numbers({rho[0]}, Shape{1}, x);
  if (call.Int("one_class", 0) != 0) {
    score = Where(Greater(score, b.Scalar(0, score)), b.Scalar(1, score), b.Scalar(-1, score));
  }
  return {AsFloat(score)};
}

namespace {

// One machine for each pair (i, j) of classes: the coefficients [n, pairs] of its support vectors,
// and which classes [pairs, classes] its sign votes for.
struct Pairs {
  int64_t count = 0;
  std::vector<double> weights, first, second;
};

Pairs PairsOf(const std::vector<double>& coefficients, const std::vector<int64_t>& begins) {
  const int64_t k = static_cast<int64_t>(begins.size()) - 1, n = begins.back();
  Pairs pairs;
  pairs.count = k * (k - 1) / 2;
  pairs.weights.resize(n * pairs.count);
  pairs.first.resize(pairs.count * k);
  pairs.second.resize(pairs.count * k);
  int64_t p = 0;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = i + 1; j < k; ++j, ++p) {
      for (int64_t v = begins[i]; v < begins[i + 1]; ++v) {
        pairs.weights[v * pairs.count + p] = coefficients[(j - 1) * n + v];
      }
      for (int64_t v = begins[j]; v < begins[j + 1]; ++v) {
        pairs.weights[v * pairs.count + p] = coefficients[i * n + v];
      }
      pairs.first[p * k + i] = pairs.second[p * k + j] = 1;
    }
  }
  return pairs;
}

// Where the probability that class i beats class j, of pair p, stands in [k, k] (`first`), and its
// complement (`second`): [pairs, k * k].
struct Places {
  std::vector<double> first, second;
};

Places PlacesOf(int64_t k) {
  const int64_t pairs = k * (k - 1) / 2, all = k * k;
  Places places{std::vector<double>(pairs * all), std::vector<double>(pairs * all)};
  int64_t p = 0;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = i + 1; j < k; ++j, ++p) {
      places.first[p * all + i * k + j] = places.second[p * all + j * k + i] = 1;
    }
  }
  return places;
}

std::vector<double> UnitVectors(int64_t k) {
  std::vector<double> values(k * k);
  for (int64_t i = 0; i < k; ++i) values[i * k + i] = 1;
  return values;
}

// One round of the coupling, class by class; [N, k] for p, [N, k, k] for q.
//   c = (p'Qp - (Qp)_t) / Q_tt;   p = (p + c e_t) / (1 + c), and with it Qp and p'Qp
Expr NextProbabilities(const Expr& p, const Expr& q, const Expr& diagonal, const Expr& qp_before,
                       const Expr& pqp_before, int64_t k) {
  GraphBuilder& b = p.builder();
  const std::vector<double> units = UnitVectors(k);
  Expr next = p, qp = qp_before, pqp = pqp_before;
  for (int64_t t = 0; t < k; ++t) {
    const Expr at = b.Ints({t});
    const Expr q_tt = Gather(diagonal, at, 1), qp_t = Gather(qp, at, 1);
    const Expr change = (pqp - qp_t) / q_tt, scale = change + 1;
    const std::vector<double> unit(units.begin() + t * k, units.begin() + (t + 1) * k);
    next = (next + change * Numbers(unit, Shape{k}, p)) / scale;
    pqp = (pqp + change * (change * q_tt + 2 * qp_t)) / scale / scale;
    qp = (qp + change * Gather(q, b.Int(t), 1)) / scale;
  }
  return next;
}

// Probabilities [N, k] of the classes from those of the pairs [N, pairs] (Wu, Lin, Weng 2004): p
// that minimizes p'Qp, by the very rounds of the kernel, each row until it is near enough. So the
// gradient is that of what is computed, not of the minimum that the rounds stop short of.
Expr CoupledPairs(const Expr& pairs, int64_t k) {
  GraphBuilder& b = pairs.builder();
  const int64_t count = k * (k - 1) / 2;
  const Places places = PlacesOf(k);
  const Expr flat = MatMul(pairs, Numbers(places.first, Shape{count, k * k}, pairs)) +
                    MatMul(1 - pairs, Numbers(places.second, Shape{count, k * k}, pairs));
  const Expr table = Reshape(flat, std::vector<int64_t>{-1, k, k});
  const Expr diagonal = ReduceSum(table * table, {1}, /*keepdims=*/false);
  const Expr q = Unsqueeze(diagonal, {1}) * Numbers(UnitVectors(k), Shape{k, k}, pairs) -
                 table * Transpose(table, {0, 2, 1});
  const double share = 1.0 / static_cast<double>(k);
  const Expr start = diagonal * 0 + share;

  Graph graph;
  graph.name = "couple";
  BodyBuilder body(b, std::move(graph));
  GraphBuilder& inside = body.b();
  inside.Input(inside.UniqueName("round"), ValueType::Of(DType::kInt64, {}));
  inside.Input(inside.UniqueName("go_on"), ValueType::Of(DType::kBool, {}));
  const Expr p = inside.Input(inside.UniqueName("p"), start.type());
  const Expr qs = body.Captured(q), diagonals = body.Captured(diagonal);
  const Expr qp = Squeeze(MatMul(qs, Unsqueeze(p, {2})), {2});
  const Expr pqp = ReduceSum(p * qp, {1});
  const Expr error = inside.Op("ReduceMax", {Abs(qp - pqp), inside.Ints({1})});
  const Expr active = GreaterOrEqual(error, inside.Scalar(0.005 * share, error));
  const Expr any = inside.Op("ReduceMax", {Cast(active, DType::kInt32)}, {{"keepdims", 0}});
  inside.Output(Cast(any, DType::kBool));
  inside.Output(Where(active, NextProbabilities(p, qs, diagonals, qp, pqp, k), p));
  absl::StatusOr<Attribute::Body> finished = body.Finish();
  if (!finished.ok()) return b.Fail(finished.status());
  return b.Ops("Loop", {b.Int(std::max<int64_t>(100, k)), Expr(), start}, 1,
               {{"body", *std::move(finished)}})[0];
}

// Of each pair, 1 - 1 / (1 + exp(-(score * a + b))), kept off 0 and 1; then of the classes.
Expr Probabilities(const Node& call, const Expr& scores, int64_t k) {
  GraphBuilder& b = scores.builder();
  const int64_t count = k * (k - 1) / 2;
  std::vector<double> slopes = Floats(call, "prob_a"), shifts = Floats(call, "prob_b");
  slopes.resize(count);
  shifts.resize(count);
  const Expr wide = Cast(scores, DType::kDouble);
  const Expr raw =
      1 - Sigmoid(wide * Numbers(slopes, Shape{count}, wide) + Numbers(shifts, Shape{count}, wide));
  const Expr least = b.Scalar(1e-7, raw);
  return CoupledPairs(Min(Max(raw, least), 1 - least), k);
}

// Beyond it a round has too many nodes.
constexpr int64_t kMostCoupled = 64;

// A machine of one vector of weights for each class.
std::vector<Expr> LinearMachine(GraphBuilder& b, const Node& call, const Expr& input,
                                int64_t labels) {
  const std::vector<double> weights = Floats(call, "coefficients"), rho = Floats(call, "rho");
  const int64_t k = std::max<int64_t>(1, labels);
  int64_t width = 0;
  if (!Divide(weights, k, &width) || rho.empty()) {
    return {FailAt(b, call, "its coefficients, rho and labels do not fit together")};
  }
  const Expr x = AsRows(AsFloating(input), width);
  const Expr scores = MatMul(x, Numbers(Turned(weights, k, width), Shape{width, k}, x)) + rho[0];
  const Expr largest = b.Op("ReduceMax", {scores, b.Ints({1})}, {{"keepdims", 0}});
  Expr best = b.Op("ArgMax", {scores}, {{"axis", 1}, {"keepdims", 0}});
  if (k <= 2) {
    const bool positive =
        k == 2 && std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
    const Expr enough = b.Scalar(positive ? 0.5 : 0, scores);
    const Expr second = positive ? GreaterOrEqual(largest, enough) : Greater(largest, enough);
    best = Where(second, b.Int(1), best);
  }
  return {ClassLabels(b, call, best, std::max<int64_t>(2, k)),
          AsFloat(PostTransform(call, scores, k))};
}

}  // namespace

std::vector<Expr> SvmClassifier(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const int64_t labels =
      std::max(LengthOf(call, "classlabels_ints"), LengthOf(call, "classlabels_strings"));
  const std::vector<double> coefficients = Floats(call, "coefficients"), rho = Floats(call, "rho"),
                            vectors = Floats(call, "support_vectors");
  std::vector<int64_t> begins = {0};
  for (const int64_t count : call.Ints("vectors_per_class"))
    begins.push_back(begins.back() + count);
  const int64_t n = begins.back();
  int64_t width = 0;
  const int64_t k = static_cast<int64_t>(begins.size()) - 1;
  if (n == 0) return LinearMachine(b, call, in[0], labels);
  const bool probable = LengthOf(call, "prob_a") > 0;
  if (probable && k > kMostCoupled) {
    return {FailAt(b, call,
                   absl::StrCat("probabilities of more than ", kMostCoupled,
                                " classes have no gradient; take the scores (a machine "
                                "without prob_a and prob_b)"))};
  }
  if (k != labels || k < 2 || !Divide(vectors, n, &width) ||
      static_cast<int64_t>(coefficients.size()) != (k - 1) * n ||
      static_cast<int64_t>(rho.size()) != k * (k - 1) / 2 ||
      (probable && LengthOf(call, "prob_a") < k * (k - 1) / 2) ||
      LengthOf(call, "prob_a") != LengthOf(call, "prob_b")) {
    return {FailAt(b, call, "its vectors, coefficients, rho and labels do not fit together")};
  }
  const Pairs pairs = PairsOf(coefficients, begins);
  const Expr x = AsRows(AsFloating(in[0]), width);
  const Expr scores = MatMul(KernelMatrix(call, x, vectors, n, width),
                             Numbers(pairs.weights, Shape{n, pairs.count}, x)) +
                      Numbers(rho, Shape{pairs.count}, x);
  const Expr wins = CastLike(Greater(scores, b.Scalar(0, scores)), x);
  const Expr votes = MatMul(wins, Numbers(pairs.first, Shape{pairs.count, k}, x)) +
                     MatMul(1 - wins, Numbers(pairs.second, Shape{pairs.count, k}, x));
  const Expr best = b.Op("ArgMax", {votes}, {{"axis", 1}, {"keepdims", 0}});
  const std::string transform = call.String("post_transform", "NONE");
  const Expr results =
      probable ? PostTransform(call, Probabilities(call, scores, k), k)
      : k == 2 ? TwoClasses(call, scores, transform != "SOFTMAX" && transform != "SOFTMAX_ZERO")
               : PostTransform(call, scores, pairs.count);
  return {ClassLabels(b, call, best, k), AsFloat(results)};
}

}  // namespace onward::ml

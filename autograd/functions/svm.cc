// SPDX-License-Identifier: Apache-2.0
// Support vector machines as standard operators: the kernel between rows and support vectors is
// a matrix, and the scores of pairs of classes are its product with the coefficients.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
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
  if (n == 0 || LengthOf(call, "prob_a") > 0) {
    return {FailAt(b, call,
                   n == 0 ? "a machine without support vectors has no gradient here"
                          : "probabilities from coupled pairs have no gradient; take the scores "
                            "(a machine without prob_a and prob_b)")};
  }
  if (k != labels || k < 2 || !Divide(vectors, n, &width) ||
      static_cast<int64_t>(coefficients.size()) != (k - 1) * n ||
      static_cast<int64_t>(rho.size()) != k * (k - 1) / 2) {
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
      k == 2 ? TwoClasses(call, scores, transform != "SOFTMAX" && transform != "SOFTMAX_ZERO")
             : PostTransform(call, scores, pairs.count);
  return {ClassLabels(b, call, best, k), AsFloat(results)};
}

}  // namespace onward::ml

// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx.ml as standard operators: linear models and what prepares features. Their
// numbers, which are attributes, become constants.
#include "autograd/functions/ml.h"

#include <algorithm>
#include <numeric>

#include "autograd/functions.h"
#include "core/graph/attribute_lists.h"

namespace onward {
namespace ml {

Expr AsFloating(const Expr& x) {
  return x.dtype() == DType::kDouble || x.dtype() == DType::kFloat ? x : Cast(x, DType::kFloat);
}

Expr AsFloat(const Expr& x) { return x.dtype() == DType::kFloat ? x : Cast(x, DType::kFloat); }

Expr AsRows(const Expr& x, int64_t width) {
  return x.rank() == 2 ? x : Reshape(x, std::vector<int64_t>{-1, width});
}

Expr Numbers(const std::vector<double>& values, const Shape& shape, const Expr& like) {
  if (like.dtype() == DType::kDouble) {
    return like.builder().Constant(Tensor::FromValues<double>(shape, absl::MakeConstSpan(values)));
  }
  const std::vector<float> floats(values.begin(), values.end());
  return like.builder().Constant(Tensor::FromValues<float>(shape, absl::MakeConstSpan(floats)));
}

Expr ClassLabels(GraphBuilder& b, const Node& call, const Expr& classes, int64_t count) {
  const std::vector<std::string> names = call.Strings("classlabels_strings");
  if (!names.empty()) {
    return Gather(b.Constant(Tensor::FromValues<std::string>(
                      Shape{static_cast<int64_t>(names.size())}, absl::MakeConstSpan(names))),
                  classes);
  }
  std::vector<int64_t> numbers = call.Ints("classlabels_ints");
  if (static_cast<int64_t>(numbers.size()) < count) {
    numbers.resize(count);
    std::iota(numbers.begin(), numbers.end(), 0);
  }
  return Gather(b.Ints(numbers), classes);
}

namespace {

// sqrt(2) * erfinv(2p - 1) by Winitzki's formula
Expr Probit(const Expr& p) {
  const Expr x = 2 * p - 1;
  const Expr log = Log((1 - x) * (1 + x));
  const Expr a = 2 / (3.14159 * 0.147) + 0.5 * log;
  return 1.41421356 * Sign(x) * Sqrt(Sqrt(a * a - log / 0.147) - a);
}

// Zeros stay and take no part.
Expr SoftmaxZero(const Expr& x) {
  GraphBuilder& b = x.builder();
  const Expr largest = b.Op("ReduceMax", {x, b.Ints({1})});
  const Expr counts = Greater(Abs(x), b.Scalar(1e-7, x));
  const Expr powers = Where(counts, Exp(x - largest), x * Exp(-largest));
  return powers / ReduceSum(powers, {1});
}

}  // namespace

Expr PostTransform(const Node& call, const Expr& scores, int64_t n) {
  const std::string name = call.String("post_transform", "NONE");
  if (name == "PROBIT") return Probit(scores);
  if (n < 2) return scores;
  if (name == "LOGISTIC") return Sigmoid(scores);
  if (name == "SOFTMAX") return scores.builder().Op("Softmax", {scores}, {{"axis", 1}});
  if (name == "SOFTMAX_ZERO") return SoftmaxZero(scores);
  return scores;
}

Expr TwoClasses(const Node& call, const Expr& score, bool opposite) {
  const std::string name = call.String("post_transform", "NONE");
  if (name == "PROBIT") {
    const Expr p = Probit(score);
    return Concat({1 - p, p}, 1);
  }
  if (name == "LOGISTIC") return Sigmoid(Concat({-score, score}, 1));
  return Concat({opposite ? -score : 1 - score, score}, 1);
}

namespace {

std::vector<double> FloatsAsDoubles(const Node& call, const std::string& attribute) {
  const std::vector<float> floats = FloatsOf(call, attribute);
  return {floats.begin(), floats.end()};
}

// x W^T + b
Expr LinearScores(const Node& call, const Expr& input, int64_t targets) {
  const std::vector<double> weights = FloatsAsDoubles(call, "coefficients"),
                            bias = FloatsAsDoubles(call, "intercepts");
  // What rows are longer than the input's is not used.
  const int64_t features = input.rank() < 1 ? -1 : input.dim(-1);
  const int64_t width = features >= 0 ? features : static_cast<int64_t>(weights.size()) / targets;
  const Expr x = AsRows(AsFloating(input), width);
  // Stored as it is multiplied, so that it can be trained as any weight.
  std::vector<double> transposed(targets * width);
  for (int64_t i = 0; i < targets; ++i) {
    for (int64_t j = 0; j < width; ++j) transposed[j * targets + i] = weights[i * width + j];
  }
  const Expr product = MatMul(x, Numbers(transposed, Shape{width, targets}, x));
  return bias.empty() ? product : product + Numbers(bias, Shape{targets}, x);
}

std::vector<Expr> LinearRegressor(GraphBuilder&, const Node& call, const std::vector<Expr>& in) {
  const int64_t targets = call.Int("targets", 1);
  return {AsFloat(PostTransform(call, LinearScores(call, in[0], targets), targets))};
}

std::vector<Expr> LinearClassifier(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const int64_t labels =
      std::max(LengthOf(call, "classlabels_ints"), LengthOf(call, "classlabels_strings"));
  const int64_t given = LengthOf(call, "intercepts");
  const int64_t targets = given > 0 ? given : std::max<int64_t>(1, labels);
  const Expr scores = LinearScores(call, in[0], targets);
  const bool two = targets == 1 && labels == 2;
  const Expr classes = targets == 1
                           ? Squeeze(Cast(Greater(scores, b.Scalar(0, scores)), DType::kInt64), {1})
                           : b.Op("ArgMax", {scores}, {{"axis", 1}, {"keepdims", 0}});
  const Expr results = two ? TwoClasses(call, scores, false) : PostTransform(call, scores, targets);
  return {ClassLabels(b, call, classes, std::max<int64_t>(2, targets)), AsFloat(results)};
}

// y = (x - offset) * scale
std::vector<Expr> Scaler(GraphBuilder&, const Node& call, const std::vector<Expr>& in) {
  Expr y = AsFloating(in[0]);
  const std::vector<double> offset = NumbersOf(call, "offset"), scale = NumbersOf(call, "scale");
  const auto vector = [&](const std::vector<double>& values) {
    return Numbers(values, Shape{static_cast<int64_t>(values.size())}, y);
  };
  if (!offset.empty()) y = y - vector(offset);
  if (!scale.empty()) y = y * vector(scale);
  return {AsFloat(y)};
}

// y = x / |x|; a norm of zero divides by 1
std::vector<Expr> Normalizer(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const Expr x = AsFloating(in[0]);
  const std::string name = call.String("norm", "MAX");
  const Expr norm = name == "L1"   ? ReduceSum(Abs(x), {-1})
                    : name == "L2" ? ReduceSum(x * x, {-1})
                                   : b.Op("ReduceMax", {x, b.Ints({-1})});
  const Expr safe = Where(Equal(norm, b.Scalar(0, norm)), b.Scalar(1, norm), norm);
  return {AsFloat(x / (name == "L2" ? Sqrt(safe) : safe))};
}

// y = x, or where x is what stands for nothing, the imputed value
std::vector<Expr> Imputer(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const Expr& x = in[0];
  if (!IsFloating(x.dtype())) {
    const std::vector<int64_t> values = call.Ints("imputed_value_int64s");
    const Expr missing = Equal(x, Cast(b.Int(call.Int("replaced_value_int64", 0)), x.dtype()));
    return {Where(missing, Cast(b.Ints(values), x.dtype()), x)};
  }
  const float replaced = call.Float("replaced_value_float", 0);
  const std::vector<double> values = NumbersOf(call, "imputed_value_floats");
  const Expr missing = replaced != replaced ? b.Op("IsNaN", {x}) : Equal(x, b.Scalar(replaced, x));
  return {Where(missing, Numbers(values, Shape{static_cast<int64_t>(values.size())}, x), x)};
}

// Rows as many features wide as only the data tell, cut or filled to a width where that is known.
Expr RowsOfUnknownWidth(const Expr& x, int64_t width) {
  GraphBuilder& b = x.builder();
  const Expr own = Gather(ShapeOf(x), b.Ints({-1}));
  const Expr rows = Reshape(x, Concat({b.Ints({-1}), own}, 0));
  if (width < 0) return rows;
  const Expr pads = Concat({b.Ints({0, 0, 0}), b.Ints({width}) - own}, 0);
  return b.Op("Pad", {rows, pads, b.Scalar(0, x)});
}

// Rows side by side, each cut or filled to the width that it is declared with.
std::vector<Expr> FeatureVectorizer(GraphBuilder& b, const Node& call,
                                    const std::vector<Expr>& in) {
  const std::vector<int64_t> widths = call.Ints("inputdimensions");
  std::vector<Expr> parts;
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t own = in[i].rank() < 1 ? -1 : in[i].dim(-1);
    const int64_t width = i < widths.size() ? widths[i] : own;
    if (own < 0) {
      parts.push_back(RowsOfUnknownWidth(AsFloat(in[i]), width));
      continue;
    }
    Expr x = AsRows(AsFloat(in[i]), own);
    if (width < own) x = Slice(x, b.Ints({0}), b.Ints({width}), b.Ints({1}));
    if (width > own) {
      x = b.Op("Pad", {x, b.Ints({0, 0, 0, width - own}), b.Scalar(0, x)});
    }
    parts.push_back(x);
  }
  return {parts.size() == 1 ? parts[0] : Concat(parts, 1)};
}

std::vector<Expr> ArrayFeatureExtractor(GraphBuilder& b, const Node&, const std::vector<Expr>& in) {
  const Expr columns = Gather(in[0], Reshape(in[1], std::vector<int64_t>{-1}), -1);
  if (in[0].rank() < 0) {  // a vector is a row
    const Expr shape = ShapeOf(columns);
    const Expr missing = Reshape(Max(b.Int(2) - SizeOf(shape), b.Int(0)), {1});
    return {Reshape(columns, Concat({Expand(b.Ints({1}), missing), shape}, 0))};
  }
  return {in[0].rank() == 1 ? Unsqueeze(columns, {0}) : columns};
}

}  // namespace
}  // namespace ml

void RegisterMlFunctions(FunctionLibrary& library) {
  const auto add = [&](const char* name, FunctionDef::Body body) {
    FunctionDef def;
    def.body = std::move(body);
    def.required = 1;
    library.Add(name, std::move(def), kMlDomain);
  };
  add("LinearRegressor", ml::LinearRegressor);
  add("LinearClassifier", ml::LinearClassifier);
  add("SVMRegressor", ml::SvmRegressor);
  add("SVMClassifier", ml::SvmClassifier);
  add("Scaler", ml::Scaler);
  add("Normalizer", ml::Normalizer);
  add("Imputer", ml::Imputer);
  add("FeatureVectorizer", ml::FeatureVectorizer);
  add("ArrayFeatureExtractor", ml::ArrayFeatureExtractor);
}

}  // namespace onward

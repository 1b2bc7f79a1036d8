// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "environment/environment.h"
#include "tests/support/op_case.h"

namespace onward {

RandomGraph::RandomGraph(int number)
    : draws_(absl::StrCat("graph", number)), b_(&graph, &DefaultEnvironment().operators()) {
  graph.opsets = {{"", kCanonicalOpset}, {std::string(kOnwardDomain), 1}};
  for (int i = 0; i < 3; ++i) {
    inputs.push_back(absl::StrCat("x", i));
    shapes.push_back({1 + draws_.Below(4), 1 + draws_.Below(4)});
    values_.push_back(b_.Input(inputs.back(), ValueType::Of(DType::kDouble, shapes.back())));
  }
  const size_t nodes = 5 + static_cast<size_t>(draws_.Below(26));
  while (graph.nodes.size() < nodes) values_.push_back(Draw());
  // Whatever nobody reads is part of the loss, so that everything is differentiated.
  Expr total;
  for (const Expr& value : values_) {
    const bool read = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
      return std::count(node.inputs.begin(), node.inputs.end(), value.name()) > 0;
    });
    if (read) continue;
    Expr part = ReduceSumAll(value * (0.5 + draws_.Unit()));
    total = total.defined() ? total + part : part;
  }
  loss = total.name();
}

absl::StatusOr<Gradients> RandomGraph::Differentiated() const {
  DifferentiateOptions options;
  options.operators = &DefaultEnvironment().operators();
  options.rules = &DefaultEnvironment().rules();
  return Differentiate(graph, loss, inputs, options);
}

TensorMap RandomGraph::Feeds(Draws& draws) const {
  TensorMap feeds;
  for (size_t i = 0; i < inputs.size(); ++i) feeds[inputs[i]] = DrawArg(Real(shapes[i]), draws);
  return feeds;
}

Expr RandomGraph::Any() {
  const Expr x = values_[draws_.Below(static_cast<int64_t>(values_.size()))];
  return x.type().StaticShape()->elements() > 48 ? ReduceMean(x, {1}) : x;
}

Expr RandomGraph::Against(const Expr& x) {
  Expr y = Any();
  const Shape a = *x.type().StaticShape(), b = *y.type().StaticShape();
  for (int i = 0; i < 2; ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) y = ReduceMean(y, {i});
  }
  return y;
}

Expr RandomGraph::Draw() {
  switch (draws_.Below(5)) {
    case 0: return Smooth(Any());
    case 1: return Bent(Any());
    case 2: return Pair(Any());
    case 3: return Moved(Any());
    default: return Joined(Any());
  }
}

Expr RandomGraph::Smooth(const Expr& x) {
  static constexpr const char* kOps[] = {"Tanh", "Sigmoid", "Sin",  "Cos",      "Erf",
                                         "Mish", "Atan",    "Gelu", "Softplus", "Softsign"};
  const int64_t which = draws_.Below(13);
  if (which < 10) return b_.Op(kOps[which], {x});
  if (which == 10) return Exp(Tanh(x));
  if (which == 11) return Sqrt(x * x + 1.0);
  return Log(x * x + 1.0);
}

Expr RandomGraph::Bent(const Expr& x) {
  static constexpr const char* kOps[] = {"Abs",  "Relu", "LeakyRelu", "Elu",
                                         "Selu", "Neg",  "HardSwish"};
  const int64_t which = draws_.Below(10);
  if (which < 7) return b_.Op(kOps[which], {x});
  if (which == 7) return b_.Op("Softmax", {x}, {{"axis", Axis()}});
  if (which == 8) return b_.Op("LogSoftmax", {Tanh(x)}, {{"axis", Axis()}});
  return b_.Op("Clip", {x, b_.Scalar(-0.7, x), b_.Scalar(0.9, x)});
}

Expr RandomGraph::Pair(const Expr& x) {
  const Expr y = Against(x);
  switch (draws_.Below(8)) {
    case 0: return x + y;
    case 1: return x - y;
    case 2: return Tanh(x * y);
    case 3: return x / (y * y + 1.0);
    case 4: return Max(x, y);
    case 5: return Min(x, y);
    case 6: return Where(Greater(x, y), Sin(x), y);
    default: return Tanh(Pow(x * x + 0.5, Tanh(y)));
  }
}

Expr RandomGraph::Moved(const Expr& x) {
  const int64_t axis = Axis(), size = x.dim(static_cast<int>(axis));
  switch (draws_.Below(9)) {
    case 0: return Transpose(x, {1, 0});
    case 1: return Reshape(x, {1, -1});
    case 2: return Gather(x, b_.Ints({size - 1, 0, draws_.Below(size)}), axis);
    case 3: return Slice(x, b_.Ints({0}), b_.Ints({1 + draws_.Below(size)}), b_.Ints({axis}));
    case 4: return b_.Op("Pad", {x, b_.Ints({1, 0, 0, 1})});
    case 5: return b_.Op("Tile", {x, b_.Ints({1, 2})});
    case 6: return b_.Op("CumSum", {x, b_.Int(axis)}, {{"reverse", draws_.Below(2)}});
    case 7: return b_.Op("Trilu", {x});
    default: return b_.Ops("TopK", {x, b_.Ints({1})}, 2, {{"axis", axis}})[0];
  }
}

Expr RandomGraph::Joined(const Expr& x) {
  static constexpr const char* kReductions[] = {"ReduceMean",      "ReduceSum", "ReduceMax",
                                                "ReduceLogSumExp", "ReduceL2",  "ReduceMin"};
  const int64_t which = draws_.Below(11);
  const Expr axis = b_.Ints({Axis()});
  if (which < 6) return Tanh(b_.Op(kReductions[which], {x, axis}));
  if (which == 6) return Tanh(MatMul(x, Transpose(x, {1, 0})));
  if (which == 7) return Tanh(b_.Op("Gemm", {x, Sin(x)}, {{"transA", 1}}));
  if (which == 8) return b_.Op("Einsum", {Tanh(x), x}, {{"equation", "ij,kj->ki"}});
  if (which == 9) return Concat({x, Cos(x)}, Axis());
  Expr scale = Reshape(ReduceMean(x, {0}), {-1});
  return b_.Op("LayerNormalization", {x, scale}, {{"epsilon", 0.1f}});
}

}  // namespace onward

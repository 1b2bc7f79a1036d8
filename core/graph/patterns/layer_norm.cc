// SPDX-License-Identifier: Apache-2.0
// The chains that compute LayerNormalization:
//   y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * scale + bias
// Read from the result back to x; what a failed attempt has collected is thrown
// away with it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/shape.h"
#include "core/graph/patterns/pattern.h"

namespace onward {
namespace {

// A row is the last `axes` axes of x.
struct NormRows {
  std::string x;
  int axes = 0;
  friend bool operator==(const NormRows&, const NormRows&) = default;
};

class LayerNormMatcher {
 public:
  explicit LayerNormMatcher(PatternGraph* graph) : graph_(*graph) {}

  // Rewrites the chain that ends the normalisation (before scale and bias, if
  // those are nodes of their own) at `node`.
  bool Try(const Node& node) {
    if (node.inputs.size() != 2 || node.outputs.size() != 1) return false;
    if (!Quotient(node) && !Product(node) && !Folded(node)) return false;
    nodes_.push_back(&node);
    root_ = &node;
    if (bias_.empty()) Extend();
    if (!graph_.SameForm(rows_.x, root_->outputs[0]) ||
        !graph_.Closed(nodes_, *root_, {rows_.x, scale_, bias_})) {
      return false;
    }
    std::optional<std::string> scale = scale_.empty() ? Ones() : AsRow(scale_, "scale");
    if (!scale.has_value()) return false;
    Node norm;
    norm.op_type = "LayerNormalization";
    norm.inputs = {rows_.x, *scale};
    if (!bias_.empty()) norm.inputs.push_back(*AsRow(bias_, "bias"));
    norm.attributes["axis"] = -rows_.axes;
    norm.attributes["epsilon"] = static_cast<float>(epsilon_);
    graph_.Replace(nodes_, *root_, std::move(norm));
    return true;
  }

 private:
  void Begin() {
    nodes_.clear();
    rows_ = {};
    scale_.clear();
    bias_.clear();
  }

  // y = (x - mean) / deviation
  bool Quotient(const Node& node) {
    Begin();
    return node.Is("Div") && Centred(node.inputs[0]) && Deviation(node.inputs[1]);
  }

  // y = (x - mean) * inverse
  bool Product(const Node& node) {
    if (!node.Is("Mul")) return false;
    for (int i : {0, 1}) {
      Begin();
      if (Centred(node.inputs[i]) && Inverse(node.inputs[1 - i])) return true;
    }
    return false;
  }

  // y = x * inverse + (bias - mean * inverse)
  bool Folded(const Node& node) {
    if (!node.Is("Add")) return false;
    for (int i : {0, 1}) {
      const Node* scaled = graph_.Producer(node.inputs[i], "Mul");
      const Node* shift = graph_.Producer(node.inputs[1 - i], "Sub");
      const Node* moved = shift == nullptr ? nullptr : graph_.Producer(shift->inputs[1], "Mul");
      if (scaled == nullptr || moved == nullptr) continue;
      for (int j : {0, 1}) {
        Begin();
        const int k = moved->inputs[0] == scaled->inputs[j] ? 1 : 0;
        if (moved->inputs[1 - k] != scaled->inputs[j] || !Mean(moved->inputs[k]) ||
            rows_.x != scaled->inputs[1 - j] || !Inverse(scaled->inputs[j]) ||
            !IsRow(shift->inputs[0])) {
          continue;
        }
        bias_ = shift->inputs[0];
        nodes_.insert(nodes_.end(), {scaled, shift, moved});
        return true;
      }
    }
    return false;
  }

  // A Mul by a scale and an Add of a bias that follow.
  void Extend() {
    if (scale_.empty()) Follow("Mul", &scale_);
    Follow("Add", &bias_);
  }
  void Follow(std::string_view op, std::string* parameter) {
    const Node* next = graph_.OnlyConsumer(root_->outputs[0]);
    if (next == nullptr || !next->Is(op) || next->inputs.size() != 2) return;
    const std::string& other = next->inputs[next->inputs[0] == root_->outputs[0] ? 1 : 0];
    if (!IsRow(other)) return;
    *parameter = other;
    nodes_.push_back(next);
    root_ = next;
  }

  // The mean over the rows, of x if x is given already.
  bool Mean(const std::string& value) {
    const std::optional<NormRows> rows = MeanOf(value);
    return rows.has_value() && Agree(*rows);
  }

  std::optional<NormRows> MeanOf(const std::string& value) {
    const Node* pool = graph_.Producer(value, "GlobalAveragePool", 1);
    const Node* mean = pool != nullptr ? pool : graph_.Producer(value, "ReduceMean", 1);
    const ValueType* type = mean == nullptr ? nullptr : graph_.TypeOf(mean->inputs[0]);
    if (type == nullptr || !type->has_rank) return std::nullopt;
    const int axes = pool != nullptr ? type->rank() - 2 : TrailingAxes(*mean, type->rank());
    if (axes < 1) return std::nullopt;
    nodes_.push_back(mean);
    return NormRows{mean->inputs[0], axes};
  }

  bool Agree(const NormRows& rows) {
    if (rows_.axes == 0) rows_ = rows;
    return rows_ == rows;
  }

  // x - mean(x)
  bool Centred(const std::string& value) {
    const Node* sub = graph_.Producer(value, "Sub");
    if (sub == nullptr) return false;
    const std::optional<NormRows> rows = MeanOf(sub->inputs[1]);
    if (!rows.has_value() || rows->x != sub->inputs[0] || !Agree(*rows)) return false;
    nodes_.push_back(sub);
    return true;
  }

  // mean((x - mean)^2) + epsilon
  bool Variance(const std::string& value) {
    const Node* add = graph_.Producer(value, "Add");
    if (add == nullptr) return false;
    const int i = graph_.Number(add->inputs[0]).has_value() ? 0 : 1;
    const std::optional<double> epsilon = graph_.Number(add->inputs[i]);
    if (!epsilon.has_value() || !(*epsilon >= 0) || !std::isfinite(*epsilon)) return false;
    epsilon_ = *epsilon;
    const std::optional<NormRows> squares = MeanOf(add->inputs[1 - i]);
    if (!squares.has_value() || squares->axes != rows_.axes) return false;
    nodes_.push_back(add);
    return Square(squares->x);
  }

  bool Square(const std::string& value) {
    if (const Node* power = Power(value, 2)) return Centred(power->inputs[0]);
    const Node* product = graph_.Producer(value, "Mul");
    if (product == nullptr) return false;
    nodes_.push_back(product);
    return Centred(product->inputs[0]) && Centred(product->inputs[1]);
  }

  // sqrt(variance + epsilon)
  bool Deviation(const std::string& value) {
    const Node* root = graph_.Producer(value, "Sqrt", 1);
    if (root != nullptr) {
      nodes_.push_back(root);
    } else {
      root = Power(value, 0.5);
    }
    return root != nullptr && Variance(root->inputs[0]);
  }

  // 1 / sqrt(variance + epsilon), times a scale if there is one.
  bool Inverse(const std::string& value) {
    if (const Node* node = graph_.Producer(value, "Reciprocal", 1)) {
      nodes_.push_back(node);
      return Deviation(node->inputs[0]);
    }
    if (const Node* node = graph_.Producer(value, "Div")) {
      nodes_.push_back(node);
      return graph_.Number(node->inputs[0]) == 1.0 && Deviation(node->inputs[1]);
    }
    if (const Node* node = Power(value, -0.5)) return Variance(node->inputs[0]);
    const Node* product = graph_.Producer(value, "Mul");
    if (product == nullptr || !scale_.empty()) return false;
    const int i = IsRow(product->inputs[0]) ? 0 : 1;
    if (!IsRow(product->inputs[i])) return false;
    scale_ = product->inputs[i];
    nodes_.push_back(product);
    return Inverse(product->inputs[1 - i]);
  }

  const Node* Power(const std::string& value, double exponent) {
    const Node* power = graph_.Producer(value, "Pow");
    if (power == nullptr || graph_.Number(power->inputs[1]) != exponent) return nullptr;
    nodes_.push_back(power);
    return power;
  }

  // How many of the last axes a ReduceMean takes; 0 if it takes others.
  int TrailingAxes(const Node& mean, int rank) const {
    if (mean.Int("keepdims", 1) != 1) return 0;
    std::vector<int64_t> axes = mean.Ints("axes");
    if (mean.HasInput(1)) {
      const std::optional<Tensor> given = graph_.Constant(mean.inputs[1]);
      if (!given.has_value()) return 0;
      absl::StatusOr<std::vector<int64_t>> values = ToInts(*given);
      if (!values.ok()) return 0;
      axes = *std::move(values);
    }
    if (axes.empty()) return mean.Int("noop_with_empty_axes", 0) == 0 ? rank : 0;
    std::vector<bool> taken(rank, false);
    for (int64_t axis : axes) {
      const absl::StatusOr<int> at = NormalizeAxis(axis, rank);
      if (!at.ok() || taken[*at]) return 0;
      taken[*at] = true;
    }
    const int count = static_cast<int>(axes.size());
    return std::all_of(taken.end() - count, taken.end(), [](bool t) { return t; }) ? count : 0;
  }

  // The shape of a row, where it is known.
  std::optional<Shape> RowShape() const {
    const ValueType& x = *graph_.TypeOf(rows_.x);
    Shape shape;
    for (int i = x.rank() - rows_.axes; i < x.rank(); ++i) {
      if (!x.dims[i].known()) return std::nullopt;
      shape.push_back(x.dims[i].value);
    }
    return shape;
  }

  // Whether the value has the shape of a row, or that with ones before it.
  bool IsRow(const std::string& value) const {
    const ValueType *type = graph_.TypeOf(value), &x = *graph_.TypeOf(rows_.x);
    if (type == nullptr || !type->has_rank || type->dtype != x.dtype) return false;
    const int ones = type->rank() - rows_.axes;
    if (ones < 0 || type->rank() > x.rank() || (ones > 0 && !RowShape().has_value())) return false;
    for (int i = 0; i < ones; ++i) {
      if (type->dims[i].value != 1) return false;
    }
    for (int i = 0; i < rows_.axes; ++i) {
      const Dim &own = type->dims[ones + i], &wanted = x.dims[x.rank() - rows_.axes + i];
      if (own != wanted || (!own.known() && own.symbol.empty())) return false;
    }
    return true;
  }

  // A value for which IsRow holds, without the ones before it.
  std::optional<std::string> AsRow(const std::string& value, std::string_view hint) {
    if (graph_.TypeOf(value)->rank() == rows_.axes) return value;
    const Shape shape = *RowShape();
    const int64_t rank = shape.rank();
    Node reshape;
    reshape.op_type = "Reshape";
    reshape.inputs = {value, graph_.AddConstant(*root_, "row_shape",
                                                Tensor::FromValues<int64_t>({rank}, shape.dims()))};
    return graph_.AddBefore(*root_, hint, std::move(reshape),
                            ValueType::Of(graph_.TypeOf(value)->dtype, shape));
  }

  // A scale that changes nothing; nothing where the row's size is not known.
  std::optional<std::string> Ones() {
    constexpr int64_t kLongest = int64_t{1} << 20;
    const std::optional<Shape> shape = RowShape();
    if (!shape.has_value()) return std::nullopt;
    const absl::StatusOr<int64_t> elements = CheckedElements(shape->dims());
    if (!elements.ok() || *elements > kLongest) return std::nullopt;
    const Tensor one = ScalarOf(graph_.TypeOf(rows_.x)->dtype, 1);
    Tensor ones(one.dtype(), *shape);
    char* to = static_cast<char*>(ones.raw());
    for (int64_t i = 0; i < *elements; ++i) {
      std::memcpy(to + i * one.bytes(), one.raw(), one.bytes());
    }
    return graph_.AddConstant(*root_, "ones", std::move(ones));
  }

  PatternGraph& graph_;
  std::vector<const Node*> nodes_;
  const Node* root_ = nullptr;
  NormRows rows_;
  double epsilon_ = 0;
  std::string scale_, bias_;
};

}  // namespace

bool MatchLayerNormalization(PatternGraph* graph, const Node& node) {
  return LayerNormMatcher(graph).Try(node);
}

}  // namespace onward

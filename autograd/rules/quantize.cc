// SPDX-License-Identifier: Apache-2.0
// Gradient rules: conversions to and from small integers, and products in integer arithmetic.
// A quantized value stands for the real number before rounding: its gradient is float, and
// passes the rounding unchanged (straight through).
#include <algorithm>
#include <optional>
#include <vector>

#include "autograd/functions.h"
#include "autograd/rule.h"
#include "autograd/shape_expr.h"
#include "core/base/shape.h"
#include "core/base/small_float.h"

namespace onward {
namespace {

Expr AsFloat(const Expr& x) { return x.dtype() == DType::kFloat ? x : Cast(x, DType::kFloat); }

// The scales of a node's x: how to bring one to the shape of x, and a gradient back.
class Scales {
 public:
  // Fails (nullopt) where x does not have the axis.
  static std::optional<Scales> Of(const Vjp& v) {
    Scales s;
    const int scale_rank = v.x(1).rank();
    s.block_ = v.attr("block_size", 0);
    if (s.block_ == 0 && (scale_rank == 0 || v.x(1).dim(0) == 1)) return s;
    s.whole_ = false;
    s.x_ = v.x(0);
    s.scale_ = v.x(1);
    s.given_axis_ = v.attr("axis", 1);
    const absl::StatusOr<int> axis = NormalizeAxis(s.given_axis_, s.x_.rank());
    if (s.x_.rank() >= 0 && !axis.ok()) {
      FailAt(v.b(), v.node(), "x does not have the axis");
      return std::nullopt;
    }
    s.axis_ = axis.ok() ? *axis : 0;
    s.open_ = !axis.ok() || scale_rank < 0 || (s.block_ > 0 && s.x_.dim(*axis) < 0);
    return s;
  }

  Expr Spread(const Expr& scale) const {
    if (whole_) return scale;
    if (open_ && block_ == 0) return AlongAxisOf(scale, given_axis_, x_);
    if (open_) return onward::Gather(scale, Blocks(), given_axis_);
    if (block_ == 0) return AlongAxis(scale, axis_, x_.rank());
    const Expr repeated = ReshapeTo(Expand(Unsqueeze(scale, {axis_ + 1}), Repeat()), Joined());
    GraphBuilder& b = scale.builder();
    return Slice(repeated, b.Ints({0}), b.Ints({x_.dim(axis_)}), b.Ints({axis_}));
  }

  // The sum over all elements that share a scale.
  Expr Gather(const Expr& g) const {
    if (whole_) return g;  // summed by the engine
    if (open_ && block_ == 0) return ReduceSum(g, AxesButOf(x_, given_axis_), /*keepdims=*/false);
    if (open_) {
      const Expr scale = AsFloat(scale_);
      const Expr places = onward::Gather(FlatPositions(scale), Blocks(), given_axis_);
      return AddAtPositions(g, places, scale);
    }
    if (block_ == 0) return ReduceSum(g, AxesBut(x_.rank(), axis_), /*keepdims=*/false);
    const int64_t missing = blocks() * block_ - x_.dim(axis_);
    Expr full = g;
    if (missing > 0) {
      std::vector<int64_t> pads(2 * x_.rank());
      pads[x_.rank() + axis_] = missing;
      full = g.builder().Op("Pad", {g, g.builder().Ints(pads)});
    }
    return ReduceSum(ReshapeTo(full, Split()), {axis_ + 1}, /*keepdims=*/false);
  }

 private:
  // The block of each element along the axis.
  Expr Blocks() const { return CountTo(DimScalar(x_, given_axis_)) / x_.builder().Int(block_); }
  int64_t blocks() const { return (x_.dim(axis_) + block_ - 1) / block_; }
  Expr Repeat() const {
    std::vector<int64_t> shape(x_.rank() + 1, 1);
    shape[axis_ + 1] = block_;
    return x_.builder().Ints(shape);
  }
  std::vector<Extent> Joined() const {
    std::vector<Extent> shape;
    for (int d = 0; d < x_.rank(); ++d) {
      shape.push_back(d == axis_ ? Fixed(blocks() * block_) : DimOf(x_, d));
    }
    return shape;
  }
  std::vector<Extent> Split() const {
    std::vector<Extent> shape;
    for (int d = 0; d < x_.rank(); ++d) {
      shape.push_back(d == axis_ ? Fixed(blocks()) : DimOf(x_, d));
      if (d == axis_) shape.push_back(Fixed(block_));
    }
    return shape;
  }

  bool whole_ = true;
  bool open_ = false;  // only the data tell the shapes
  int axis_ = 0;
  int64_t given_axis_ = 1, block_ = 0;
  Expr x_, scale_;
};

// Numbers that y can hold.
Expr Inside(const Expr& rounded, DType dtype) {
  const bool is_float = IsSmallFloat(dtype);
  const float largest = is_float ? LargestSmallFloat(dtype) : 0;
  const IntegerRange range = is_float ? IntegerRange() : RangeOf(dtype);
  GraphBuilder& b = rounded.builder();
  return And(GreaterOrEqual(rounded, b.Scalar(is_float ? -largest : range.low, rounded)),
             LessOrEqual(rounded, b.Scalar(is_float ? largest : range.high, rounded)));
}

// y = saturate(round(x / s) + z);  with dy by the number before rounding:
// dx = dy / s and ds = -dy * x / s^2 where round(x / s) + z is one of y's numbers, its lowest
// and highest included, else 0 (PyTorch's fake_quantize)
Grads QuantizeLinearVjp(const Vjp& v) {
  const std::optional<Scales> scales = Scales::Of(v);
  if (!scales.has_value()) return {};
  const Expr x = AsFloat(v.x(0)), s = scales->Spread(AsFloat(v.x(1)));
  const Expr quotient = x / s;
  Expr rounded = v.b().Op("Round", {quotient});
  if (v.has_x(2)) rounded = rounded + scales->Spread(AsFloat(v.x(2)));
  const Expr dx = ZeroUnless(Inside(rounded, v.y().dtype()), v.dy() / s);
  Grads grads = {dx};
  if (v.needs(1)) grads.push_back(scales->Gather(-(dx * quotient)));
  return grads;
}

// y = (x - z) * s;  dx = dy * s, ds = dy * (x - z)
Grads DequantizeLinearVjp(const Vjp& v) {
  const std::optional<Scales> scales = Scales::Of(v);
  if (!scales.has_value()) return {};
  const Expr dy = AsFloat(v.dy());
  Grads grads(2);
  if (v.needs(0)) grads[0] = dy * scales->Spread(AsFloat(v.x(1)));
  if (v.needs(1)) {
    Expr x = AsFloat(v.x(0));
    if (v.has_x(2)) x = x - scales->Spread(AsFloat(v.x(2)));
    grads[1] = scales->Gather(dy * x);
  }
  return grads;
}

}  // namespace

void RegisterQuantizeRules(RuleTable& table) {
  table.Add("QuantizeLinear", QuantizeLinearVjp);
  table.Add("DequantizeLinear", DequantizeLinearVjp);
  for (const char* op : {"MatMulInteger", "QLinearMatMul", "ConvInteger", "QLinearConv"}) {
    table.AddZero(op);
  }
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "autograd/shape_expr.h"

#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/graph/filled.h"
#include "core/tensor/tensor.h"

namespace onward {
namespace {

enum class Fit { kEqual, kSum, kExpand, kUndecided, kMismatch };

// How one dimension of a gradient compares with the same one of its value.
Fit CompareDims(const Dim& g, const Dim& x) {
  if (g.known() && x.known()) {
    if (g.value == x.value) return Fit::kEqual;
    if (x.value == 1) return Fit::kSum;
    return g.value == 1 ? Fit::kExpand : Fit::kMismatch;
  }
  if (!g.symbol.empty() && g.symbol == x.symbol) return Fit::kEqual;
  if (g.known() && g.value == 1) return Fit::kExpand;
  // A gradient is never smaller than a dimension known to exceed 1.
  if (x.known()) return x.value == 1 ? Fit::kSum : Fit::kEqual;
  return Fit::kUndecided;
}

struct FitPlan {
  int lead = 0;                     // dimensions that g has in front of x's
  std::vector<int64_t> inner_axes;  // of g, kept as 1 after summing
  bool expand = false;
  bool undecided = false;
  bool mismatch = false;
};

FitPlan PlanFit(const ValueType& g, const ValueType& x) {
  FitPlan plan;
  plan.lead = g.rank() - x.rank();
  plan.expand = plan.lead < 0;
  for (int i = std::max(plan.lead, 0); i < g.rank(); ++i) {
    switch (CompareDims(g.dims[i], x.dims[i - plan.lead])) {
      case Fit::kEqual: break;
      case Fit::kSum: plan.inner_axes.push_back(i); break;
      case Fit::kExpand: plan.expand = true; break;
      case Fit::kUndecided: plan.undecided = true; break;
      case Fit::kMismatch: plan.mismatch = true; break;
    }
  }
  return plan;
}

// Which axes were broadcast is found when the graph runs: those where g's shape
// differs from x's, padded with ones in front.
Expr SumToAtRunTime(const Expr& g, const Expr& x) {
  GraphBuilder& b = g.builder();
  Expr target = ShapeOf(x);
  Expr ones;
  if (g.rank() >= 0 && x.rank() >= 0) {
    if (g.rank() > x.rank()) ones = b.Ints(std::vector<int64_t>(g.rank() - x.rank(), 1));
  } else {
    Expr missing = ShapeOf(ShapeOf(g)) - ShapeOf(target);
    ones = b.Op("ConstantOfShape", {missing}, {{"value", Tensor::FromValues<int64_t>({1}, {1})}});
  }
  Expr padded = ones.defined() ? Concat({ones, target}, 0) : target;
  Expr differs = Not(Equal(padded, ShapeOf(g)));
  Expr axes = Squeeze(b.Op("NonZero", {differs}), {0});
  return b.Op("Reshape", {ReduceSum(g, axes), target}, {{"allowzero", 1}});
}

Expr SumStatically(const Expr& g, const FitPlan& plan) {
  std::vector<int64_t> lead_axes;
  for (int i = 0; i < plan.lead; ++i) lead_axes.push_back(i);
  if (plan.inner_axes.empty()) {
    return lead_axes.empty() ? g : ReduceSum(g, lead_axes, /*keepdims=*/false);
  }
  std::vector<int64_t> axes = lead_axes;
  axes.insert(axes.end(), plan.inner_axes.begin(), plan.inner_axes.end());
  Expr sum = ReduceSum(g, axes, /*keepdims=*/true);
  return lead_axes.empty() ? sum : Squeeze(sum, lead_axes);
}

// Whether each axis of x is this one.
Expr IsAxis(const Expr& x, int64_t axis) {
  GraphBuilder& b = x.builder();
  const Expr rank = SizeOf(ShapeOf(x));
  return Equal(CountTo(rank), axis < 0 ? rank + b.Int(axis) : b.Int(axis));
}

std::optional<std::vector<int64_t>> ConstantInts(const Expr& e) {
  const Tensor* t = e.builder().ConstantOf(e.name());
  if (t == nullptr) return std::nullopt;
  absl::StatusOr<std::vector<int64_t>> values = ToInts(*t);
  if (!values.ok()) return std::nullopt;
  return *std::move(values);
}

}  // namespace

Expr WithShapeOf(const Expr& e, const Expr& like) {
  const ValueType shape = like.type();
  if (!shape.has_rank || !e.defined()) return e;
  ValueType& type = e.builder().graph().types[e.name()];
  if (!type.is_tensor()) return e;
  if (type.dtype == DType::kUndefined) type.dtype = shape.dtype;
  type.has_rank = true;
  type.dims = shape.dims;
  return e;
}

Expr ShapeVector(const Expr& x) {
  if (std::optional<Shape> shape = x.type().StaticShape()) {
    return x.builder().Ints({shape->begin(), shape->end()});
  }
  return ShapeOf(x);
}

Expr DimVector(const Expr& x, int64_t axis) {
  GraphBuilder& b = x.builder();
  if (int64_t d = x.dim(static_cast<int>(axis)); d >= 0) return b.Ints({d});
  if (axis < 0 && x.rank() >= 0) axis += x.rank();
  if (axis == -1) return b.Op("Shape", {x}, {{"start", -1}});
  return ShapeOf(x, axis, axis + 1);
}

Expr DimScalar(const Expr& x, int64_t axis) {
  const int64_t known = x.dim(static_cast<int>(axis));
  return known >= 0 ? x.builder().Int(known) : Squeeze(DimVector(x, axis), {0});
}

Expr ProductOf(const Expr& sizes) {
  return sizes.builder().Op("ReduceProd", {sizes}, {{"keepdims", 1}});
}

Expr CountTo(const Expr& n) {
  GraphBuilder& b = n.builder();
  return b.Op("Range", {b.Int(0), n, b.Int(1)});
}

Expr JoinVectors(GraphBuilder& b, const std::vector<Expr>& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<int64_t> values;
  for (const Expr& part : parts) {
    std::optional<std::vector<int64_t>> ints = ConstantInts(part);
    if (!ints) return Concat(parts, 0);
    values.insert(values.end(), ints->begin(), ints->end());
  }
  return b.Ints(std::move(values));
}

Expr DimsBefore(const Expr& x, int64_t end) { return x.builder().Op("Shape", {x}, {{"end", end}}); }

Expr DimsFrom(const Expr& x, int64_t start) {
  return x.builder().Op("Shape", {x}, {{"start", start}});
}

Expr OfRank(const Expr& x, int rank) {
  return x.rank() >= 0 ? x : Reshape(x, std::vector<int64_t>(rank, 0));
}

Expr AroundAxis(const Expr& x, int64_t axis) {
  GraphBuilder& b = x.builder();
  const Expr along = Gather(ShapeOf(x), b.Ints({axis}));
  const Expr behind = axis == -1 ? b.Ints({1}) : ProductOf(DimsFrom(x, axis + 1));
  const Expr shape = Concat({ProductOf(DimsBefore(x, axis)), along, behind}, 0);
  return b.Op("Reshape", {x, shape}, {{"allowzero", 1}});
}

Expr AlongAxisOf(const Expr& vector, int64_t axis, const Expr& like) {
  GraphBuilder& b = like.builder();
  return Reshape(vector, Where(IsAxis(like, axis), b.Int(-1), b.Int(1)));
}

Expr AxesButOf(const Expr& like, int64_t axis) {
  return Squeeze(like.builder().Op("NonZero", {Not(IsAxis(like, axis))}), {0});
}

Expr TurnLastTwo(const Expr& x) {
  if (x.rank() >= 2) {
    std::vector<int64_t> perm(x.rank());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return Transpose(x, std::move(perm));
  }
  GraphBuilder& b = x.builder();
  const Expr shape = ShapeOf(x), batch = DimsBefore(x, -2);
  const Expr rows = Gather(shape, b.Ints({-2})), columns = Gather(shape, b.Ints({-1}));
  const auto shaped = [&](const Expr& e, std::vector<Expr> sizes) {
    return b.Op("Reshape", {e, Concat(std::move(sizes), 0)}, {{"allowzero", 1}});
  };
  const Expr stack = shaped(x, {ProductOf(batch), rows, columns});
  return shaped(Transpose(stack, {0, 2, 1}), {batch, columns, rows});
}

Expr ExpandLike(const Expr& e, const Expr& like) {
  if (std::optional<Shape> shape = like.type().StaticShape();
      shape.has_value() && e.type().StaticShape() == shape) {
    return e;
  }
  return WithShapeOf(Expand(e, ShapeVector(like)), like);
}

Expr FullLike(const Expr& like, double value) {
  GraphBuilder& b = like.builder();
  if (like.rank() == 0) return b.Scalar(value, like);
  const DType dtype = like.dtype();
  Expr shape = ShapeVector(like);
  Expr full = dtype == DType::kUndefined ? Expand(b.Scalar(value, like), shape)
                                         : Filled(shape, dtype, value);
  return WithShapeOf(full, like);
}

Expr Flat(const Expr& e) { return Reshape(e, {-1}); }

Expr FitTo(const Expr& g, const Expr& x) {
  const ValueType from = g.type();
  const ValueType to = x.type();
  if (!from.has_rank || !to.has_rank) {
    if (from.rank() == 0) return ExpandLike(g, x);
    return WithShapeOf(SumToAtRunTime(g, x), x);
  }
  const FitPlan plan = PlanFit(from, to);
  if (plan.mismatch) {
    return g.builder().Fail(
        absl::InternalError(absl::StrCat("the gradient has type ", from.ToString(), ", its value '",
                                         x.name(), "' has ", to.ToString())));
  }
  if (plan.undecided)
    return WithShapeOf(SumToAtRunTime(plan.expand ? Expand(g, ShapeOf(x)) : g, x), x);
  Expr sum = SumStatically(g, plan);
  return plan.expand ? ExpandLike(sum, x) : WithShapeOf(sum, x);
}

Expr FlatPositions(const Expr& x) {
  GraphBuilder& b = x.builder();
  Expr count = b.Op("Range", {b.Int(0), SizeOf(x), b.Int(1)});
  return WithShapeOf(b.Op("Reshape", {count, ShapeVector(x)}, {{"allowzero", 1}}), x);
}

Expr AddAtPositions(const Expr& g, const Expr& positions, const Expr& like) {
  GraphBuilder& b = g.builder();
  Expr zeros = Flat(FullLike(like, 0));
  Expr sum = b.Op("ScatterElements", {zeros, Flat(positions), Flat(g)},
                  {{"axis", 0}, {"reduction", "add"}});
  return WithShapeOf(ReshapeLike(sum, like), like);
}

}  // namespace onward

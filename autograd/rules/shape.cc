// SPDX-License-Identifier: Apache-2.0
// Gradient rules of operators that move elements without looking at them.
// Dimensions may be unknown while the graph is built.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autograd/rule.h"
#include "autograd/shape_expr.h"
#include "core/tensor/tensor.h"

namespace onward {
namespace {

std::optional<std::vector<int64_t>> ConstantInts(const Vjp& v, int input) {
  if (!v.has_x(input)) return std::nullopt;
  const Tensor* t = v.b().ConstantOf(v.node().inputs[input]);
  if (t == nullptr) return std::nullopt;
  absl::StatusOr<std::vector<int64_t>> values = ToInts(*t);
  if (!values.ok()) return std::nullopt;
  return *std::move(values);
}

std::vector<int64_t> FirstInts(int64_t n) {
  std::vector<int64_t> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = i;
  return values;
}

// y = x in another shape;  dx = dy in x's shape (Reshape, Flatten, Squeeze,
// Unsqueeze)
Grads ReshapeVjp(const Vjp& v) { return {WithShapeOf(ReshapeLike(v.dy(), v.x(0)), v.x(0))}; }

// y = x broadcast;  dx = dy summed to x's shape, which the engine does
Grads ExpandVjp(const Vjp& v) { return {v.dy()}; }

// y = x repeated;  dx = sum over the repetitions: dy seen as
// [r0, d0, r1, d1, ...] summed over its even axes
Grads TileVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const std::optional<std::vector<int64_t>> repeats = ConstantInts(v, 1);
  const std::optional<Shape> shape = v.x(0).type().StaticShape();
  Expr folded, axes;
  if (repeats && shape && static_cast<int>(repeats->size()) == shape->rank()) {
    std::vector<int64_t> dims;
    for (int i = 0; i < shape->rank(); ++i) {
      dims.push_back((*repeats)[i]);
      dims.push_back((*shape)[i]);
    }
    folded = b.Ints(std::move(dims));
  } else {
    folded = Flat(Concat({Unsqueeze(v.x(1), {1}), Unsqueeze(ShapeOf(v.x(0)), {1})}, 1));
  }
  if (v.x(0).rank() >= 0) {
    std::vector<int64_t> even = FirstInts(v.x(0).rank());
    for (int64_t& axis : even) axis *= 2;
    axes = b.Ints(std::move(even));
  } else {
    axes = b.Op("Range", {b.Int(0), SizeOf(folded), b.Int(2)});
  }
  Expr parts = b.Op("Reshape", {v.dy(), folded}, {{"allowzero", 1}});
  return {WithShapeOf(ReduceSum(parts, axes, /*keepdims=*/false), v.x(0))};
}

// y = x_0 | x_1 | ...;  dx_i = the i-th part of dy
Grads ConcatVjp(const Vjp& v) {
  if (v.inputs() == 1) return {v.dy()};
  const int64_t axis = v.attr("axis", 0);
  std::vector<Expr> sizes;
  for (int i = 0; i < v.inputs(); ++i) sizes.push_back(DimVector(v.x(i), axis));
  std::vector<Expr> parts =
      v.b().Ops("Split", {v.dy(), JoinVectors(v.b(), sizes)}, v.inputs(), {{"axis", axis}});
  Grads grads;
  for (int i = 0; i < v.inputs(); ++i) grads.push_back(WithShapeOf(parts[i], v.x(i)));
  return grads;
}

// y_0 | y_1 | ... = x;  dx = dy_0 | dy_1 | ...
Grads SplitVjp(const Vjp& v) {
  std::vector<Expr> parts;
  for (int i = 0; i < static_cast<int>(v.node().outputs.size()); ++i) parts.push_back(v.dy(i));
  return {WithShapeOf(Concat(std::move(parts), v.attr("axis", 0)), v.x(0))};
}

// y = x with permuted axes;  dx = dy with the inverse permutation
Grads TransposeVjp(const Vjp& v) {
  const std::vector<int64_t> perm = v.node().Ints("perm");
  if (perm.empty()) return {v.b().Op("Transpose", {v.dy()})};
  const int64_t rank = static_cast<int64_t>(perm.size());
  std::vector<int64_t> inverse(rank, 0);
  for (int64_t i = 0; i < rank; ++i) {
    if (perm[i] < 0 || perm[i] >= rank) {
      return {v.b().Fail(absl::InvalidArgumentError(
          absl::StrCat("perm holds ", perm[i], ", expected 0 to ", rank - 1)))};
    }
    inverse[perm[i]] = i;
  }
  return {WithShapeOf(Transpose(v.dy(), std::move(inverse)), v.x(0))};
}

// The axes of a Slice as constants, where they are.
std::optional<std::vector<int64_t>> SliceAxes(const Vjp& v) {
  if (v.has_x(3)) return ConstantInts(v, 3);
  if (auto starts = ConstantInts(v, 1)) return FirstInts(static_cast<int64_t>(starts->size()));
  // A Slice has at most as many starts as x has axes.
  const int64_t count = v.x(1).rank() == 1 ? v.x(1).dim(0) : -1;
  if (count < 0 || count > v.x(0).rank()) return std::nullopt;
  return FirstInts(count);
}

bool HasUnitSteps(const Vjp& v) {
  if (!v.has_x(4)) return true;
  const std::optional<std::vector<int64_t>> steps = ConstantInts(v, 4);
  return steps && std::all_of(steps->begin(), steps->end(), [](int64_t s) { return s == 1; });
}

// What Pad has to add in front and behind to undo a Slice with unit steps.
std::optional<std::vector<int64_t>> StaticSlicePads(const Vjp& v,
                                                    const std::vector<int64_t>& axes) {
  const std::optional<std::vector<int64_t>> starts = ConstantInts(v, 1);
  if (!starts || starts->size() != axes.size()) return std::nullopt;
  std::vector<int64_t> before, after;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t whole = v.x(0).dim(static_cast<int>(axes[i]));
    const int64_t part = v.y().dim(static_cast<int>(axes[i]));
    if (whole < 0 || part < 0) return std::nullopt;
    int64_t start = (*starts)[i];
    if (start < 0) start += whole;
    before.push_back(std::clamp<int64_t>(start, 0, whole));
    after.push_back(whole - before.back() - part);
  }
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

Expr SlicePads(const Vjp& v, const Expr& axes) {
  GraphBuilder& b = v.b();
  Expr starts = v.x(1).dtype() == DType::kInt64 ? v.x(1) : Cast(v.x(1), DType::kInt64);
  Expr zero = b.Int(0);
  Expr whole = Gather(ShapeOf(v.x(0)), axes);
  Expr part = Gather(ShapeOf(v.y()), axes);
  Expr from_front = Where(Less(starts, zero), starts + whole, starts);
  Expr before = Max(Min(from_front, whole), zero);
  return Concat({before, whole - before - part}, 0);
}

// y = x[start:end:step, ...];  dx = zeros with dy at the places that were read
Grads SliceVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const std::optional<std::vector<int64_t>> axes = SliceAxes(v);
  if (HasUnitSteps(v) && (axes || v.has_x(3))) {
    Expr axes_value = axes ? b.Ints(*axes) : v.x(3);
    Expr pads;
    if (auto fixed = axes ? StaticSlicePads(v, *axes) : std::nullopt) {
      if (std::all_of(fixed->begin(), fixed->end(), [](int64_t p) { return p == 0; })) {
        return {WithShapeOf(v.dy(), v.x(0))};
      }
      pads = b.Ints(*fixed);
    } else {
      pads = SlicePads(v, axes_value);
    }
    return {WithShapeOf(b.Op("Pad", {v.dy(), pads, Expr(), axes_value}), v.x(0))};
  }
  Expr steps = v.has_x(4) ? v.x(4) : Expr();
  if (axes && axes->size() == 1 && v.x(0).rank() >= 0) {
    Expr length = Squeeze(DimVector(v.x(0), (*axes)[0]), {0});
    Expr all = b.Op("Range", {b.Int(0), length, b.Int(1)});
    Expr axis0 = v.x(1).dtype() == DType::kInt32 ? b.Constant(Tensor::FromValues<int32_t>({1}, {0}))
                                                 : b.Ints({0});
    Expr read = Slice(all, v.x(1), v.x(2), axis0, steps);
    Expr dx = b.Op("GatherGrad", {v.dy(), read, v.x(0)}, {{"axis", (*axes)[0]}}, kOnwardDomain);
    return {WithShapeOf(dx, v.x(0))};
  }
  Expr axes_value = v.has_x(3) ? v.x(3) : Expr();
  Expr positions = Slice(FlatPositions(v.x(0)), v.x(1), v.x(2), axes_value, steps);
  return {AddAtPositions(v.dy(), positions, v.x(0))};
}

// Removes what a Pad in constant mode added (and fills with 0 what negative
// pads removed).
Expr Unpad(const Vjp& v) {
  GraphBuilder& b = v.b();
  const std::optional<std::vector<int64_t>> pads = ConstantInts(v, 1);
  const std::optional<std::vector<int64_t>> given_axes = ConstantInts(v, 3);
  const bool nonnegative =
      pads && std::all_of(pads->begin(), pads->end(), [](int64_t p) { return p >= 0; });
  if (!nonnegative || (v.has_x(3) && !given_axes)) {
    return b.Op("Pad", {v.dy(), -v.x(1), Expr(), v.has_x(3) ? v.x(3) : Expr()});
  }
  const size_t n = pads->size() / 2;
  const std::vector<int64_t> axes = given_axes ? *given_axes : FirstInts(static_cast<int64_t>(n));
  std::vector<int64_t> starts, ends, sliced;
  for (size_t i = 0; i < n && i < axes.size(); ++i) {
    const int64_t before = (*pads)[i], after = (*pads)[n + i];
    if (before == 0 && after == 0) continue;
    starts.push_back(before);
    ends.push_back(after == 0 ? std::numeric_limits<int64_t>::max() : -after);
    sliced.push_back(axes[i]);
  }
  if (sliced.empty()) return v.dy();
  return Slice(v.dy(), b.Ints(starts), b.Ints(ends), b.Ints(sliced));
}

// y = x with a border;  dx = dy without the border in constant mode, where
// dvalue = sum(dy) - sum(dx). In the other modes (reflect, edge, wrap) each
// border element adds its gradient to the element it copied.
Grads PadVjp(const Vjp& v) {
  const std::string mode = v.node().String("mode", "constant");
  if (mode != "constant") {
    Expr axes = v.has_x(3) ? v.x(3) : Expr();
    Expr positions =
        v.b().Op("Pad", {FlatPositions(v.x(0)), v.x(1), Expr(), axes}, {{"mode", mode}});
    return {AddAtPositions(v.dy(), positions, v.x(0))};
  }
  Expr dx = WithShapeOf(Unpad(v), v.x(0));
  if (v.inputs() < 3 || !v.needs(2)) return {dx};
  return {dx, std::nullopt, ReduceSumAll(v.dy()) - ReduceSumAll(dx)};
}

// y = x with blocks of channels moved to space;  dx = the way back. In CRD mode
// dy is [N, C, H, block, W, block] and x is [N, C, block, block, H, W].
Grads DepthToSpaceVjp(const Vjp& v) {
  const int64_t block = v.attr("blocksize", 1);
  if (v.node().String("mode", "DCR") != "CRD") {
    return {WithShapeOf(v.b().Op("SpaceToDepth", {v.dy()}, {{"blocksize", block}}), v.x())};
  }
  Expr size = v.b().Ints({block});
  Expr shape = JoinVectors(v.b(), {DimVector(v.x(), 0), DimVector(v.y(), 1), DimVector(v.x(), 2),
                                   size, DimVector(v.x(), 3), size});
  Expr blocks = v.b().Op("Reshape", {v.dy(), shape}, {{"allowzero", 1}});
  return {WithShapeOf(ReshapeLike(Transpose(blocks, {0, 1, 3, 5, 2, 4}), v.x()), v.x())};
}

// y = x with blocks of space moved to channels;  dx = the way back
Grads SpaceToDepthVjp(const Vjp& v) {
  Expr dx =
      v.b().Op("DepthToSpace", {v.dy()},
               {{"blocksize", v.attr("blocksize", 1)}, {"mode", v.node().String("mode", "DCR")}});
  return {WithShapeOf(dx, v.x())};
}

// y = the triangle of x above (or below) diagonal k;  dx = that triangle of dy
Grads TriluVjp(const Vjp& v) {
  Expr k = v.has_x(1) ? v.x(1) : Expr();
  return {v.b().Op("Trilu", {v.dy(), k}, {{"upper", v.attr("upper", 1)}})};
}

// y = x with the first seq_lens[b] steps of each batch turned round; its own
// inverse
Grads ReverseSequenceVjp(const Vjp& v) {
  return {
      v.b().Op("ReverseSequence", {v.dy(), v.x(1)},
               {{"batch_axis", v.attr("batch_axis", 1)}, {"time_axis", v.attr("time_axis", 0)}})};
}

// y_i = start + i*delta;  dstart = sum(dy), ddelta = sum(i * dy)
Grads RangeVjp(const Vjp& v) {
  Grads grads(3);
  if (v.needs(0)) grads[0] = ReduceSumAll(v.dy());
  if (v.needs(2)) {
    Expr i = v.b().Op("Range", {v.b().Int(0), SizeOf(v.dy()), v.b().Int(1)});
    grads[2] = ReduceSumAll(CastLike(i, v.dy()) * v.dy());
  }
  return grads;
}

}  // namespace

void RegisterShapeRules(RuleTable& table) {
  for (const char* op : {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}) table.Add(op, ReshapeVjp);
  table.Add("Expand", ExpandVjp);
  table.Add("Tile", TileVjp);
  table.Add("Concat", ConcatVjp);
  table.Add("Split", SplitVjp);
  table.Add("Transpose", TransposeVjp);
  table.Add("Slice", SliceVjp);
  table.Add("Pad", PadVjp);
  table.Add("DepthToSpace", DepthToSpaceVjp);
  table.Add("SpaceToDepth", SpaceToDepthVjp);
  table.Add("Trilu", TriluVjp);
  table.Add("ReverseSequence", ReverseSequenceVjp);
  table.Add("Range", RangeVjp);
  for (const char* op : {"Shape", "Size", "ConstantOfShape", "EyeLike"}) table.AddZero(op);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Bodies of DeformColumns and DeformColumnsGrad, the part of a deformable convolution that is
// no product of matrices.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autograd/functions.h"
#include "autograd/functions/sampling.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

// Tensors with the channels as [N, groups, channels of a group, places], a place being a tap of
// the kernel at an output; without channels [N, groups, places].
struct Deformed {
  int axes = 0;
  int64_t taps = 1, groups = 1;
  Expr x;                      // pixels for places
  Expr mask;                   // undefined: ones
  std::vector<PixelTap> read;  // [N, groups, places]
};

// Where tap (k) of output (o) lies along one axis without an offset: o * stride - pad + k *
// dilation, as [1, 1, taps, outputs].
Expr Bases(GraphBuilder& b, const Windows& w, int axis, const Expr& offset, const Expr& like) {
  const int axes = w.axes();
  int64_t taps = 1, inner = 1;
  for (int i = 0; i < axes; ++i) {
    taps *= w.kernel[i];
    if (i > axis) inner *= w.kernel[i];
  }
  Tensor shifts(DType::kDouble, {1, 1, taps, 1});
  for (int64_t k = 0; k < taps; ++k) {
    shifts.data<double>()[k] =
        static_cast<double>(k / inner % w.kernel[axis] * w.dilations[axis] - w.pads_begin[axis]);
  }
  Expr count = Squeeze(DimsOf(offset, 2 + axis, 3 + axis), {0});
  Expr steps = b.Op("Range", {b.Int(0), count, b.Int(1)}) * b.Int(w.strides[axis]);
  Expr spread = Expand(AlongAxis(steps, axis, axes), DimsOf(offset, 2, 2 + axes));
  return CastLike(Reshape(spread, {1, 1, 1, -1}), like) + CastLike(b.Constant(shifts), like);
}

// e, whose axes are those of x up to the channels, by groups of channels: [N, groups, channels of
// a group, rest].
Expr InGroups(const Expr& e, const Expr& x, int64_t groups) {
  GraphBuilder& b = e.builder();
  if (x.dim(1) >= 0) {
    return ReshapeTo(e, {DimOf(x, 0), Fixed(groups), Fixed(x.dim(1) / groups), Rest()});
  }
  const Expr channels = ShapeOf(x, 1, 2) / b.Ints({groups});
  return Reshape(e, Concat({ShapeOf(x, 0, 1), b.Ints({groups}), channels, b.Ints({-1})}, 0));
}

Expr Flattened(const Expr& e, const Expr& x, int64_t groups) {
  return ReshapeTo(e, {DimOf(x, 0), Fixed(groups), Rest()});
}

// `in` holds X, offset and mask from `first` on.
std::optional<Deformed> DeformedOf(GraphBuilder& b, const Node& call, const std::vector<Expr>& in,
                                   size_t first) {
  const Expr& x = in[first];
  Deformed d;
  d.groups = call.Int("offset_group", 1);
  std::optional<Windows> w = PoolWindowsOf(b, call, x);
  if (!w) return std::nullopt;
  if (d.groups < 1 || (x.dim(1) >= 0 && x.dim(1) % d.groups != 0)) {
    FailAt(b, call, "the channels of X do not divide into offset groups");
    return std::nullopt;
  }
  d.axes = w->axes();
  for (int64_t k : w->kernel) {
    if (d.taps > (int64_t{1} << 20)) return std::nullopt;
    d.taps *= k;
  }
  Expr wide = Widened(x), offset = Widened(in[first + 1]);
  // [N, groups, taps, axes, outputs]
  Expr parts =
      ReshapeTo(offset, {DimOf(x, 0), Fixed(d.groups), Fixed(d.taps), Fixed(d.axes), Rest()});
  std::vector<Expr> coordinates;
  for (int a = 0; a < d.axes; ++a) {
    Expr at = Gather(parts, b.Int(a), 3) + Bases(b, *w, a, in[first + 1], wide);
    coordinates.push_back(Flattened(at, x, d.groups));
  }
  d.read = TapsAt(coordinates, wide, {});
  d.x = InGroups(wide, x, d.groups);
  if (Argument(in, first + 2).defined()) {
    d.mask = Flattened(Widened(in[first + 2]), x, d.groups);
  }
  return d;
}

// What a tap reads in every channel: [N, groups, channels of a group, places].
Expr Places(const Deformed& d, const PixelTap& tap) {
  GraphBuilder& b = d.x.builder();
  const int64_t channels = d.x.dim(2);
  if (channels >= 0) return Expand(Unsqueeze(tap.position, {2}), b.Ints({1, 1, channels, 1}));
  const Expr shape = Concat({b.Ints({1, 1}), DimVector(d.x, 2), b.Ints({1})}, 0);
  return Expand(Unsqueeze(tap.position, {2}), shape);
}
Expr Seen(const Deformed& d, const Expr& places) {
  return d.x.builder().Op("GatherElements", {d.x, places}, {{"axis", 3}});
}

// column = mask * sum over pixels of weight * x
std::vector<Expr> DeformColumns(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  std::optional<Deformed> d = DeformedOf(b, call, in, 0);
  if (!d) return {};
  Expr sum;
  for (const PixelTap& tap : d->read) {
    Expr part = Seen(*d, Places(*d, tap)) * Unsqueeze(tap.weight, {2});
    sum = sum.defined() ? sum + part : part;
  }
  if (d->mask.defined()) sum = sum * Unsqueeze(d->mask, {2});
  return {
      CastLike(ReshapeTo(sum, {DimOf(in[0], 0), DimOf(in[0], 1), Fixed(d->taps), Rest()}), in[0])};
}

// dx[pixel] = sum of mask * weight * dcolumn;  dmask = sum over channels of dcolumn * weight * x;
// doffset = mask * sum over channels of dcolumn * slope * x
std::vector<Expr> DeformColumnsGrad(GraphBuilder& b, const Node& call,
                                    const std::vector<Expr>& in) {
  std::optional<Deformed> d = DeformedOf(b, call, in, 1);
  if (!d) return {};
  const Expr& x = in[1];
  Expr dy = InGroups(Widened(in[0]), x, d->groups);
  Expr masked = d->mask.defined() ? dy * Unsqueeze(d->mask, {2}) : dy;
  Expr dx = FullLike(d->x, 0), dmask;
  std::vector<Expr> moved(d->axes);
  for (const PixelTap& tap : d->read) {
    Expr places = Places(*d, tap);
    dx = b.Op("ScatterElements", {dx, places, masked * Unsqueeze(tap.weight, {2})},
              {{"axis", 3}, {"reduction", "add"}});
    Expr moment = ReduceSum(dy * Seen(*d, places), {2}, /*keepdims=*/false);
    const auto add = [](Expr& to, const Expr& part) { to = to.defined() ? to + part : part; };
    for (int a = 0; a < d->axes; ++a) add(moved[a], moment * tap.slopes[a]);
    add(dmask, moment * tap.weight);
  }
  std::vector<Expr> listed;
  for (Expr& m : moved) {
    if (d->mask.defined()) m = m * d->mask;
    listed.push_back(
        ReshapeTo(m, {DimOf(x, 0), Fixed(d->groups), Fixed(d->taps), Fixed(1), Rest()}));
  }
  const auto like = [](const Expr& e, const Expr& input) {
    return WithShapeOf(CastLike(ReshapeLike(e, input), input), input);
  };
  std::vector<Expr> results = {like(dx, x), like(Concat(listed, 3), in[2])};
  if (d->mask.defined()) results.push_back(like(dmask, in[3]));
  return results;
}

// [N, C, taps, outputs] of a call whose X and offset are inputs `x` and x + 1.
absl::StatusOr<std::vector<ValueType>> ColumnTypes(const Node& call,
                                                   absl::Span<const InputFact> inputs,
                                                   const OperatorSet&,
                                                   const std::map<std::string, int>&) {
  ValueType type;
  if (inputs.size() < 2 || inputs[0].type == nullptr) return std::vector<ValueType>{type};
  type.dtype = inputs[0].type->dtype;
  type.has_rank = true;
  type.dims.assign(4, Dim());
  if (inputs[0].type->rank() > 2) {
    type.dims[0] = inputs[0].type->dims[0];
    type.dims[1] = inputs[0].type->dims[1];
  }
  int64_t taps = 1, points = 1;
  for (int64_t k : call.Ints("kernel_shape")) {
    if (k < 1 || k > INT32_MAX || taps > INT32_MAX) {
      return absl::InvalidArgumentError(absl::StrCat(call.Describe(), ": kernel_shape holds ", k));
    }
    taps *= k;
  }
  type.dims[2].value = taps;
  const ValueType* offset = inputs[1].type;
  for (int i = 2; offset != nullptr && i < offset->rank() && points >= 0; ++i) {
    const int64_t dim = offset->dims[i].value;
    points = dim < 0 || dim > INT32_MAX || points > INT32_MAX ? -1 : points * dim;
  }
  type.dims[3].value = offset == nullptr || offset->rank() < 3 ? -1 : points;
  return std::vector<ValueType>{type};
}

}  // namespace

void RegisterDeformFunctions(FunctionLibrary& library) {
  const std::vector<std::string> attributes = {"dilations", "kernel_shape", "offset_group", "pads",
                                               "strides"};
  library.Add("DeformColumns", {.body = DeformColumns,
                                .types = ColumnTypes,
                                .output_like = {},
                                .shape_only = {},
                                .attributes = attributes,
                                .required = 2,
                                .operands = "T"});
  library.Add("DeformColumnsGrad", {.body = DeformColumnsGrad,
                                    .output_like = {1, 2, 3},
                                    .shape_only = {},
                                    .attributes = attributes,
                                    .required = 3,
                                    .operands = "T"});
}

}  // namespace onward

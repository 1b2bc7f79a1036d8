// SPDX-License-Identifier: Apache-2.0
// Bodies of what samples pictures: GridSampleGrad.
#include "autograd/functions/sampling.h"

#include <algorithm>

#include "autograd/functions.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

Expr Floor(const Expr& x) { return x.builder().Op("Floor", {x}); }
Expr As01(const Expr& condition, const Expr& like) { return CastLike(condition, like); }

// One pixel along one axis.
struct LineTap {
  Expr index;   // whole, in [0, size)
  Expr inside;  // 0 or 1; undefined: always inside
  Expr weight, slope;
};

// What decides how an axis is read; scalars.
struct Line {
  Expr size, low, range;  // reflection turns at low and low + range
  const Sampling& how;
};

// x mirrored until it lies in [low, low + range]; which way the result moves.
struct Mirrored {
  Expr x, sign;
};

Mirrored Mirror(const Expr& x, const Line& line) {
  GraphBuilder& b = x.builder();
  Expr one = b.Scalar(1, x), zero = b.Scalar(0, x);
  // A picture of one pixel has no width to mirror in.
  Expr narrow = LessOrEqual(line.range, zero);
  Expr period = Where(narrow, one, line.range) * 2;
  Expr from = x - line.low;
  Expr rest = from - Floor(from / period) * period;
  Expr back = Greater(rest, line.range);
  Expr turned = line.low + Where(back, period - rest, rest);
  return {Where(narrow, zero, turned), Where(narrow, zero, Where(back, -one, one))};
}

Expr Clamped(const Expr& x, const Line& line) {
  return Min(Max(x, x.builder().Scalar(0, x)), line.size - 1);
}

// The pixel that stands at a whole number, which may lie beyond the ends.
LineTap PixelAt(const Expr& i, const Line& line) {
  if (line.how.padding == "reflection")
    return {Clamped(Floor(Mirror(i, line).x), line), {}, {}, {}};
  Expr index = Clamped(i, line);
  if (line.how.padding == "border") return {index, {}, {}, {}};
  return {index, As01(Equal(index, i), i), {}, {}};
}

// Keys' kernel with a = -3/4 as a function of the distance d, within 1 and from 1 to 2, and its
// derivative.
struct Curve {
  Expr value, slope;
};
Curve Inner(const Expr& d) {
  constexpr double a = -0.75;
  return {(d * (a + 2) - (a + 3)) * d * d + 1, (d * (3 * (a + 2)) - 2 * (a + 3)) * d};
}
Curve Outer(const Expr& d) {
  constexpr double a = -0.75;
  return {((d * a - 5 * a) * d + 8 * a) * d - 4 * a, (d * (3 * a) - 10 * a) * d + 8 * a};
}

std::vector<LineTap> LineTaps(Expr x, const Line& line) {
  GraphBuilder& b = x.builder();
  Expr one = b.Scalar(1, x), sign = one;
  if (line.how.mode == "nearest") x = b.Op("Round", {x});
  // The taps of cubic are led back one by one.
  if (line.how.mode != "cubic" && line.how.padding != "zeros") {
    if (line.how.padding == "reflection") {
      Mirrored mirrored = Mirror(x, line);
      x = mirrored.x;
      sign = mirrored.sign;
    }
    Expr still = Or(LessOrEqual(x, b.Scalar(0, x)), GreaterOrEqual(x, line.size - 1));
    sign = Where(still, b.Scalar(0, x), sign);
    x = Clamped(x, line);
  }
  if (line.how.mode == "nearest") {
    LineTap tap = PixelAt(x, line);
    tap.weight = one;
    tap.slope = b.Scalar(0, x);
    return {tap};
  }
  Expr left = Floor(x), t = x - left;
  std::vector<Curve> curves;
  if (line.how.mode == "linear") {
    curves = {{1 - t, -sign}, {t, sign}};
  } else {
    Curve far_left = Outer(1 + t), near_left = Inner(t), near = Inner(1 - t), far = Outer(2 - t);
    curves = {{far_left.value, far_left.slope * sign},
              {near_left.value, near_left.slope * sign},
              {near.value, -(near.slope * sign)},
              {far.value, -(far.slope * sign)}};
  }
  const double first = line.how.mode == "linear" ? 0 : -1;
  std::vector<LineTap> taps;
  for (size_t k = 0; k < curves.size(); ++k) {
    LineTap tap = PixelAt(left + (first + static_cast<double>(k)), line);
    tap.weight = curves[k].value;
    tap.slope = curves[k].slope;
    taps.push_back(tap);
  }
  return taps;
}

Expr Times(const Expr& a, const Expr& b) { return a.defined() ? (b.defined() ? a * b : a) : b; }

// Every tap so far with every tap of one more axis.
std::vector<PixelTap> Combined(const std::vector<PixelTap>& taps, const std::vector<LineTap>& line,
                               const Expr& size) {
  std::vector<PixelTap> all;
  for (const PixelTap& tap : taps) {
    for (const LineTap& next : line) {
      Expr weight = Times(next.weight, next.inside), slope = Times(next.slope, next.inside);
      PixelTap both;
      both.position = tap.position.defined() ? tap.position * size + next.index : next.index;
      both.weight = Times(tap.weight, weight);
      for (const Expr& s : tap.slopes) both.slopes.push_back(s * weight);
      both.slopes.push_back(Times(tap.weight, slope));
      all.push_back(both);
    }
  }
  return all;
}

// x and dy as [N, C, positions].
Expr Planes(const Expr& x) { return ReshapeTo(x, {DimOf(x, 0), DimOf(x, 1), Rest()}); }

// y = sum over taps of weight * x[position];
// dx[position] = sum of weight * dy;  dcoordinate = sum over channels of slope * x[position] * dy
std::vector<Expr> GridSampleGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const int axes = in[1].rank() - 2;
  if (axes < 1) {
    FailAt(b, call, "the rank of X is not known; declare the input's shape");
    return {};
  }
  const std::string mode = call.String("mode", "linear");
  Sampling how{mode == "bilinear"  ? "linear"
               : mode == "bicubic" ? "cubic"
                                   : mode,
               call.String("padding_mode", "zeros"), call.Int("align_corners", 0) != 0};
  Expr x = Widened(in[1]), dy = Planes(Widened(in[0]));
  Expr grid = ReshapeTo(CastLike(in[2], x), {DimOf(in[2], 0), Rest(), Fixed(axes)});
  std::vector<Expr> coordinates, rates;
  for (int a = 0; a < axes; ++a) {
    Expr size = SizeAlong(x, 2 + a, x);
    rates.push_back((how.align_corners ? size - 1 : size) / 2);
    // The grid lists the last axis first.
    coordinates.push_back(Gather(grid, b.Int(axes - 1 - a), 2) * rates[a] + (size - 1) / 2);
  }
  Expr planes = Planes(x), dx = FullLike(planes, 0);
  std::vector<Expr> moved(axes);  // gradients of the coordinates
  for (const PixelTap& tap : TapsAt(coordinates, x, how)) {
    Expr places = ExpandLike(Unsqueeze(tap.position, {1}), dy);
    dx = b.Op("ScatterElements", {dx, places, dy * Unsqueeze(tap.weight, {1})},
              {{"axis", 2}, {"reduction", "add"}});
    if (!call.HasOutput(1)) continue;
    Expr seen = b.Op("GatherElements", {planes, places}, {{"axis", 2}});
    Expr moment = ReduceSum(dy * seen, {1}, /*keepdims=*/false);
    for (int a = 0; a < axes; ++a) {
      Expr part = moment * tap.slopes[a];
      moved[a] = moved[a].defined() ? moved[a] + part : part;
    }
  }
  dx = WithShapeOf(CastLike(ReshapeLike(dx, in[1]), in[1]), in[1]);
  if (!call.HasOutput(1)) return {dx};
  std::vector<Expr> listed;
  for (int a = axes - 1; a >= 0; --a) listed.push_back(Unsqueeze(moved[a] * rates[a], {2}));
  return {dx, WithShapeOf(CastLike(ReshapeLike(Concat(listed, 2), in[2]), in[2]), in[2])};
}

}  // namespace

Expr SizeAlong(const Expr& x, int axis, const Expr& like) {
  const int64_t known = x.dim(axis);
  if (known >= 0) return x.builder().Scalar(static_cast<double>(known), like);
  return CastLike(Squeeze(ShapeOf(x, axis, axis + 1), {0}), like);
}

std::vector<PixelTap> TapsAt(const std::vector<Expr>& coordinates, const Expr& x,
                             const Sampling& how) {
  GraphBuilder& b = x.builder();
  std::vector<PixelTap> taps = {{}};
  for (size_t a = 0; a < coordinates.size(); ++a) {
    const Expr& at = coordinates[a];
    Expr size = SizeAlong(x, 2 + static_cast<int>(a), at);
    Expr low = b.Scalar(how.align_corners ? 0 : -0.5, at);
    const Line line{size, low, how.align_corners ? size - 1 : size, how};
    taps = Combined(taps, LineTaps(at, line), size);
  }
  for (PixelTap& tap : taps) {
    tap.position = Cast(tap.position, DType::kInt64);
    tap.weight = ExpandLike(tap.weight, coordinates[0]);
  }
  return taps;
}

void RegisterSamplingFunctions(FunctionLibrary& library) {
  library.Add("GridSampleGrad", {.body = GridSampleGrad,
                                 .output_like = {1, 2},
                                 .shape_only = {},
                                 .attributes = {"align_corners", "mode", "padding_mode"},
                                 .required = 3,
                                 .operands = "TTF"});
}

}  // namespace onward

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

// How many axes the pictures have, by whatever tells; 0 or less: nothing does.
int PictureAxes(const std::vector<Expr>& in) {
  const int rank = std::max({in[0].rank(), in[1].rank(), in[2].rank()});
  return rank >= 0 ? rank - 2 : static_cast<int>(in[2].dim(-1));
}

// GridSampleGrad where only the data tell how many axes there are: in lists along an axis of their
// own, [N, points, axes]. A combination takes one tap of each axis.
std::vector<Expr> GridSampleGradOfAnyRank(GraphBuilder& b, const Node& call,
                                          const std::vector<Expr>& in, const Sampling& how) {
  const Expr x = Widened(in[1]), dy = Planes(Widened(in[0])), planes = Planes(x);
  const Expr extent = DimsFrom(x, 2), sizes = CastLike(extent, x);
  const Expr axes = SizeOf(extent), axis = CountTo(axes);
  const Expr listed = axes - b.Int(1) - axis;  // the grid lists the last axis first
  const Expr rates = (how.align_corners ? sizes - 1 : sizes) / 2;
  const Expr points = Reshape(CastLike(in[2], x),
                              Concat({DimVector(in[2], 0), b.Ints({-1}), Reshape(axes, {1})}, 0));
  const Expr at = Gather(points, listed, 2) * rates + (sizes - 1) / 2;
  const Line line{sizes, b.Scalar(how.align_corners ? 0 : -0.5, at),
                  how.align_corners ? sizes - 1 : sizes, how};
  const std::vector<LineTap> taps = LineTaps(at, line);
  // Combination t has tap (t / kinds^(axes - 1 - a)) mod kinds of axis a.
  const Expr kinds = b.Int(static_cast<int64_t>(taps.size()));
  const Expr combinations = CountTo(Pow(kinds, axes));
  const Expr digits = b.Op("Mod", {combinations / Unsqueeze(Pow(kinds, listed), {1}), kinds});
  const Expr picked = Unsqueeze(axis * kinds, {1}) + digits;
  // [N, points, axes, combinations]
  const auto combined = [&](Expr (*part)(const LineTap&)) {
    std::vector<Expr> parts;
    for (const LineTap& tap : taps) parts.push_back(Unsqueeze(ExpandLike(part(tap), at), {3}));
    return Gather(Reshape(Concat(parts, 3), {0, 0, -1}), picked, 2);
  };
  const auto product = [&](const Expr& e, int64_t of) {
    return b.Op("ReduceProd", {e, b.Ints({of})}, {{"keepdims", 0}});
  };
  const Expr weights = combined([](const LineTap& t) { return Times(t.weight, t.inside); });
  const Expr indices = Cast(combined([](const LineTap& t) { return t.index; }), DType::kInt64);
  const Expr behind = Greater(Unsqueeze(axis, {0}), Unsqueeze(axis, {1}));
  const Expr strides = product(Where(behind, extent, b.Int(1)), 1);
  const Expr positions = ReduceSum(indices * Unsqueeze(strides, {1}), {2}, /*keepdims=*/false);
  const Expr places = Expand(Reshape(positions, {0, 1, -1}),
                             Concat({b.Ints({1}), DimVector(planes, 1), b.Ints({1})}, 0));
  const Expr arriving = Unsqueeze(dy, {3});
  const Expr spread = Reshape(arriving * Unsqueeze(product(weights, 2), {1}), {0, 0, -1});
  const Expr dx = b.Op("ScatterElements", {FullLike(planes, 0), places, spread},
                       {{"axis", 2}, {"reduction", "add"}});
  std::vector<Expr> results = {CastLike(ReshapeLike(dx, in[1]), in[1])};
  if (!call.HasOutput(1)) return results;
  const Expr seen = b.Op("GatherElements", {planes, places}, {{"axis", 2}});
  const Expr each = Reshape(seen, Concat({ShapeOf(dy), b.Ints({-1})}, 0));
  const Expr moment = ReduceSum(arriving * each, {1}, /*keepdims=*/false);
  // By one axis: its slope, the weights of the others.
  const Expr slopes = combined([](const LineTap& t) { return Times(t.slope, t.inside); });
  const Expr own = Unsqueeze(Equal(Unsqueeze(axis, {0}), Unsqueeze(axis, {1})), {2});
  const Expr rising = product(Where(own, Unsqueeze(slopes, {2}), Unsqueeze(weights, {2})), 3);
  const Expr moved = ReduceSum(Unsqueeze(moment, {2}) * rising, {3}, /*keepdims=*/false) * rates;
  results.push_back(CastLike(ReshapeLike(Gather(moved, listed, 2), in[2]), in[2]));
  return results;
}

// y = sum over taps of weight * x[position];
// dx[position] = sum of weight * dy;  dcoordinate = sum over channels of slope * x[position] * dy
std::vector<Expr> GridSampleGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const int axes = PictureAxes(in);
  if (in[1].rank() >= 0 && axes < 1) {
    FailAt(b, call, "X has no spatial axis");
    return {};
  }
  const std::string mode = call.String("mode", "linear");
  Sampling how{mode == "bilinear"  ? "linear"
               : mode == "bicubic" ? "cubic"
                                   : mode,
               call.String("padding_mode", "zeros"), call.Int("align_corners", 0) != 0};
  if (axes < 1) return GridSampleGradOfAnyRank(b, call, in, how);
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

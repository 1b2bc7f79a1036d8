// SPDX-License-Identifier: Apache-2.0
// CropAndResize: parts of pictures brought to one size.
#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

// Where the rows (or columns) of each crop lie in a picture, all [crops, count].
struct Places {
  Expr at, low, high;  // real, and the whole numbers around it
  Expr inside;
};

// From `first` to `last` (of [crops, 1], 0 and 1 being the ends of the picture) in `count`
// equal steps; one alone lies in the middle.
Places PlacesOf(const Expr& first, const Expr& last, const Expr& count, const Expr& size) {
  GraphBuilder& b = first.builder();
  const Expr one = b.Int(1);
  const Expr end = CastLike(size - one, first), steps = CastLike(Max(count - one, one), first);
  const Expr start = Where(Greater(count, one), first, (first + last) * 0.5);
  Places places;
  places.at = start * end + CastLike(RangeTo(count), first) * ((last - first) * end / steps);
  const Expr zero = b.Scalar(0, first);
  places.inside = And(GreaterOrEqual(places.at, zero), LessOrEqual(places.at, end));
  const auto whole = [&](const char* rounding) {
    return Cast(Max(Min(b.Op(rounding, {places.at}), end), zero), DType::kInt64);
  };
  places.low = whole("Floor");
  places.high = whole("Ceil");
  return places;
}

// Elements of x [crops, C, H, W] along axis 2 or 3 at `index` [crops, count].
Expr Taken(const Expr& x, const Expr& index, int axis) {
  GraphBuilder& b = x.builder();
  const Expr count = ShapeOf(index, 1, 2);
  const Expr shape = axis == 2 ? Concat({ShapeOf(x, 0, 2), count, ShapeOf(x, 3, 4)}, 0)
                               : Concat({ShapeOf(x, 0, 3), count}, 0);
  const Expr wide =
      Unsqueeze(index, axis == 2 ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{1, 2});
  return b.Op("GatherElements", {x, Expand(wide, shape)}, {{"axis", axis}});
}

std::vector<Expr> CropAndResize(const Call& call) {
  if (!call.HasRank(0, {4}) || !call.HasRank(1, {2}) || !call.HasRank(3, {1})) return {};
  const std::string mode = call.node().String("mode", "bilinear");
  if (mode != "bilinear" && mode != "nearest") {
    return call.Refuse("mode is '" + mode + "', expected bilinear or nearest");
  }
  GraphBuilder& b = call.b();
  const Expr sizes = Cast(call.in(3), DType::kInt64);
  const auto corner = [&](int64_t i) { return SliceAxis(call.in(1), 1, i, i + 1); };
  Expr x = Gather(call.in(0), call.in(2));
  Expr inside;
  for (const int axis : {2, 3}) {
    const int64_t first = axis - 2;
    const Places places = PlacesOf(corner(first), corner(first + 2), Gather(sizes, b.Int(first)),
                                   DimOf(call.in(0), axis));
    const std::vector<int64_t> others =
        axis == 2 ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{1, 2};
    if (mode == "nearest") {
      // Halves go away from zero.
      const Expr nearest = Cast(b.Op("Floor", {places.at + 0.5}), DType::kInt64);
      x = Taken(x, Min(Max(nearest, places.low), places.high), axis);
    } else {
      const Expr low = Taken(x, places.low, axis), high = Taken(x, places.high, axis);
      const Expr part = places.at - CastLike(places.low, places.at);
      x = low + (high - low) * Unsqueeze(part, others);
    }
    const Expr here = Unsqueeze(places.inside, others);
    inside = inside.defined() ? And(inside, here) : here;
  }
  const double outside = static_cast<double>(call.node().Float("extrapolation_value", 0));
  return {Where(inside, x, b.Scalar(outside, x))};
}

}  // namespace

void RegisterCrops(FunctionLibrary& library) {
  library.Add("CropAndResize", Define(CropAndResize, 4, "TTII"), kDomain);
}

}  // namespace onward::microsoft

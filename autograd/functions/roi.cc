// SPDX-License-Identifier: Apache-2.0
// Bodies of RoiAlignGrad and MaxRoiPoolGrad.
#include <algorithm>
#include <string>

#include "autograd/functions.h"
#include "autograd/functions/sampling.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

// Samples of all bins along one side, as [regions, bins, samples].
struct Side {
  Expr at;       // the coordinate, within the picture
  Expr counted;  // 1 for samples that the bin has
  Expr inside;   // 1 for those of them that lie in the picture or next to it
  Expr count;    // samples of a bin, [regions]
  Expr pixels;   // of the side
};

Expr Spread(const Expr& regions) { return Unsqueeze(regions, {1, 2}); }

// A side from `from` to `to`, numbers of all regions.
Side SideOf(GraphBuilder& b, const Node& call, const Expr& from, const Expr& to, int64_t bins,
            const Expr& pixels) {
  const bool half = call.String("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const double scale = call.Float("spatial_scale", 1), shift = half ? 0.5 : 0;
  const int64_t ratio = call.Int("sampling_ratio", 0);
  Expr zero = b.Scalar(0, from), one = b.Scalar(1, from);
  Expr start = from * scale - shift, length = to * scale - shift - start;
  if (!half) length = Max(length, one);
  Expr bin = length / static_cast<double>(bins);
  Expr count = ratio > 0 ? bin * 0 + static_cast<double>(ratio) : Max(b.Op("Ceil", {bin}), zero);
  Expr most =
      ratio > 0
          ? b.Int(ratio)
          : Cast(b.Op("ReduceMax", {Concat({count, Unsqueeze(one, {0})}, 0)}, {{"keepdims", 0}}),
                 DType::kInt64);
  Expr i = CastLike(b.Op("Range", {b.Int(0), most, b.Int(1)}), from);
  Expr p = CastLike(b.Op("Range", {b.Int(0), b.Int(bins), b.Int(1)}), from);
  Expr y = Spread(start) + Spread(bin) * Unsqueeze(p, {1}) +
           (i + 0.5) * Spread(bin) / Spread(Max(count, one));
  Expr counted = Less(i, Spread(count));
  Expr inside = And(GreaterOrEqual(y, -one), LessOrEqual(y, pixels));
  Expr all = CastLike(counted, y);
  return {Min(Max(y, zero), pixels - 1), all + y * 0, all * CastLike(inside, y), count, pixels};
}

// The sum over the samples of the weight of each pixel: [regions, bins, pixels].
Expr Weights(const Side& side) {
  GraphBuilder& b = side.at.builder();
  Expr pixel = b.Op("Range", {b.Scalar(0, side.at), side.pixels, b.Scalar(1, side.at)});
  Expr near = Max(1 - Abs(Unsqueeze(side.at, {3}) - pixel), b.Scalar(0, side.at));
  return ReduceSum(near * Unsqueeze(side.inside, {3}), {2}, /*keepdims=*/false);
}

// dx of each region by itself, [regions, C, H, W], of an average:
// y = R x C' / count for weights R of rows and C of columns;  dx = R' dy C / count
Expr AverageGrad(const Expr& dy, const Side& down, const Side& across) {
  Expr count = Max(down.count * across.count, dy.builder().Scalar(1, dy));
  Expr rows = Unsqueeze(Transpose(Weights(down), {0, 2, 1}), {1});
  return MatMul(rows, MatMul(dy / Unsqueeze(count, {1, 2, 3}), Unsqueeze(Weights(across), {1})));
}

// The pixels on both sides of the samples and their weights, along one side.
struct Neighbours {
  Expr index[2], weight[2];
};

Neighbours NeighboursOf(const Side& side) {
  GraphBuilder& b = side.at.builder();
  Neighbours n;
  n.index[0] = b.Op("Floor", {side.at});
  n.index[1] = Min(n.index[0] + 1, side.pixels - 1);
  Expr part = side.at - n.index[0];
  n.weight[0] = (1 - part) * side.inside;
  n.weight[1] = part * side.inside;
  return n;
}

// All samples of all bins as [regions, bins * samples * 4 or so], from what the sides have.
Expr Crossed(const Expr& down, const Expr& across) {
  return Unsqueeze(down, {2, 4}) + Unsqueeze(across, {1, 3});
}
Expr CrossedProduct(const Expr& down, const Expr& across) {
  return Unsqueeze(down, {2, 4}) * Unsqueeze(across, {1, 3});
}

// The same of a maximum: the gradient goes to the pixel whose product with its weight is the
// largest one of the bin.
Expr MaximumGrad(const Expr& dy, const Expr& x, const Side& down, const Side& across,
                 int64_t bins) {
  GraphBuilder& b = dy.builder();
  const Neighbours v = NeighboursOf(down), h = NeighboursOf(across);
  std::vector<Expr> positions, weights, counted;
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 2; ++k) {
      positions.push_back(Unsqueeze(Crossed(v.index[i] * across.pixels, h.index[k]), {5}));
      weights.push_back(Unsqueeze(CrossedProduct(v.weight[i], h.weight[k]), {5}));
      counted.push_back(Unsqueeze(CrossedProduct(down.counted, across.counted), {5}));
    }
  }
  // [regions, C or 1, bins, samples]
  const auto joined = [&](const std::vector<Expr>& parts) {
    return ReshapeTo(Concat(parts, 5), {DimOf(dy, 0), Fixed(1), Fixed(bins), Rest()});
  };
  Expr pixels = ReshapeTo(x, {DimOf(dy, 0), DimOf(x, 1), Fixed(1), Rest()});
  Expr channels = Concat({b.Ints({1}), DimVector(x, 1), b.Ints({1, 1})}, 0);
  Expr position = Expand(Cast(joined(positions), DType::kInt64), channels);
  Expr weight = Expand(joined(weights), channels);
  Expr flat = ReshapeTo(position, {DimOf(dy, 0), DimOf(x, 1), Fixed(1), Rest()});
  Expr seen = b.Op("GatherElements", {pixels, flat}, {{"axis", 3}});
  Expr product = ReshapeTo(seen, {DimOf(dy, 0), DimOf(x, 1), Fixed(bins), Rest()}) * weight;
  Expr lowest = b.Scalar(-3e38, dy);
  Expr candidates = Where(Greater(joined(counted), b.Scalar(0, dy)), product, lowest);
  Expr best = b.Op("ArgMax", {candidates}, {{"axis", 3}, {"keepdims", 1}});
  const auto pick = [&](const Expr& of) {
    Expr chosen = b.Op("GatherElements", {of, best}, {{"axis", 3}});
    return ReshapeTo(chosen, {DimOf(dy, 0), DimOf(x, 1), Fixed(1), Fixed(bins)});
  };
  Expr gradient = ReshapeTo(dy, {DimOf(dy, 0), DimOf(x, 1), Fixed(1), Fixed(bins)});
  return b.Op("ScatterElements", {FullLike(pixels, 0), pick(position), gradient * pick(weight)},
              {{"axis", 3}, {"reduction", "add"}});
}

// Gradients of the regions, each by itself in the shape of a picture, added up by pictures.
Expr SumOfRegions(const Expr& dx, const Expr& images, const Expr& x) {
  GraphBuilder& b = x.builder();
  Expr whole = ReshapeTo(dx, {DimOf(dx, 0), DimOf(x, 1), DimOf(x, 2), DimOf(x, 3)});
  return b.Op("ScatterND", {FullLike(x, 0), Unsqueeze(images, {1}), whole}, {{"reduction", "add"}});
}

bool MayBePictures(const Expr& x) { return x.rank() < 0 || x.rank() == 4; }

std::vector<Expr> RoiAlignGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const int64_t tall = call.Int("output_height", 1), wide = call.Int("output_width", 1);
  if (!MayBePictures(in[1]) || tall < 1 || wide < 1 || tall > (1 << 20) || wide > (1 << 20)) {
    FailAt(b, call, "X is not [N, C, H, W], or the output has no size");
    return {};
  }
  Expr dy = Widened(in[0]), x = Widened(in[1]), rois = Widened(in[2]);
  Expr images = CastLike(in[3], b.Int(0));
  const auto corner = [&](int64_t i) { return Gather(rois, b.Int(i), 1); };
  const Side down = SideOf(b, call, corner(1), corner(3), tall, SizeAlong(x, 2, dy));
  const Side across = SideOf(b, call, corner(0), corner(2), wide, SizeAlong(x, 3, dy));
  Expr dx = call.String("mode", "avg") == "max"
                ? MaximumGrad(dy, Gather(x, images), down, across, tall * wide)
                : AverageGrad(dy, down, across);
  return {WithShapeOf(CastLike(SumOfRegions(dx, images, x), in[1]), in[1])};
}

// Which pixels the bins have along one side, bool[regions, bins, pixels]: the side is rounded to
// whole pixels, halves away from zero.
Expr PixelsOfBins(const Expr& from, const Expr& to, double scale, int64_t bins,
                  const Expr& pixels) {
  GraphBuilder& b = from.builder();
  Expr far = b.Scalar(1 << 30, from);
  const auto pixel = [&](const Expr& at) {
    Expr scaled = at * scale;
    Expr rounded = Sign(scaled) * b.Op("Floor", {Abs(scaled) + 0.5});
    return Cast(Max(Min(rounded, far), -far), DType::kInt64);
  };
  Expr start = pixel(from), one = b.Int(1), n = b.Int(bins);
  Expr length = Unsqueeze(Max(pixel(to) - start + one, one), {1});
  Expr bin = CountTo(n);
  Expr begin = Unsqueeze(start, {1}) + bin * length / n;
  Expr end = Unsqueeze(start, {1}) + ((bin + one) * length + n - one) / n;
  Expr at = CountTo(pixels);
  return And(GreaterOrEqual(at, Unsqueeze(begin, {2})), Less(at, Unsqueeze(end, {2})));
}

// 1 for the bins that have pixels, else 0.
Expr HasPixels(const Expr& inside, const Expr& like) {
  return Min(ReduceSum(CastLike(inside, like), {2}, /*keepdims=*/false),
             like.builder().Scalar(1, like));
}

// The gradient goes to the first largest pixel of a bin: of the first row that has it, the first
// column.
std::vector<Expr> MaxRoiPoolGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const std::vector<int64_t> bins = call.Ints("pooled_shape");
  if (!MayBePictures(in[1]) || bins.size() != 2 || std::min(bins[0], bins[1]) < 1) {
    FailAt(b, call, "X is not [N, C, H, W], or pooled_shape are not two sizes");
    return {};
  }
  Expr dy = Widened(in[0]), x = Widened(in[1]), rois = Widened(in[2]);
  const double scale = call.Float("spatial_scale", 1);
  const auto corner = [&](int64_t i) { return Gather(rois, b.Int(i), 1); };
  Expr images = Cast(corner(0), DType::kInt64);
  Expr rows = PixelsOfBins(corner(2), corner(4), scale, bins[0], DimScalar(x, 2));
  Expr columns = PixelsOfBins(corner(1), corner(3), scale, bins[1], DimScalar(x, 3));
  Expr pictures = Gather(x, images), lowest = b.Scalar(-3e38, dy);
  const auto first_largest = [&](const Expr& of) {
    return b.Op("ArgMax", {of}, {{"axis", 4}, {"keepdims", 0}});
  };
  // The largest of each row between the bins' columns, [regions, C, bins across, rows] ...
  Expr in_row = Where(Unsqueeze(columns, {1, 3}), Unsqueeze(pictures, {2}), lowest);
  Expr column = first_largest(in_row);
  Expr largest = b.Op("ReduceMax", {in_row, b.Ints({4})}, {{"keepdims", 0}});
  // ... then of the rows, [regions, C, bins across, bins down].
  Expr row = first_largest(Where(Unsqueeze(rows, {1, 2}), Unsqueeze(largest, {3}), lowest));
  column = b.Op("GatherElements", {column, row}, {{"axis", 3}});
  Expr has = Unsqueeze(HasPixels(columns, dy), {1, 3}) * Unsqueeze(HasPixels(rows, dy), {1, 2});
  Expr gradient = Transpose(dy, {0, 1, 3, 2}) * has;
  const auto flat = [&](const Expr& e) {
    return ReshapeTo(e, {DimOf(dy, 0), DimOf(x, 1), Rest()});
  };
  Expr dx =
      b.Op("ScatterElements",
           {FullLike(flat(pictures), 0), flat(row * DimScalar(x, 3) + column), flat(gradient)},
           {{"axis", 2}, {"reduction", "add"}});
  return {WithShapeOf(CastLike(SumOfRegions(dx, images, x), in[1]), in[1])};
}

}  // namespace

void RegisterRoiFunctions(FunctionLibrary& library) {
  library.Add("RoiAlignGrad",
              {.body = RoiAlignGrad,
               .output_like = {1},
               .shape_only = {},
               .attributes = {"coordinate_transformation_mode", "mode", "output_height",
                              "output_width", "sampling_ratio", "spatial_scale"},
               .required = 4,
               .operands = "TTTI"});
  library.Add("MaxRoiPoolGrad", {.body = MaxRoiPoolGrad,
                                 .output_like = {1},
                                 .shape_only = {},
                                 .attributes = {"pooled_shape", "spatial_scale"},
                                 .required = 3,
                                 .operands = "TTT"});
}

}  // namespace onward

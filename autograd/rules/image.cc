// SPDX-License-Identifier: Apache-2.0
// Gradient rules: resizing and sampling of pictures, regions of interest, decoding.
#include <optional>

#include "autograd/functions.h"
#include "autograd/rule.h"
#include "autograd/shape_expr.h"
#include "core/base/shape.h"
#include "core/graph/filled.h"

namespace onward {
namespace {

Expr Optional(const Vjp& v, int i) { return v.has_x(i) ? v.x(i) : Expr(); }

// The axes of a Resize, the first input of the three lists being `first`.
struct ResizeLists {
  std::vector<int64_t> axes;
  Expr roi, scales, sizes;
};

// Which axes are changed, where constants tell: the others need no work in the gradient.
std::optional<ResizeLists> ChangedAxes(const Vjp& v, const Expr& x, int first) {
  ResizeLists all{v.node().Ints("axes", AxesRange(0, x.rank())), Optional(v, first),
                  Optional(v, first + 1), Optional(v, first + 2)};
  const bool crop = v.node().String("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  const bool shared = v.node().String("keep_aspect_ratio_policy", "stretch") != "stretch";
  const bool by_scale = all.scales.defined();
  const Expr& list = by_scale ? all.scales : all.sizes;
  if (crop || shared || !list.defined() || x.rank() < 0) return std::nullopt;
  const Tensor* values = v.b().ConstantOf(list.name());
  if (values == nullptr) return std::nullopt;
  const absl::StatusOr<std::vector<double>> numbers = ToDoubles(*values);
  if (!numbers.ok() || numbers->size() != all.axes.size()) return std::nullopt;
  ResizeLists changed;
  std::vector<float> scales;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < all.axes.size(); ++i) {
    const absl::StatusOr<int> axis = NormalizeAxis(all.axes[i], x.rank());
    if (!axis.ok()) return std::nullopt;
    const double same = by_scale ? 1 : static_cast<double>(x.dim(*axis));
    if ((*numbers)[i] == same) continue;
    changed.axes.push_back(*axis);
    scales.push_back(static_cast<float>((*numbers)[i]));
    sizes.push_back(static_cast<int64_t>((*numbers)[i]));
  }
  if (changed.axes.empty()) return std::nullopt;
  if (by_scale) {
    const Shape count{static_cast<int64_t>(scales.size())};
    changed.scales = v.b().Constant(Tensor::FromValues<float>(count, absl::MakeConstSpan(scales)));
  } else {
    changed.sizes = v.b().Ints(std::move(sizes));
  }
  return changed;
}

// y = A x with a matrix that positions alone decide;  dx = A' dy
Grads ResizeVjp(const Vjp& v) {
  Attributes attributes = v.node().attributes;
  attributes.erase("extrapolation_value");
  std::optional<ResizeLists> lists = ChangedAxes(v, v.x(), 1);
  if (lists) {
    attributes["axes"] = lists->axes;
  } else {
    lists = {{}, Optional(v, 1), Optional(v, 2), Optional(v, 3)};
  }
  return {v.b().Op("ResizeGrad", {v.dy(), v.x(), lists->roi, lists->scales, lists->sizes},
                   attributes, kOnwardDomain)};
}

// dx = A' dy;  the gradient of dy is A g
Grads ResizeGradVjp(const Vjp& v) {
  return {WithShapeOf(v.b().Op("Resize", {v.dy(), Optional(v, 2), Optional(v, 3), Optional(v, 4)},
                               v.node().attributes),
                      v.x())};
}

// The places in a padded image that a Col2Im adds its columns to, as
// [kernel..., windows...]; all numbers are scalars.
Expr WindowPlaces(const Vjp& v, const std::vector<int64_t>& pads, int axes) {
  GraphBuilder& b = v.b();
  const std::vector<int64_t> ones(axes, 1);
  const std::vector<int64_t> strides = v.node().Ints("strides", ones);
  const std::vector<int64_t> dilations = v.node().Ints("dilations", ones);
  Expr places;
  for (int i = 0; i < axes; ++i) {
    Expr padded = Gather(v.x(1), b.Int(i)) + b.Int(pads[i] + pads[axes + i]);
    Expr kernel = Gather(v.x(2), b.Int(i));
    Expr room = padded - (kernel - b.Int(1)) * b.Int(dilations[i]) - b.Int(1);
    Expr windows = room / b.Int(strides[i]) + b.Int(1);
    const auto steps = [&](const Expr& count, int64_t step, int axis) {
      Expr range = b.Op("Range", {b.Int(0), count, b.Int(1)}) * b.Int(step);
      return AlongAxis(range, axis, 2 * axes);
    };
    Expr at = steps(kernel, dilations[i], i) + steps(windows, strides[i], axes + i);
    places = places.defined() ? places * padded + at : at;
  }
  return Flat(places);
}

// How many axes the image has, by whatever tells.
constexpr int kMostImageAxes = 64;
int ImageAxes(const Vjp& v) {
  const int rank = std::max(v.dy().rank(), v.y().rank());
  if (rank >= 0) return rank - 2;
  size_t axes = v.node().Ints("pads").size() / 2;
  for (const char* name : {"strides", "dilations"}) {
    if (axes == 0) axes = v.node().Ints(name).size();
  }
  if (axes > 0) return static_cast<int>(axes);
  const int64_t listed = std::max(v.x(1).dim(0), v.x(2).dim(0));
  return static_cast<int>(std::min<int64_t>(listed, kMostImageAxes + 1));
}

// image[place] = sum of the columns' elements that lie there;  dcolumn = dimage[place]
Grads Col2ImVjp(const Vjp& v) {
  const int axes = ImageAxes(v);
  if (axes < 1 || axes > kMostImageAxes) {
    FailAt(v.b(), v.node(),
           "nothing tells the number of axes of the image; declare the shape of image_shape");
    return {};
  }
  const std::vector<int64_t> pads = v.node().Ints("pads", std::vector<int64_t>(2 * axes, 0));
  std::vector<int64_t> all(2 * (axes + 2), 0);
  for (int i = 0; i < axes; ++i) {
    all[2 + i] = pads[i];
    all[axes + 4 + i] = pads[axes + i];
  }
  Expr padded = v.b().Op("Pad", {v.dy(), v.b().Ints(all)});
  Expr planes = ReshapeTo(padded, {DimOf(padded, 0), DimOf(padded, 1), Rest()});
  return {WithShapeOf(ReshapeLike(Gather(planes, WindowPlaces(v, pads, axes), 2), v.x()), v.x())};
}

// y = x read at the grid's points
Grads GridSampleVjp(const Vjp& v) {
  const int outputs = v.needs(1) ? 2 : 1;
  std::vector<Expr> grads = v.b().Ops("GridSampleGrad", {v.dy(), v.x(0), v.x(1)}, outputs,
                                      v.node().attributes, kOnwardDomain);
  return {grads.begin(), grads.end()};
}

// The same where only the data tell how many axes there are.
Expr AffineGridOfAnyRank(const Vjp& v, const Expr& theta, const Expr& dy) {
  GraphBuilder& b = v.b();
  const Expr count = Reshape(SizeOf(v.x(1)) - b.Int(2), {1});
  const Expr zeros = Filled(Concat({count, count + b.Int(1)}, 0), DType::kFloat, 0);
  const Expr identity = Unsqueeze(b.Op("EyeLike", {zeros}), {0});
  const Expr sizes = Slice(v.x(1), b.Ints({2}), b.Ints({INT64_MAX}), b.Ints({0}));
  Expr places = b.Op("AffineGrid", {CastLike(identity, theta), Concat({b.Ints({1, 1}), sizes}, 0)},
                     Pick(v.node(), {"align_corners"}));
  places = Reshape(places, Concat({b.Ints({-1}), count}, 0));
  const Expr one = FullLike(Gather(places, b.Ints({0}), 1), 1);
  const Expr points = Reshape(dy, Concat({DimVector(theta, 0), b.Ints({-1}), count}, 0));
  return MatMul(Transpose(points, {0, 2, 1}), Concat({places, one}, 1));
}

// y = theta * [place of the pixel, 1];  dtheta = sum of dy * [place, 1]. The places are those
// that the identity leaves where they are.
Grads AffineGridVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const int axes = v.dy().rank() - 2;
  Expr theta = Widened(v.x(0)), dy = Widened(v.dy());
  if (v.dy().rank() < 0) return {AffineGridOfAnyRank(v, theta, dy)};
  if (axes < 1) {
    FailAt(b, v.node(), "the grid has no axis");
    return {};
  }
  Tensor identity = Tensor::Zeros(DType::kFloat, {1, axes, axes + 1});
  for (int i = 0; i < axes; ++i) identity.data<float>()[i * (axes + 2)] = 1;
  Expr sizes = Slice(v.x(1), b.Ints({2}), b.Ints({axes + 2}), b.Ints({0}));
  Expr places = b.Op("AffineGrid",
                     {CastLike(b.Constant(identity), theta), Concat({b.Ints({1, 1}), sizes}, 0)},
                     Pick(v.node(), {"align_corners"}));
  places = Reshape(places, {-1, axes});
  Expr one = FullLike(Gather(places, b.Ints({0}), 1), 1);
  Expr rows = Transpose(ReshapeTo(dy, {DimOf(theta, 0), Rest(), Fixed(axes)}), {0, 2, 1});
  return {WithShapeOf(MatMul(rows, Concat({places, one}, 1)), theta)};
}

// y = x read at the samples of the regions' bins; regions get no gradient
Grads RoiAlignVjp(const Vjp& v) {
  return {v.b().Op("RoiAlignGrad", {v.dy(), v.x(0), v.x(1), v.x(2)}, v.node().attributes,
                   kOnwardDomain)};
}

// y = the largest pixel of each bin of the regions; regions get no gradient
Grads MaxRoiPoolVjp(const Vjp& v) {
  return {v.b().Op("MaxRoiPoolGrad", {v.dy(), v.x(0), v.x(1)}, v.node().attributes, kOnwardDomain)};
}

// columns = f(x, offset, mask)
Grads DeformColumnsVjp(const Vjp& v) {
  std::vector<Expr> grads = v.b().Ops("DeformColumnsGrad", {v.dy(), v.x(0), v.x(1), Optional(v, 2)},
                                      v.has_x(2) ? 3 : 2, v.node().attributes, kOnwardDomain);
  return {grads.begin(), grads.end()};
}

// y = w * columns(x, offset, mask) + b, in groups;  dw = dy * columns',  dcolumns = w' * dy
Grads DeformConvVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const int64_t groups = v.attr("group", 1);
  const Expr w = v.x(1), dy = v.dy();
  if (groups < 1 || w.dim(0) < 0 || w.dim(1) < 0) {
    FailAt(b, v.node(), "the shape of W is not known; declare it");
    return {};
  }
  if (v.x(2).rank() >= 0 && v.x(2).rank() < 3) {
    FailAt(b, v.node(), "offset has no spatial axis");
    return {};
  }
  Expr x = v.x(0);
  if (x.dim(1) < 0) {  // a Reshape that changes nothing tells the channels, which W knows
    std::vector<int64_t> same(w.rank(), 0);
    same[1] = w.dim(1) * groups;
    x = Reshape(x, std::move(same));
  }
  Attributes attributes = Pick(v.node(), {"dilations", "offset_group", "pads", "strides"});
  attributes["kernel_shape"] = KernelOf(v.node(), w);
  const std::vector<Expr> places = {x, v.x(2), Optional(v, 4)};
  Expr rows = ReshapeTo(dy, {DimOf(x, 0), Fixed(groups), Fixed(w.dim(0) / groups), Rest()});
  Grads grads(v.inputs());
  if (v.needs(1)) {
    Expr columns = b.Op("DeformColumns", places, attributes, kOnwardDomain);
    Expr grouped = ReshapeTo(columns, {DimOf(x, 0), Fixed(groups), Rest(), DimOf(rows, 3)});
    Expr dw = ReduceSum(MatMul(rows, Transpose(grouped, {0, 1, 3, 2})), {0}, /*keepdims=*/false);
    grads[1] = WithShapeOf(ReshapeLike(dw, w), w);
  }
  if (v.has_x(3) && v.needs(3)) {
    grads[3] = ReduceSum(rows, {0, 3}, /*keepdims=*/false);
    grads[3] = WithShapeOf(Flat(*grads[3]), v.x(3));
  }
  if (!v.needs(0) && !v.needs(2) && !(v.has_x(4) && v.needs(4))) return grads;
  Expr turned = Transpose(Reshape(w, {groups, w.dim(0) / groups, -1}), {0, 2, 1});
  int64_t taps = 1;
  for (int64_t k : KernelOf(v.node(), w)) taps *= k;
  Expr dcolumns =
      ReshapeTo(MatMul(turned, rows), {DimOf(x, 0), Fixed(x.dim(1)), Fixed(taps), Rest()});
  std::vector<Expr> moved = b.Ops("DeformColumnsGrad", {dcolumns, places[0], places[1], places[2]},
                                  v.has_x(4) ? 3 : 2, attributes, kOnwardDomain);
  grads[0] = moved[0];
  grads[2] = moved[1];
  if (v.has_x(4)) grads[4] = moved[2];
  return grads;
}

}  // namespace

void RegisterImageRules(RuleTable& table) {
  table.Add("Resize", ResizeVjp);
  table.Add("ResizeGrad", ResizeGradVjp, kOnwardDomain);
  table.Add("Col2Im", Col2ImVjp);
  table.Add("GridSample", GridSampleVjp);
  table.Add("AffineGrid", AffineGridVjp);
  table.Add("RoiAlign", RoiAlignVjp);
  table.Add("MaxRoiPool", MaxRoiPoolVjp);
  table.Add("DeformConv", DeformConvVjp);
  table.Add("DeformColumns", DeformColumnsVjp, kOnwardDomain);
  table.AddZero("ImageDecoder");
  table.AddZero("NonMaxSuppression");
}

}  // namespace onward

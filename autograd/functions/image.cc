// SPDX-License-Identifier: Apache-2.0
// Body of ResizeGrad.
#include <algorithm>
#include <numeric>

#include "autograd/functions.h"
#include "autograd/shape_expr.h"
#include "core/base/shape.h"
#include "core/graph/filled.h"

namespace onward {
namespace {

// What of a Resize belongs to the axes that it resizes.
struct Resized {
  std::vector<int64_t> axes;
  Expr roi, scales, sizes;
  Attributes attributes;
  bool shared_scale = false;  // keep_aspect_ratio_policy: the axes decide together
};

std::optional<Resized> ResizedOf(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  Resized r{.axes = {},
            .roi = Argument(in, 2),
            .scales = Argument(in, 3),
            .sizes = Argument(in, 4),
            .attributes = {}};
  int64_t rank = in[1].rank();
  if (rank < 0 && !call.Has("axes")) {
    rank = r.scales.defined() ? r.scales.dim(0) : r.sizes.defined() ? r.sizes.dim(0) : -1;
    if (rank < 0) {
      FailAt(b, call, "neither X nor the sizes or scales tell its rank; declare the shape of X");
      return std::nullopt;
    }
  }
  r.axes = call.Ints("axes", AxesRange(0, rank));
  for (int64_t& axis : r.axes) {
    if (rank < 0) break;  // any
    absl::StatusOr<int> at = NormalizeAxis(axis, static_cast<int>(rank));
    if (!at.ok()) {
      FailAt(b, call, "axes are out of range");
      return std::nullopt;
    }
    axis = *at;
  }
  const bool crop = call.String("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  if (!crop) r.roi = Expr();
  r.shared_scale = call.String("keep_aspect_ratio_policy", "stretch") != "stretch";
  if (r.shared_scale && crop) {
    FailAt(b, call, "has no gradient with keep_aspect_ratio_policy and tf_crop_and_resize");
    return std::nullopt;
  }
  r.attributes =
      Pick(call, {"antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
                  "keep_aspect_ratio_policy", "mode", "nearest_mode"});
  return r;
}

Expr Only(const Expr& list, std::vector<int64_t> places) {
  return list.defined() ? Gather(list, list.builder().Ints(std::move(places))) : Expr();
}

// The matrix of axis i of those resized, [in, out]: what becomes of unit vectors.
Expr MatrixOf(GraphBuilder& b, const Resized& r, size_t i, const Expr& x, const Expr& like) {
  const auto n = static_cast<int64_t>(r.axes.size()), at = static_cast<int64_t>(i);
  const DType dtype = like.dtype() == DType::kUndefined ? DType::kFloat : like.dtype();
  Expr size = DimVector(x, r.axes[i]);
  Expr zeros = Filled(JoinVectors(b, {size, size}), dtype, 0);
  Expr units = b.Op("EyeLike", {zeros});
  Attributes attributes = r.attributes;
  if (!r.shared_scale) {
    attributes["axes"] = std::vector<int64_t>{1};
    return b.Op("Resize",
                {units, Only(r.roi, {at, n + at}), Only(r.scales, {at}), Only(r.sizes, {at})},
                attributes);
  }
  // The other axes have to be there; all their elements are the same.
  std::vector<Expr> shape = {size};
  for (int64_t axis : r.axes) shape.push_back(DimVector(x, axis));
  std::vector<int64_t> added;
  for (int64_t k = 0; k < n; ++k) {
    if (k != at) added.push_back(1 + k);
  }
  Expr spread = Expand(Unsqueeze(units, added), JoinVectors(b, shape));
  attributes["axes"] = AxesRange(1, n + 1);
  Expr y = b.Op("Resize", {spread, {}, r.scales, r.sizes}, attributes);
  for (auto axis = added.rbegin(); axis != added.rend(); ++axis) {
    y = Gather(y, b.Int(0), *axis);
  }
  return y;
}

// g times the transpose of the matrix, along an axis of a tensor with `rank` axes.
Expr AlongMatrix(const Expr& g, const Expr& matrix, int64_t axis, int rank) {
  if (rank < 0) {
    std::vector<Expr> shape = {DimsBefore(g, axis), DimVector(matrix, 0)};
    if (axis != -1) shape.push_back(DimsFrom(g, axis + 1));
    return g.builder().Op("Reshape", {MatMul(matrix, AroundAxis(g, axis)), Concat(shape, 0)},
                          {{"allowzero", 1}});
  }
  if (axis == rank - 2) return MatMul(matrix, g);
  Expr turned = Transpose(matrix, {1, 0});
  if (axis == rank - 1) return MatMul(g, turned);
  std::vector<int64_t> perm = AxesRange(0, rank);
  std::swap(perm[axis], perm[rank - 1]);
  return Transpose(MatMul(Transpose(g, perm), turned), perm);
}

// y = A1 x A2 ... with a matrix for each axis, each a linear map;  dx = A1' dy A2' ...
std::vector<Expr> ResizeGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  std::optional<Resized> r = ResizedOf(b, call, in);
  if (!r) return {};
  Expr x = in[1], g = Widened(in[0]);
  if (!call.Has("axes")) {
    const int rank = static_cast<int>(r->axes.size());
    x = OfRank(x, rank);
    g = OfRank(g, rank);
  }
  for (size_t i = 0; i < r->axes.size(); ++i) {
    g = AlongMatrix(g, MatrixOf(b, *r, i, x, g), r->axes[i], x.rank());
  }
  return {WithShapeOf(CastLike(g, in[0]), in[1])};
}

}  // namespace

void RegisterImageFunctions(FunctionLibrary& library) {
  library.Add("ResizeGrad", {.body = ResizeGrad,
                             .output_like = {1},
                             .shape_only = {1},
                             .attributes = {"antialias", "axes", "coordinate_transformation_mode",
                                            "cubic_coeff_a", "exclude_outside",
                                            "keep_aspect_ratio_policy", "mode", "nearest_mode"},
                             .required = 2,
                             .operands = "TT."});
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Bodies of GatherGrad, ClipGrad and ReluGrad.
#include "autograd/functions.h"
#include "autograd/shape_expr.h"
#include "core/base/shape.h"

namespace onward {
namespace {

// y = gather(data, indices);  ddata[i] = sum of dy over the places where the
// index is i. The axes of the indices are merged into one, so that dy is a
// tensor of data's rank whose slices along `axis` go to given places.
std::vector<Expr> GatherGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const Expr &dy = in[0], &data = in[2];
  const int rank = data.rank();
  absl::StatusOr<int> axis = NormalizeAxis(call.Int("axis", 0), rank);
  if (!axis.ok()) {
    FailAt(b, call, "axis is out of range, or the rank of the data is not known");
    return {};
  }
  Expr indices = CastLike(in[1], b.Int(0));
  indices = Where(Less(indices, b.Int(0)), indices + DimsOf(data, *axis, *axis + 1), indices);
  std::vector<Extent> merged;
  for (int i = 0; i < rank; ++i) merged.push_back(i == *axis ? Rest() : DimOf(data, i));
  Expr updates = ReshapeTo(dy, merged);
  Expr places = ExpandLike(AlongAxis(indices, *axis, rank), updates);
  return {b.Op("ScatterElements", {FullLike(data, 0), places, updates},
               {{"axis", *axis}, {"reduction", "add"}})};
}

// y = max(x, 0);  dx = dy where y > 0, else 0
std::vector<Expr> ReluGrad(GraphBuilder& b, const Node&, const std::vector<Expr>& in) {
  Expr zero = b.Scalar(0, in[0]);
  return {Where(Greater(in[1], b.Scalar(0, in[1])), in[0], zero)};
}

// y = min(max(x, lo), hi);  dx = dy where lo <= x <= hi, that is where y = x
std::vector<Expr> ClipGrad(GraphBuilder& b, const Node&, const std::vector<Expr>& in) {
  return {Where(Equal(in[1], in[2]), in[0], b.Scalar(0, in[0]))};
}

}  // namespace

void RegisterIndexFunctions(FunctionLibrary& library) {
  library.Add("GatherGrad", {.body = GatherGrad,
                             .output_like = {2},
                             .shape_only = {2},
                             .attributes = {"axis"},
                             .required = 3,
                             .operands = "TIT"});
  library.Add("ClipGrad", {.body = ClipGrad,
                           .output_like = {1},
                           .shape_only = {},
                           .attributes = {},
                           .required = 3,
                           .operands = "T"});
  library.Add("ReluGrad", {.body = ReluGrad,
                           .output_like = {1},
                           .shape_only = {},
                           .attributes = {},
                           .required = 2,
                           .operands = "T"});
}

}  // namespace onward

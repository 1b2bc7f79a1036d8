// SPDX-License-Identifier: Apache-2.0
// Gradient rules of operators that pick or place elements by index. What was
// read more than once collects the gradients of all its copies.
#include <optional>

#include "autograd/rule.h"
#include "autograd/rules/scatter.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

Expr GatherGrad(const Expr& dy, const Expr& indices, const Expr& data, int64_t axis) {
  GraphBuilder& b = dy.builder();
  // The function needs a rank; without one the positions take the same way.
  if (data.rank() < 0) return AddAtPositions(dy, Gather(FlatPositions(data), indices, axis), data);
  return WithShapeOf(b.Op("GatherGrad", {dy, indices, data}, {{"axis", axis}}, kOnwardDomain),
                     data);
}

// y = data[indices] along axis;  ddata = dy added up at indices
Grads GatherVjp(const Vjp& v) { return {GatherGrad(v.dy(), v.x(1), v.x(0), v.attr("axis", 0))}; }

// y[i] = data[indices[i]] along axis;  ddata = zeros, += dy at indices
Grads GatherElementsVjp(const Vjp& v) {
  return {WithShapeOf(v.b().Op("ScatterElements", {FullLike(v.x(0), 0), v.x(1), v.dy()},
                               {{"axis", v.attr("axis", 0)}, {"reduction", "add"}}),
                      v.x(0))};
}

// y = data[indices[..., :]];  ddata = zeros, += dy at indices
Grads GatherNDVjp(const Vjp& v) {
  const int64_t batch_dims = v.attr("batch_dims", 0);
  if (batch_dims != 0) {
    // ScatterND has no batch dimensions: let the positions take the same way.
    Expr positions =
        v.b().Op("GatherND", {FlatPositions(v.x(0)), v.x(1)}, {{"batch_dims", batch_dims}});
    return {AddAtPositions(v.dy(), positions, v.x(0))};
  }
  return {WithShapeOf(
      v.b().Op("ScatterND", {FullLike(v.x(0), 0), v.x(1), v.dy()}, {{"reduction", "add"}}),
      v.x(0))};
}

// y = on at indices, off elsewhere;  dvalues = [sum of dy elsewhere, sum of dy
// at indices]
Grads OneHotVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  if (!v.needs(2)) return {};
  Expr zero_one = Concat({Reshape(b.Scalar(0, v.dy()), {1}), Reshape(b.Scalar(1, v.dy()), {1})}, 0);
  Expr hot = b.Op("OneHot", {v.x(0), v.x(1), zero_one}, {{"axis", v.attr("axis", -1)}});
  Expr on = Reshape(ReduceSumAll(hot * v.dy()), {1});
  Expr off = Reshape(ReduceSumAll(v.dy()), {1}) - on;
  return {std::nullopt, std::nullopt, Concat({off, on}, 0)};
}

// values, indices = the k largest of x;  dx = zeros with dvalues at indices
Grads TopKVjp(const Vjp& v) {
  Expr indices = v.RequireOutput(1);
  return {WithShapeOf(v.b().Op("ScatterElements", {FullLike(v.x(0), 0), indices, v.dy(0)},
                               {{"axis", v.attr("axis", -1)}}),
                      v.x(0))};
}

// dx of a y that is x[picked] along axis, or, without axis, of flattened x.
Expr PickedGrad(const Vjp& v, const Expr& picked) {
  if (v.node().Has("axis")) return GatherGrad(v.dy(), picked, v.x(0), v.attr("axis", 0));
  Expr flat = GatherGrad(v.dy(), picked, Flat(v.x(0)), 0);
  return WithShapeOf(ReshapeLike(flat, v.x(0)), v.x(0));
}

// y = x where condition;  dx = zeros with dy there
Grads CompressVjp(const Vjp& v) {
  return {PickedGrad(v, Squeeze(v.b().Op("NonZero", {v.x(1)}), {0}))};
}

// y = the distinct elements of x;  dx = zeros with dy at their first occurrences
Grads UniqueVjp(const Vjp& v) { return {PickedGrad(v, v.RequireOutput(1))}; }

}  // namespace

void RegisterIndexRules(RuleTable& table) {
  table.Add("Gather", GatherVjp);
  table.Add("GatherElements", GatherElementsVjp);
  table.Add("GatherND", GatherNDVjp);
  table.Add("ScatterElements", ScatterElementsVjp);
  table.Add("ScatterND", ScatterNDVjp);
  table.Add("TensorScatter", TensorScatterVjp);
  table.Add("OneHot", OneHotVjp);
  table.Add("TopK", TopKVjp);
  table.Add("Compress", CompressVjp);
  table.Add("Unique", UniqueVjp);
  table.AddZero("NonZero");
  table.AddZero("NonMaxSuppression");
}

}  // namespace onward

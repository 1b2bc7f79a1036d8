// SPDX-License-Identifier: Apache-2.0
#include "autograd/rules/scatter.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autograd/functions.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

// ScatterElements and GatherElements, or ScatterND and GatherND, with the indices of a node.
class ScatterPlaces {
 public:
  ScatterPlaces(const Vjp& v, const char* scatter, const char* gather, Attributes axis)
      : v_(v), scatter_(scatter), gather_(gather), axis_(std::move(axis)) {}

  Expr Scatter(const Expr& data, const Expr& updates, const std::string& reduction) const {
    Attributes attributes = axis_;
    if (reduction != "none") attributes["reduction"] = reduction;
    return WithShapeOf(v_.b().Op(scatter_, {data, v_.x(1), updates}, std::move(attributes)),
                       v_.x(0));
  }
  // e, shaped like the data, where each update went.
  Expr Gather(const Expr& e) const {
    return WithShapeOf(v_.b().Op(gather_, {e, v_.x(1)}, axis_), v_.x(2));
  }

 private:
  const Vjp& v_;
  const char *scatter_, *gather_;
  Attributes axis_;
};

Expr IsZero(const Expr& e) { return Equal(e, e.builder().Scalar(0, e)); }
Expr OneWhere(const Expr& condition, const Expr& e) {
  return Where(condition, e.builder().Scalar(1, e), e);
}

// y = data * product of the updates that arrive. What multiplied an element is y / factor, and
// for a factor of 0 the product with 1 in its place, unless another 0 is left.
Grads ProductGrads(const Vjp& v, const ScatterPlaces& places) {
  const Expr data = v.x(0), updates = v.x(2);
  Grads grads(3);
  if (v.needs(0)) {
    Expr safe = OneWhere(IsZero(data), data);
    grads[0] = v.dy() * places.Scatter(safe, updates, "mul") / safe;
  }
  if (v.needs(2)) {
    Expr zero = IsZero(updates);
    Expr zeros = places.Scatter(FullLike(data, 0), CastLike(zero, data), "add");
    Expr alone = And(zero, Equal(places.Gather(zeros), v.b().Scalar(1, zeros)));
    Expr safe = places.Scatter(data, OneWhere(alone, updates), "mul");
    grads[2] = Where(alone, places.Gather(v.dy() * safe),
                     places.Gather(v.dy() * v.y()) / OneWhere(zero, updates));
  }
  return grads;
}

// y = the largest (or smallest) of an element and the updates that arrive; those that tie share
// the gradient evenly.
Grads ExtremumGrads(const Vjp& v, const ScatterPlaces& places) {
  Expr kept = Equal(v.x(0), v.y());
  Expr won = Equal(v.x(2), places.Gather(v.y()));
  Expr count = places.Scatter(CastLike(kept, v.dy()), CastLike(won, v.dy()), "add");
  Expr share = v.dy() / count;
  Grads grads(3);
  if (v.needs(0)) grads[0] = ZeroUnless(kept, share);
  if (v.needs(2)) grads[2] = ZeroUnless(won, places.Gather(share));
  return grads;
}

// y = data with updates placed (none) or added (add) at indices
//   none: ddata = dy with zeros at indices;  add: ddata = dy
//   dupdates = dy at indices
Grads ScatterVjp(const Vjp& v, const ScatterPlaces& places) {
  const std::string reduction = v.node().String("reduction", "none");
  if (reduction == "mul") return ProductGrads(v, places);
  if (reduction == "max" || reduction == "min") return ExtremumGrads(v, places);
  Grads grads(3);
  if (v.needs(0)) {
    grads[0] = reduction == "add" ? v.dy() : places.Scatter(v.dy(), FullLike(v.x(2), 0), "none");
  }
  if (v.needs(2)) grads[2] = places.Gather(v.dy());
  return grads;
}

}  // namespace

Grads ScatterElementsVjp(const Vjp& v) {
  return ScatterVjp(
      v, ScatterPlaces(v, "ScatterElements", "GatherElements", {{"axis", v.attr("axis", 0)}}));
}

Grads ScatterNDVjp(const Vjp& v) {
  return ScatterVjp(v, ScatterPlaces(v, "ScatterND", "GatherND", {}));
}

// y = cache with update written from write_indices[batch] on along an axis
//   dcache = dy with zeros there;  dupdate = dy there
Grads TensorScatterVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  const Expr cache = v.x(0), update = v.x(1);
  int64_t axis = v.attr("axis", -2);
  if (cache.rank() >= 0) {
    const absl::StatusOr<int> known = NormalizeAxis(axis, cache.rank());
    if (!known.ok()) return {FailAt(b, v.node(), "the cache does not have the axis")};
    axis = *known;
  }
  const auto along = [&](const Expr& vector, int64_t of) {
    return cache.rank() < 0 ? AlongAxisOf(vector, of, cache)
                            : AlongAxis(vector, static_cast<int>(of), cache.rank());
  };
  Expr start = v.has_x(2) ? v.x(2) : Expr();
  Grads grads(2);
  if (v.needs(0)) {
    grads[0] = WithShapeOf(b.Op("TensorScatter", {v.dy(), FullLike(update, 0), start},
                                Pick(v.node(), {"axis", "mode"})),
                           cache);
  }
  if (v.needs(1)) {
    Expr at = along(CountTo(DimScalar(update, axis)), axis);
    if (start.defined()) at = at + along(start, 0);
    if (v.node().String("mode", "linear") == "circular") {
      at = b.Op("Mod", {at, DimVector(cache, axis)});
    }
    grads[1] = WithShapeOf(
        b.Op("GatherElements", {v.dy(), ExpandLike(at, update)}, {{"axis", axis}}), update);
  }
  return grads;
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Gradients of pools.
#include "autograd/functions.h"
#include "autograd/rule.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

// y = max over windows of x; a window's gradient goes to its first largest element
Grads MaxPoolVjp(const Vjp& v) {
  return {v.b().Op("MaxPoolGrad", {v.dy(), v.x()}, v.node().attributes, kOnwardDomain)};
}

// y = mean over windows of x
Grads AveragePoolVjp(const Vjp& v) {
  return {v.b().Op("AveragePoolGrad", {v.dy(), v.x()}, v.node().attributes, kOnwardDomain)};
}

// y = mean over the spatial axes of x
Grads GlobalAveragePoolVjp(const Vjp& v) {
  return {v.b().Op("GlobalAveragePoolGrad", {v.dy(), v.x()}, {}, kOnwardDomain)};
}

// y = max over the spatial axes of x;  dx = dy at the first largest element, as for MaxPool
Grads GlobalMaxPoolVjp(const Vjp& v) {
  GraphBuilder& b = v.b();
  Expr planes = ReshapeTo(v.x(), {DimOf(v.x(), 0), DimOf(v.x(), 1), Rest()});
  Expr first = b.Op("ArgMax", {planes}, {{"axis", 2}});
  Expr dy = ReshapeTo(v.dy(), {DimOf(v.x(), 0), DimOf(v.x(), 1), Fixed(1)});
  Expr dx = b.Op("ScatterElements", {FullLike(planes, 0), first, dy}, {{"axis", 2}});
  return {WithShapeOf(ReshapeLike(dx, v.x()), v.x())};
}

// d|x|^p / dx / p = |x|^(p-1) * sign(x)
Expr PowerSlope(const Expr& x, int64_t p) {
  if (p == 1) return Sign(x);
  if (p == 2) return x;
  return Pow(Abs(x), static_cast<double>(p - 1)) * Sign(x);
}

// dy * y^(1-p), zero where y is: there every |x| of the window is zero too
Expr RootSlope(const Expr& dy, const Expr& y, int64_t p) {
  if (p == 1) return dy;
  Expr zero = dy.builder().Scalar(0, y), one = dy.builder().Scalar(1, y);
  Expr none = Equal(y, zero);
  return Where(none, zero, dy / Pow(Where(none, one, y), static_cast<double>(p - 1)));
}

// y = (sum of |x|^p over the window)^(1/p);
// dx = |x|^(p-1) * sign(x) * sum of dy * y^(1-p) over the windows
Grads LpPoolVjp(const Vjp& v) {
  auto windows = PoolWindowsOf(v.b(), v.node(), v.x());
  if (!windows) return {};
  const int64_t p = v.attr("p", 2);
  return {PowerSlope(v.x(), p) * SpreadWindows(RootSlope(v.dy(), v.y(), p), *windows, v.x())};
}

// The same with one window, the whole plane.
Grads GlobalLpPoolVjp(const Vjp& v) {
  const int64_t p = v.attr("p", 2);
  return {PowerSlope(v.x(), p) * RootSlope(v.dy(), v.y(), p)};
}

// y[indices] = x, zero elsewhere;  dx = dy[indices]. The indices count through
// a tensor of the size that kernel, strides and pads give, which output_shape
// may enlarge at the ends.
Grads MaxUnpoolVjp(const Vjp& v) {
  Expr dy = v.dy();
  if (v.has_x(2)) {
    auto w = PoolWindowsOf(v.b(), v.node(), v.x());
    if (!w) return {};
    const int rank = w->axes() + 2;
    std::vector<int64_t> reach;
    for (int i = 0; i < w->axes(); ++i) {
      reach.push_back(w->kernel[i] - w->strides[i] - w->pads_begin[i] - w->pads_end[i]);
    }
    Expr sizes = DimsOf(v.x(), 2, rank) * v.b().Ints(w->strides) + v.b().Ints(reach);
    dy = Slice(dy, v.b().Ints(std::vector<int64_t>(w->axes(), 0)), sizes,
               v.b().Ints(AxesRange(2, rank)));
  }
  return {WithShapeOf(ReshapeLike(Gather(Flat(dy), Flat(v.x(1))), v.x()), v.x())};
}

}  // namespace

void RegisterPoolRules(RuleTable& table) {
  table.Add("MaxPool", MaxPoolVjp);
  table.Add("AveragePool", AveragePoolVjp);
  table.Add("GlobalAveragePool", GlobalAveragePoolVjp);
  table.Add("GlobalMaxPool", GlobalMaxPoolVjp);
  table.Add("LpPool", LpPoolVjp);
  table.Add("GlobalLpPool", GlobalLpPoolVjp);
  table.Add("MaxUnpool", MaxUnpoolVjp);
}

}  // namespace onward

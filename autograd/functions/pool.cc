// SPDX-License-Identifier: Apache-2.0
// Bodies of the gradients of the pools.
#include <algorithm>

#include "autograd/functions.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

// Beyond this many windows their counts are computed, not written down.
constexpr int64_t kMostKnownCounts = 4096;

// y = max over windows of x;  dx[i] = sum of dy over the windows whose first
// largest element is i. The indices that MaxPool returns count through the
// whole tensor x.
std::vector<Expr> MaxPoolGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const Expr &dy = in[0], &x = in[1];
  Attributes attributes =
      Pick(call, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"});
  Expr largest = b.Ops("MaxPool", {x}, 2, attributes)[1];
  return {AddAtPositions(dy, largest, x)};
}

// What decides how many cells of each window along one axis an average counts.
struct CountedCells {
  int64_t kernel, stride, dilation, pad_begin, pad_end;
  bool with_pads;
  Expr computed_begin = {}, computed_end = {};  // scalars, where the pads are not known
  int64_t low() const { return with_pads ? -pad_begin : 0; }
  int64_t beyond() const { return with_pads ? pad_end : 0; }
};

// The k in [0, kernel) with low <= start + k*dilation < size + beyond, where
// start = o*stride - pad_begin, for each window o:
//   min(kernel, ceil(size + beyond - start)) - ceil(low - start),
// both in steps of dilation and not below 0.
Expr CountKnown(GraphBuilder& b, const CountedCells& c, int64_t size, int64_t windows,
                const Expr& like) {
  Tensor counts(DType::kDouble, {windows});
  auto steps = [&c](int64_t cells) {
    return (std::max<int64_t>(cells, 0) + c.dilation - 1) / c.dilation;
  };
  for (int64_t o = 0; o < windows; ++o) {
    const int64_t start = o * c.stride - c.pad_begin;
    counts.data<double>()[o] = static_cast<double>(
        std::min(c.kernel, steps(size + c.beyond() - start)) - steps(c.low() - start));
  }
  return CastLike(b.Constant(counts), like);
}

Expr CountComputed(GraphBuilder& b, const CountedCells& c, const Expr& size, const Expr& windows,
                   const Expr& like) {
  auto steps = [&](const Expr& cells) {
    return (Max(cells, b.Int(0)) + b.Int(c.dilation - 1)) / b.Int(c.dilation);
  };
  const auto begin = [&] {
    return c.computed_begin.defined() ? c.computed_begin : b.Int(c.pad_begin);
  };
  const bool computed_pads = c.computed_begin.defined() && c.with_pads;
  const auto low = [&] { return computed_pads ? -c.computed_begin : b.Int(c.low()); };
  const auto beyond = [&] { return computed_pads ? c.computed_end : b.Int(c.beyond()); };
  Expr start = b.Op("Range", {b.Int(0), windows, b.Int(1)}) * b.Int(c.stride) - begin();
  Expr last = steps(size + beyond() - start);
  return CastLike(Min(b.Int(c.kernel), last) - steps(low() - start), like);
}

// The number of cells that each window's average is taken over; broadcasts to dy.
Expr WindowCounts(GraphBuilder& b, const Node& call, const Windows& w, const Expr& dy,
                  const Expr& x) {
  const bool with_pads = call.Int("count_include_pad", 0) != 0;
  const bool ceil_mode = call.Int("ceil_mode", 0) != 0;
  double volume = 1;  // of the axes along which every window is whole
  Expr counts;
  for (int i = 0; i < w.axes(); ++i) {
    const bool computed = w.computed_pads.defined();
    const bool padded = computed || w.pads_begin[i] != 0 || w.pads_end[i] != 0;
    if (!ceil_mode && (with_pads || !padded)) {
      volume *= static_cast<double>(w.kernel[i]);
      continue;
    }
    CountedCells cells = {w.kernel[i],     w.strides[i],  w.dilations[i],
                          w.pads_begin[i], w.pads_end[i], with_pads};
    if (computed) {
      cells.computed_begin = Gather(w.computed_pads, b.Int(i));
      cells.computed_end = Gather(w.computed_pads, b.Int(w.axes() + i));
    }
    const int64_t size = x.dim(2 + i), windows = dy.dim(2 + i);
    Expr along;
    if (!computed && size >= 0 && windows >= 0 && windows <= kMostKnownCounts) {
      along = CountKnown(b, cells, size, windows, dy);
    } else {
      along = CountComputed(b, cells, Squeeze(ShapeOf(x, 2 + i, 3 + i), {0}),
                            Squeeze(ShapeOf(dy, 2 + i, 3 + i), {0}), dy);
    }
    along = AlongAxis(along, i, w.axes());
    counts = counts.defined() ? counts * along : along;
  }
  if (!counts.defined()) return b.Scalar(volume, dy);
  return volume == 1 ? counts : counts * volume;
}

// y = sum of x over the window / count;  dx = sum of dy / count over the windows
std::vector<Expr> AveragePoolGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const Expr &dy = in[0], &x = in[1];
  std::optional<Windows> w = PoolWindowsOf(b, call, x);
  if (!w) return {};
  return {SpreadWindows(dy / WindowCounts(b, call, *w, dy, x), *w, x)};
}

// y = mean of x over the spatial axes;  dx = dy / (number of elements), everywhere
std::vector<Expr> GlobalAveragePoolGrad(GraphBuilder& b, const Node& call,
                                        const std::vector<Expr>& in) {
  const Expr &dy = in[0], &x = in[1];
  if (x.rank() >= 0 && x.rank() < 3) {
    FailAt(b, call, "X has no spatial axis");
    return {};
  }
  Expr sizes = x.rank() < 0 ? DimsFrom(x, 2) : DimsOf(x, 2, x.rank());
  Expr count = b.Op("ReduceProd", {sizes}, {{"keepdims", 0}});
  return {ExpandLike(dy / CastLike(count, dy), x)};
}

}  // namespace

void RegisterPoolFunctions(FunctionLibrary& library) {
  library.Add("MaxPoolGrad", {.body = MaxPoolGrad,
                              .output_like = {1},
                              .shape_only = {},
                              .attributes = {"auto_pad", "ceil_mode", "dilations", "kernel_shape",
                                             "pads", "storage_order", "strides"},
                              .required = 2,
                              .operands = "T"});
  library.Add("AveragePoolGrad", {.body = AveragePoolGrad,
                                  .output_like = {1},
                                  .shape_only = {1},
                                  .attributes = {"auto_pad", "ceil_mode", "count_include_pad",
                                                 "dilations", "kernel_shape", "pads", "strides"},
                                  .required = 2,
                                  .operands = "T"});
  library.Add("GlobalAveragePoolGrad", {.body = GlobalAveragePoolGrad,
                                        .output_like = {1},
                                        .shape_only = {1},
                                        .attributes = {},
                                        .required = 2,
                                        .operands = "T"});
}

}  // namespace onward

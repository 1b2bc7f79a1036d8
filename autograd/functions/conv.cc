// SPDX-License-Identifier: Apache-2.0
// Bodies of ConvInputGrad and ConvWeightGrad, and the sliding windows that they
// share with the pools.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/functions.h"
#include "autograd/shape_expr.h"

namespace onward {
namespace {

// An attribute with `count` entries, each at least `least`; nullopt: it is not so.
std::optional<std::vector<int64_t>> Entries(const Node& node, std::string_view name, int count,
                                            int64_t otherwise, int64_t least) {
  std::vector<int64_t> values = node.Ints(name, std::vector<int64_t>(count, otherwise));
  const bool fits = static_cast<int>(values.size()) == count &&
                    std::all_of(values.begin(), values.end(),
                                [least](int64_t v) { return v >= least && v <= INT32_MAX; });
  if (!fits) return std::nullopt;
  return values;
}

// SAME_UPPER and SAME_LOWER: out = ceil(in / stride), the padding that this
// takes is split evenly, the odd cell at the end (UPPER) or at the begin. With
// stride 1 it is span - 1 whatever the size of the input.
bool ResolveSame(const Expr& x, bool upper, Windows* w) {
  for (int i = 0; i < w->axes(); ++i) {
    const int64_t in = x.dim(2 + i);
    const int64_t stride = w->strides[i];
    if (w->kernel[i] < 0 || (stride != 1 && in < 0)) return false;
    int64_t total = w->span(i) - 1;
    if (stride != 1) {
      const int64_t out = (in + stride - 1) / stride;
      total = std::max<int64_t>((out - 1) * stride + w->span(i) - in, 0);
    }
    const int64_t less = total / 2;
    w->pads_begin[i] = upper ? less : total - less;
    w->pads_end[i] = total - w->pads_begin[i];
  }
  return true;
}

// The same pads where only the data tell the sizes.
Expr ComputedSame(GraphBuilder& b, const Expr& x, const Expr& weight, bool upper,
                  const Windows& w) {
  const Expr in = DimsOf(x, 2, 2 + w.axes()), stride = b.Ints(w.strides), one = b.Int(1);
  const Expr reach = (in + stride - one) / stride * stride - stride + Spans(b, w, weight);
  const Expr total = Max(reach - in, b.Int(0)), less = total / b.Int(2), more = total - less;
  return upper ? Concat({less, more}, 0) : Concat({more, less}, 0);
}

// How many spatial axes there are, by whatever tells; 0: nothing does.
int SpatialAxes(const Node& node, const Expr& x, const std::vector<int64_t>& kernel) {
  if (x.rank() >= 0) return x.rank() - 2;
  size_t axes = kernel.size();
  for (const char* name : {"strides", "dilations", "output_padding"}) {
    if (axes == 0) axes = node.Ints(name).size();
  }
  return static_cast<int>(axes == 0 ? node.Ints("pads").size() / 2 : axes);
}

// How many cells x is larger than ConvTranspose would make it by itself: those
// that the last stride did not reach. Nullopt where they are not known, or (a
// pool with ceil_mode) negative.
std::optional<std::vector<int64_t>> Missing(const Expr& dy, const Windows& w, const Expr& x) {
  std::vector<int64_t> missing(w.axes(), 0);
  for (int i = 0; i < w.axes(); ++i) {
    if (w.strides[i] == 1) continue;
    const int64_t in = x.dim(2 + i), out = dy.dim(2 + i);
    if (in < 0 || out < 0 || w.span(i) < 0) return std::nullopt;
    const int64_t reach = in + w.pads_begin[i] + w.pads_end[i] - w.span(i);
    if (reach < 0 || out - 1 != reach / w.strides[i]) return std::nullopt;
    missing[i] = reach % w.strides[i];
  }
  return missing;
}

// {1, 0, 2, 3, ..}
std::vector<int64_t> SwapFirstTwo(int rank) {
  std::vector<int64_t> perm = AxesRange(0, rank);
  std::swap(perm[0], perm[1]);
  return perm;
}

// [N, C, S..] -> [C/g, g*N, S..]: the channels of each group become the batch.
Expr ChannelsAsBatch(const Expr& x, const Expr& w, int64_t group, int rank) {
  if (group == 1) return Transpose(x, SwapFirstTwo(rank));
  const Extent per_group = w.dim(1) < 0 && x.dim(1) >= 0 ? Fixed(x.dim(1) / group) : DimOf(w, 1);
  std::vector<Extent> split = {DimOf(x, 0), Fixed(group), per_group};
  std::vector<Extent> merged = {per_group, Rest()};
  for (int i = 2; i < rank; ++i) {
    split.push_back(DimOf(x, i));
    merged.push_back(DimOf(x, i));
  }
  std::vector<int64_t> perm = AxesRange(0, rank + 1);
  std::swap(perm[0], perm[2]);
  return ReshapeTo(Transpose(ReshapeTo(x, split), perm), merged);
}

// y = conv(x, w);  dx = convtranspose(dy, w), as large as x
std::vector<Expr> ConvInputGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const Expr &dy = in[0], &w = in[1], &x = in[2];
  std::optional<Windows> windows = WindowsOf(b, call, x, KernelOf(call, w), w);
  if (!windows) return {};
  return {WithShapeOf(TransposedConv(dy, w, *windows, call.Int("group", 1), x), x)};
}

// y[n,m,o] = sum_{c,k} w[m,c,k] x[n,c,o*stride + k*dilation - pad];
// dw[m,c,k] = sum_{n,o} dy[n,m,o] x[n,c,o*stride + k*dilation - pad]:
// a convolution over o with stride and dilation exchanged, in which n counts
// as channel and c as batch. db = sum_{n,o} dy
std::vector<Expr> ConvWeightGrad(GraphBuilder& b, const Node& call, const std::vector<Expr>& in) {
  const Expr &dy = in[0], &w = in[2];
  Expr x = in[1];
  std::optional<Windows> windows = WindowsOf(b, call, x, KernelOf(call, w), w);
  if (!windows) return {};
  const int64_t group = call.Int("group", 1);
  if (group < 1) {
    FailAt(b, call, "group must be positive");
    return {};
  }
  const int rank = windows->axes() + 2;
  if (windows->computed_pads.defined()) {
    x = b.Op("Pad", {x, windows->computed_pads, Expr(), b.Ints(AxesRange(2, rank))});
  }
  Windows exchanged = *windows;
  std::swap(exchanged.strides, exchanged.dilations);
  Expr dw = b.Op("Conv", {ChannelsAsBatch(x, w, group, rank), Transpose(dy, SwapFirstTwo(rank))},
                 exchanged.AsAttributes(group));  // [C/g, M, K..], K at least w's
  const bool exact = std::all_of(windows->strides.begin(), windows->strides.end(),
                                 [](int64_t stride) { return stride == 1; });
  if (!exact) {
    dw = Slice(dw, b.Ints(std::vector<int64_t>(rank - 2, 0)), DimsOf(w, 2, rank),
               b.Ints(AxesRange(2, rank)));
  }
  dw = WithShapeOf(Transpose(dw, SwapFirstTwo(rank)), w);
  if (!call.HasOutput(1)) return {dw};
  return {dw, ReduceSum(dy, AxesBut(rank, 1), false)};
}

}  // namespace

int64_t Windows::span(int axis) const {
  return kernel[axis] < 0 ? -1 : (kernel[axis] - 1) * dilations[axis] + 1;
}

Attributes Windows::AsAttributes(int64_t group) const {
  std::vector<int64_t> pads = pads_begin;
  pads.insert(pads.end(), pads_end.begin(), pads_end.end());
  return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", group}};
}

std::vector<int64_t> KernelOf(const Node& node, const Expr& weight) {
  std::vector<int64_t> kernel;
  for (int i = 2; i < weight.rank(); ++i) kernel.push_back(weight.dim(i));
  return node.Ints("kernel_shape", kernel);
}

std::optional<Windows> WindowsOf(GraphBuilder& b, const Node& node, const Expr& x,
                                 std::vector<int64_t> kernel, const Expr& weight) {
  const int axes = SpatialAxes(node, x, kernel);
  if (axes < 1) {
    FailAt(b, node,
           x.rank() < 0 ? "neither X nor W nor an attribute tells how many spatial axes there are; "
                          "declare the shape of the input"
                        : "X has no spatial axis");
    return std::nullopt;
  }
  if (kernel.empty()) kernel.assign(axes, -1);
  auto strides = Entries(node, "strides", axes, 1, 1);
  auto dilations = Entries(node, "dilations", axes, 1, 1);
  auto pads = Entries(node, "pads", 2 * axes, 0, 0);
  const bool kernel_fits = static_cast<int>(kernel.size()) == axes &&
                           std::all_of(kernel.begin(), kernel.end(), [](int64_t k) {
                             return k == -1 || (k >= 1 && k <= INT32_MAX);
                           });
  bool size_fits = true;  // a tensor has at most 2^48 elements (CheckedElements)
  for (int i = 0; i < axes; ++i) size_fits &= x.dim(2 + i) <= (int64_t{1} << 48);
  if (!strides || !dilations || !pads || !kernel_fits || !size_fits) {
    FailAt(b, node,
           absl::StrCat("kernel_shape, strides, dilations or pads do not fit ", axes,
                        " spatial axes"));
    return std::nullopt;
  }
  Windows w = {.kernel = std::move(kernel),
               .strides = *strides,
               .dilations = *dilations,
               .pads_begin = {pads->begin(), pads->begin() + axes},
               .pads_end = {pads->begin() + axes, pads->end()}};
  const std::string auto_pad = node.String("auto_pad", "NOTSET");
  if (auto_pad == "NOTSET") return w;
  w.pads_begin.assign(axes, 0);
  w.pads_end.assign(axes, 0);
  if (auto_pad == "VALID") return w;
  const bool upper = auto_pad == "SAME_UPPER";
  if (!ResolveSame(x, upper, &w)) {
    w.pads_begin.assign(axes, 0);
    w.pads_end.assign(axes, 0);
    w.computed_pads = ComputedSame(b, x, weight, upper, w);
  }
  return w;
}

Expr Spans(GraphBuilder& b, const Windows& windows, const Expr& weight) {
  const int axes = windows.axes();
  std::vector<int64_t> spans;
  for (int i = 0; i < axes; ++i) spans.push_back(windows.span(i));
  if (std::count(spans.begin(), spans.end(), -1) == 0) return b.Ints(std::move(spans));
  const Expr one = b.Int(1);
  return (DimsOf(weight, 2, 2 + axes) - one) * b.Ints(windows.dilations) + one;
}

std::optional<Windows> PoolWindowsOf(GraphBuilder& b, const Node& node, const Expr& x) {
  auto w = WindowsOf(b, node, x, node.Ints("kernel_shape"));
  if (w && std::count(w->kernel.begin(), w->kernel.end(), -1) != 0) {
    FailAt(b, node, "kernel_shape is missing or not positive");
    return std::nullopt;
  }
  return w;
}

Expr TransposedConv(const Expr& dy, const Expr& w, const Windows& windows, int64_t group,
                    const Expr& x) {
  GraphBuilder& b = dy.builder();
  const int axes = windows.axes();
  const bool computed = windows.computed_pads.defined();
  if (auto missing = computed ? std::nullopt : Missing(dy, windows, x)) {
    Attributes attributes = windows.AsAttributes(group);
    if (std::count(missing->begin(), missing->end(), 0) != axes) {
      attributes["output_padding"] = *missing;
    }
    return b.Op("ConvTranspose", {dy, w}, attributes);
  }
  // Without padding at the end the result holds every cell that a window
  // reaches; then its end is cut, or zeros follow where no window reaches.
  Windows open_ended = windows;
  open_ended.pads_end.assign(axes, 0);
  Expr dx = b.Op("ConvTranspose", {dy, w}, open_ended.AsAttributes(group));
  const auto more = [&] { return DimsOf(x, 2, 2 + axes) - DimsOf(dx, 2, 2 + axes); };
  Expr pads;
  if (computed) {
    const Expr cut = Gather(windows.computed_pads, b.Ints(AxesRange(0, axes)));
    pads = Concat({-cut, more() + cut}, 0);
  } else {
    pads = Concat({b.Ints(std::vector<int64_t>(axes, 0)), more()}, 0);
  }
  return b.Op("Pad", {dx, pads, Expr(), b.Ints(AxesRange(2, 2 + axes))});
}

Expr SpreadWindows(const Expr& dy, const Windows& windows, const Expr& x) {
  GraphBuilder& b = dy.builder();
  std::vector<Extent> planes = {Rest(), Fixed(1)};  // each channel on its own
  std::vector<int64_t> ones = {1, 1};
  for (int i = 0; i < windows.axes(); ++i) {
    planes.push_back(DimOf(dy, 2 + i));
    ones.push_back(windows.kernel[i]);
  }
  Expr kernel = Expand(b.Scalar(1, dy), b.Ints(ones));
  Expr dx = TransposedConv(ReshapeTo(dy, planes), kernel, windows, 1, x);
  return WithShapeOf(ReshapeLike(dx, x), x);
}

void RegisterConvFunctions(FunctionLibrary& library) {
  const std::vector<std::string> attributes = {"auto_pad",     "dilations", "group",
                                               "kernel_shape", "pads",      "strides"};
  library.Add("ConvInputGrad", {.body = ConvInputGrad,
                                .output_like = {2},
                                .shape_only = {2},
                                .attributes = attributes,
                                .required = 3,
                                .operands = "T"});
  library.Add("ConvWeightGrad", {.body = ConvWeightGrad,
                                 .output_like = {2},
                                 .shape_only = {2},
                                 .attributes = attributes,
                                 .required = 3,
                                 .operands = "T"});
}

}  // namespace onward

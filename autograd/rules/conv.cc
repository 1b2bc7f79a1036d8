// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions.
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "autograd/functions.h"
#include "autograd/rule.h"

namespace onward {
namespace {

// db = sum(dy) over all axes but the channels
Expr BiasGrad(const Vjp& v) {
  const int rank = std::max(v.dy().rank(), v.x(1).rank());
  if (rank < 0) return ReduceSum(Reshape(v.dy(), {0, 0, -1}), {0, 2}, false);
  return ReduceSum(v.dy(), AxesBut(rank, 1), false);
}

// y = conv(x, w) + b
Grads ConvVjp(const Vjp& v) {
  const Attributes& attributes = v.node().attributes;
  const bool bias = v.has_x(2) && v.needs(2);
  Grads grads(v.inputs());
  if (v.needs(0)) {
    grads[0] = v.b().Op("ConvInputGrad", {v.dy(), v.x(1), v.x(0)}, attributes, kOnwardDomain);
  }
  if (v.needs(1)) {
    std::vector<Expr> dw = v.b().Ops("ConvWeightGrad", {v.dy(), v.x(0), v.x(1)}, bias ? 2 : 1,
                                     attributes, kOnwardDomain);
    grads[1] = dw[0];
    if (bias) grads[2] = dw[1];
  } else if (bias) {
    grads[2] = BiasGrad(v);
  }
  return grads;
}

// The convolution of which a ConvTranspose is the transpose.
struct TransposeOf {
  Windows windows;
  std::vector<int64_t> cut;  // cells at the end of y that no cell of x reaches
};

bool IsUpper(const Vjp& v) { return v.node().String("auto_pad", "NOTSET") == "SAME_UPPER"; }

// Cells that the windows reach beyond y: span + stride*(in-1) + output_padding - out.
// With SAME padding out = stride * in, so x's size does not matter.
std::optional<int64_t> TotalPadding(const Vjp& v, const Windows& w, int axis, int64_t extra,
                                    const std::vector<int64_t>& output_shape) {
  if (w.kernel[axis] < 0) return std::nullopt;
  if (output_shape.empty()) return extra + w.span(axis) - w.strides[axis];
  const int64_t in = v.x(0).dim(2 + axis);
  if (in < 0) return std::nullopt;
  return w.strides[axis] * (in - 1) + extra + w.span(axis) - output_shape[axis];
}

// Pads and cuts in one, where only the data tell them: pads in front of all axes, then behind, a
// cut being a negative one. pads = max(total, 0), and what reaches beyond is extra + pads - total.
Expr ComputedPadding(const Vjp& v, const Windows& w, const std::vector<int64_t>& extra,
                     const std::vector<int64_t>& output_shape) {
  GraphBuilder& b = v.b();
  const Expr more = b.Ints(extra), stride = b.Ints(w.strides);
  Expr total = more + Spans(b, w, v.x(1)) - stride;
  if (!output_shape.empty()) {
    total = total + DimsOf(v.x(0), 2, 2 + w.axes()) * stride - b.Ints(output_shape);
  }
  const Expr pads = Max(total, b.Int(0)), less = pads / b.Int(2);
  const Expr begin = IsUpper(v) ? less : pads - less;
  return Concat({begin, total - begin - more}, 0);
}

// Padding as ConvTranspose means it: explicit, or what output_shape and
// auto_pad leave over (the odd cell at the end for SAME_UPPER, else at the
// begin). output_padding takes back padding at the end, or lies beyond reach.
std::optional<TransposeOf> ResolveTranspose(const Vjp& v) {
  Node explicit_pads = v.node();
  const std::string auto_pad = v.node().String("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET") explicit_pads.attributes["auto_pad"] = Attribute("VALID");
  auto w = WindowsOf(v.b(), explicit_pads, v.x(0), KernelOf(v.node(), v.x(1)), v.x(1));
  if (!w) return std::nullopt;
  const size_t axes = w->axes();
  std::vector<int64_t> extra = v.node().Ints("output_padding", std::vector<int64_t>(axes, 0));
  std::vector<int64_t> output_shape = v.node().Ints("output_shape");
  if (output_shape.size() > axes) {  // some writers give the whole shape
    output_shape.erase(output_shape.begin(), output_shape.end() - axes);
  }
  if (extra.size() != axes || (!output_shape.empty() && output_shape.size() != axes)) {
    FailAt(v.b(), v.node(), "output_padding or output_shape do not fit the spatial axes");
    return std::nullopt;
  }
  const bool computed = !output_shape.empty() || auto_pad.starts_with("SAME");
  const std::vector<int64_t> given_extra = extra;
  TransposeOf t = {*std::move(w), std::vector<int64_t>(axes, 0)};
  for (size_t i = 0; i < axes; ++i) {
    if (computed) {
      std::optional<int64_t> total = TotalPadding(v, t.windows, i, extra[i], output_shape);
      if (!total) {
        Windows& open = t.windows;
        open.pads_begin.assign(axes, 0);
        open.pads_end.assign(axes, 0);
        open.computed_pads = ComputedPadding(v, open, given_extra, output_shape);
        t.cut.assign(axes, 0);
        return t;
      }
      const int64_t pads = std::max<int64_t>(*total, 0), less = pads / 2;
      extra[i] += pads - *total;
      t.windows.pads_begin[i] = IsUpper(v) ? less : pads - less;
      t.windows.pads_end[i] = pads - t.windows.pads_begin[i];
    }
    const int64_t taken = std::min(t.windows.pads_end[i], extra[i]);
    t.windows.pads_end[i] -= taken;
    t.cut[i] = extra[i] - taken;
  }
  return t;
}

// dy without the cells at the end that no cell of x reaches, and with pads that are computed.
Expr Fitted(const Expr& dy, const TransposeOf& t) {
  GraphBuilder& b = dy.builder();
  const std::vector<int64_t>& cut = t.cut;
  if (t.windows.computed_pads.defined()) {
    return b.Op("Pad",
                {dy, t.windows.computed_pads, Expr(), b.Ints(AxesRange(2, 2 + t.windows.axes()))});
  }
  std::vector<int64_t> axes, ends;
  for (size_t i = 0; i < cut.size(); ++i) {
    if (cut[i] == 0) continue;
    axes.push_back(static_cast<int64_t>(i) + 2);
    ends.push_back(-cut[i]);
  }
  if (axes.empty()) return dy;
  return Slice(dy, b.Ints(std::vector<int64_t>(axes.size(), 0)), b.Ints(ends), b.Ints(axes));
}

// y = convtranspose(x, w) + b: the map conv(., w) turned round, hence
// dx = conv(dy, w), and dw is conv's weight gradient with x and dy exchanged
Grads ConvTransposeVjp(const Vjp& v) {
  Grads grads(v.inputs());
  if (v.has_x(2) && v.needs(2)) grads[2] = BiasGrad(v);
  if (!v.needs(0) && !v.needs(1)) return grads;
  std::optional<TransposeOf> t = ResolveTranspose(v);
  if (!t) return grads;
  const Attributes attributes = t->windows.AsAttributes(v.attr("group", 1));
  Expr dy = Fitted(v.dy(), *t);
  if (v.needs(0)) grads[0] = v.b().Op("Conv", {dy, v.x(1)}, attributes);
  if (v.needs(1)) {
    grads[1] = v.b().Op("ConvWeightGrad", {v.x(0), dy, v.x(1)}, attributes, kOnwardDomain);
  }
  return grads;
}

}  // namespace

void RegisterConvRules(RuleTable& table) {
  table.Add("Conv", ConvVjp);
  table.Add("ConvTranspose", ConvTransposeVjp);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
#include "core/device/plan/window.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/device/kernel.h"

namespace onward {
namespace {

// Values beyond these are refused: sums and products of a few of them with
// tensor dimensions stay far inside int64.
constexpr int64_t kMaxAttribute = int64_t{1} << 24;
constexpr int64_t kMaxExtent = int64_t{1} << 30;

// An INTS attribute with `count` values in [low, high], or `otherwise`
// throughout where it is absent.
absl::StatusOr<Window::Dims> IntsAttribute(const Node& node, std::string_view name, int count,
                                           int64_t low, int64_t otherwise,
                                           int64_t high = kMaxAttribute) {
  if (!node.Has(name)) return Window::Dims(count, otherwise);
  const std::vector<int64_t> values = node.Ints(name);
  if (static_cast<int>(values.size()) != count) {
    return NodeError(node, absl::StrCat("attribute ", std::string(name), " has ", values.size(),
                                        " values, expected ", count));
  }
  for (int64_t v : values) {
    if (v < low || v > high) {
      return NodeError(
          node, absl::StrCat("attribute ", std::string(name), " = [", absl::StrJoin(values, ", "),
                             "]: each value must lie in [", low, ", ", high, "]"));
    }
  }
  return Window::Dims(values.begin(), values.end());
}

// Input sizes, kernel, strides and dilations.
absl::StatusOr<Window> ReadWindow(const Node& node, const Shape& x, Window::Dims kernel) {
  Window g;
  const int rank = x.rank() - 2;
  g.in.assign(x.begin() + 2, x.end());
  g.kernel = std::move(kernel);
  ONWARD_ASSIGN_OR_RETURN(g.strides, IntsAttribute(node, "strides", rank, 1, 1));
  ONWARD_ASSIGN_OR_RETURN(g.dilations, IntsAttribute(node, "dilations", rank, 1, 1));
  for (int i = 0; i < rank; ++i) {
    if (g.kernel[i] < 1 || g.kernel[i] > kMaxExtent || g.extent(i) > kMaxExtent) {
      return NodeError(node,
                       absl::StrCat("kernel [", absl::StrJoin(g.kernel, ", "), "] with dilations [",
                                    absl::StrJoin(g.dilations, ", "), "] is empty or too large"));
    }
  }
  return g;
}

enum class AutoPad { kNotSet, kSameUpper, kSameLower, kValid };

absl::StatusOr<AutoPad> ReadAutoPad(const Node& node) {
  const std::string value = node.String("auto_pad", "NOTSET");
  if (value == "NOTSET" || value.empty()) return AutoPad::kNotSet;
  if (value == "SAME_UPPER") return AutoPad::kSameUpper;
  if (value == "SAME_LOWER") return AutoPad::kSameLower;
  if (value == "VALID") return AutoPad::kValid;
  return NodeError(node, absl::StrCat("attribute auto_pad = '", value,
                                      "': expected NOTSET, SAME_UPPER, SAME_LOWER or VALID"));
}

absl::Status ReadPads(const Node& node, Window& g) {
  const int rank = g.rank();
  ONWARD_ASSIGN_OR_RETURN(const Window::Dims pads, IntsAttribute(node, "pads", 2 * rank, 0, 0));
  g.pads_begin.assign(pads.begin(), pads.begin() + rank);
  g.pads_end.assign(pads.begin() + rank, pads.end());
  return absl::OkStatus();
}

// Splits `total` over both sides; the odd one goes to the end for SAME_UPPER.
void SplitPad(Window& g, int axis, int64_t total, bool upper) {
  const int64_t small = total / 2;
  g.pads_begin[axis] = upper ? small : total - small;
  g.pads_end[axis] = upper ? total - small : small;
}

// Pads (explicit ones win over auto_pad, as in the standard's shape inference)
// and output sizes.
absl::Status CompleteForward(const Node& node, bool ceil_mode, Window& g) {
  ONWARD_ASSIGN_OR_RETURN(const AutoPad auto_pad, ReadAutoPad(node));
  ONWARD_RETURN_IF_ERROR(ReadPads(node, g));
  const bool same = auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
  g.out.resize(g.rank());
  for (int i = 0; i < g.rank(); ++i) {
    if (same && !node.Has("pads")) {
      const int64_t rest = g.in[i] % g.strides[i];
      const int64_t total = g.extent(i) - (rest == 0 ? g.strides[i] : rest);
      SplitPad(g, i, std::max<int64_t>(total, 0), auto_pad == AutoPad::kSameUpper);
    }
    const int64_t room = g.in[i] + g.pads_begin[i] + g.pads_end[i] - g.extent(i) +
                         (ceil_mode ? g.strides[i] - 1 : 0);
    if (room < 0) {
      return NodeError(
          node, absl::StrCat("the kernel covers ", g.extent(i), " elements on spatial axis ", i,
                             ", the padded input has ", g.in[i] + g.pads_begin[i] + g.pads_end[i]));
    }
    g.out[i] = room / g.strides[i] + 1;
    // A window that would start in the padding at the end does not count.
    if (ceil_mode && (g.out[i] - 1) * g.strides[i] >= g.in[i] + g.pads_begin[i]) --g.out[i];
  }
  return absl::OkStatus();
}

absl::Status CheckRanks(const Node& node, const Shape& x, const Shape& w) {
  if (x.rank() < 3 || x.rank() > 5) {
    return NodeError(node, absl::StrCat("input of shape ", x.ToString(),
                                        ": expected [N, C, ...] with 1 to 3 spatial axes"));
  }
  if (w.rank() != x.rank()) {
    return NodeError(node, absl::StrCat("weights of shape ", w.ToString(),
                                        " do not have the rank of the input ", x.ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Window::Dims> KernelOfWeights(const Node& node, const Shape& w) {
  const Window::Dims kernel(w.begin() + 2, w.end());
  if (node.Has("kernel_shape")) {
    const std::vector<int64_t> stated = node.Ints("kernel_shape");
    if (!std::equal(stated.begin(), stated.end(), kernel.begin(), kernel.end())) {
      return NodeError(node, absl::StrCat("attribute kernel_shape = [", absl::StrJoin(stated, ", "),
                                          "] disagrees with weights of shape ", w.ToString()));
    }
  }
  return kernel;
}

absl::StatusOr<int64_t> ReadGroups(const Node& node, int64_t channels, const char* what) {
  const int64_t groups = node.Int("group", 1);
  if (groups < 1 || channels % groups != 0) {
    return NodeError(node, absl::StrCat("attribute group = ", groups, " does not divide the ",
                                        channels, " ", what, " channels"));
  }
  return groups;
}

absl::Status CheckSize(const Node& node, const Shape& shape) {
  if (absl::StatusOr<int64_t> n = CheckedElements(shape.dims()); !n.ok()) {
    return NodeError(node, std::string(n.status().message()));
  }
  return absl::OkStatus();
}

}  // namespace

Shape WithSpatial(int64_t batch, int64_t channels, const Window::Dims& spatial) {
  Shape shape{batch, channels};
  for (int64_t d : spatial) shape.push_back(d);
  return shape;
}

Shape ConvGeometry::x() const { return WithSpatial(batch, in_channels, window.in); }
Shape ConvGeometry::w() const {
  return WithSpatial(out_channels, in_channels / groups, window.kernel);
}
Shape ConvGeometry::y() const { return WithSpatial(batch, out_channels, window.out); }

absl::StatusOr<ConvGeometry> GeometryOfConv(const Node& node, const Shape& x, const Shape& w) {
  ONWARD_RETURN_IF_ERROR(CheckRanks(node, x, w));
  ConvGeometry g;
  g.batch = x[0];
  g.in_channels = x[1];
  g.out_channels = w[0];
  ONWARD_ASSIGN_OR_RETURN(g.groups, ReadGroups(node, g.in_channels, "input"));
  ONWARD_RETURN_IF_ERROR(ReadGroups(node, g.out_channels, "output").status());
  if (w[1] != g.in_channels / g.groups) {
    return NodeError(node,
                     absl::StrCat("weights of shape ", w.ToString(), " expect ", w[1],
                                  " input channels per group, the input ", x.ToString(),
                                  " with group = ", g.groups, " has ", g.in_channels / g.groups));
  }
  ONWARD_ASSIGN_OR_RETURN(Window::Dims kernel, KernelOfWeights(node, w));
  ONWARD_ASSIGN_OR_RETURN(g.window, ReadWindow(node, x, std::move(kernel)));
  ONWARD_RETURN_IF_ERROR(CompleteForward(node, /*ceil_mode=*/false, g.window));
  ONWARD_RETURN_IF_ERROR(CheckSize(node, g.y()));
  return g;
}

absl::StatusOr<ConvGeometry> GeometryOfConvTranspose(const Node& node, const Shape& x,
                                                     const Shape& w) {
  ONWARD_RETURN_IF_ERROR(CheckRanks(node, x, w));
  ConvGeometry g;
  g.batch = x[0];
  g.out_channels = x[1];
  ONWARD_ASSIGN_OR_RETURN(g.groups, ReadGroups(node, g.out_channels, "input"));
  if (w[0] != g.out_channels) {
    return NodeError(
        node, absl::StrCat("weights of shape ", w.ToString(), " expect ", w[0],
                           " input channels, the input ", x.ToString(), " has ", g.out_channels));
  }
  ONWARD_RETURN_IF_ERROR(CheckSize(node, Shape{w[1], g.groups}));
  g.in_channels = w[1] * g.groups;
  ONWARD_ASSIGN_OR_RETURN(Window::Dims kernel, KernelOfWeights(node, w));
  ONWARD_ASSIGN_OR_RETURN(g.window, ReadWindow(node, x, std::move(kernel)));
  Window& win = g.window;
  const int rank = win.rank();
  win.out = win.in;
  ONWARD_ASSIGN_OR_RETURN(const AutoPad auto_pad, ReadAutoPad(node));
  ONWARD_RETURN_IF_ERROR(ReadPads(node, win));
  ONWARD_ASSIGN_OR_RETURN(const Window::Dims extra,
                          IntsAttribute(node, "output_padding", rank, 0, 0));
  ONWARD_ASSIGN_OR_RETURN(const Window::Dims wanted,
                          IntsAttribute(node, "output_shape", rank, 1, 0, kMaxExtent));
  const bool same =
      (auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower) && !node.Has("pads");
  for (int i = 0; i < rank; ++i) {
    const int64_t full = win.strides[i] * (win.out[i] - 1) + extra[i] + win.extent(i);
    const bool upper = auto_pad == AutoPad::kSameUpper;
    if (node.Has("output_shape")) {
      SplitPad(win, i, std::max<int64_t>(full - wanted[i], 0), upper);
    } else if (same) {
      SplitPad(win, i, std::max<int64_t>(win.extent(i) - win.strides[i], 0), upper);
    }
    win.in[i] = node.Has("output_shape") ? wanted[i] : full - win.pads_begin[i] - win.pads_end[i];
    if (win.in[i] < 0 || (win.in[i] == 0 && win.out[i] > 0)) {
      return NodeError(
          node, absl::StrCat("the output would have size ", win.in[i], " on spatial axis ", i));
    }
  }
  ONWARD_RETURN_IF_ERROR(CheckSize(node, g.x()));
  return g;
}

absl::StatusOr<Window> GeometryOfPool(const Node& node, const Shape& x) {
  if (x.rank() < 3 || x.rank() > 5) {
    return NodeError(node, absl::StrCat("input of shape ", x.ToString(),
                                        ": expected [N, C, ...] with 1 to 3 spatial axes"));
  }
  if (!node.Has("kernel_shape")) return NodeError(node, "attribute kernel_shape is missing");
  ONWARD_ASSIGN_OR_RETURN(Window::Dims kernel,
                          IntsAttribute(node, "kernel_shape", x.rank() - 2, 1, 1));
  ONWARD_ASSIGN_OR_RETURN(Window g, ReadWindow(node, x, std::move(kernel)));
  ONWARD_RETURN_IF_ERROR(CompleteForward(node, node.Int("ceil_mode", 0) != 0, g));
  ONWARD_RETURN_IF_ERROR(CheckSize(node, WithSpatial(x[0], x[1], g.out)));
  return g;
}

}  // namespace onward

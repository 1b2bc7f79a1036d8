// SPDX-License-Identifier: Apache-2.0
// From the attributes of Resize to the taps of every output position, as the reference
// implementation of the standard has them: in double precision, coordinate by coordinate.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/ops/image/resize.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

// Taps of one axis: beyond it the tables alone would fill the memory.
constexpr double kMostTaps = 0x1p27;

enum class Coordinates {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNn,
  kCrop
};

absl::StatusOr<Coordinates> CoordinatesOf(const Node& node) {
  const std::string mode = node.String("coordinate_transformation_mode", "half_pixel");
  if (mode == "half_pixel") return Coordinates::kHalfPixel;
  if (mode == "half_pixel_symmetric") return Coordinates::kHalfPixelSymmetric;
  if (mode == "pytorch_half_pixel") return Coordinates::kPytorchHalfPixel;
  if (mode == "align_corners") return Coordinates::kAlignCorners;
  if (mode == "asymmetric") return Coordinates::kAsymmetric;
  if (mode == "tf_half_pixel_for_nn") return Coordinates::kTfHalfPixelForNn;
  if (mode == "tf_crop_and_resize") return Coordinates::kCrop;
  return NodeError(node, absl::StrCat("unknown coordinate_transformation_mode ", mode));
}

// One axis that is resized.
struct AxisSize {
  int axis = 0;
  int64_t in = 0, out = 0;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;
};

// Where output x lies in the input.
double Original(Coordinates mode, const AxisSize& a, double x) {
  const double in = static_cast<double>(a.in), length = a.scale * in;
  switch (mode) {
    case Coordinates::kAlignCorners: return length == 1 ? 0 : x * (in - 1) / (length - 1);
    case Coordinates::kAsymmetric: return x / a.scale;
    case Coordinates::kTfHalfPixelForNn: return (x + 0.5) / a.scale;
    case Coordinates::kCrop: {
      const double extent = (a.roi_end - a.roi_begin) * (in - 1);
      return (length == 1 ? extent / 2 : x * extent / (length - 1)) + a.roi_begin * (in - 1);
    }
    case Coordinates::kPytorchHalfPixel: return length == 1 ? -0.5 : (x + 0.5) / a.scale - 0.5;
    case Coordinates::kHalfPixelSymmetric: {
      const double left_over = in / 2 * (1 - static_cast<double>(a.out) / length);
      return left_over + (x + 0.5) / a.scale - 0.5;
    }
    case Coordinates::kHalfPixel: break;
  }
  return (x + 0.5) / a.scale - 0.5;
}

// Weights of the `count` neighbours of a coordinate whose fraction is in (0, 1]; the first
// neighbour is floor(coordinate) + first where the fraction is below 1.
struct Filter {
  int64_t count = 2, first = 0;
  std::function<void(double fraction, double* weights)> weights;
};

double CubicWeight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// The function of the distance, stretched over more neighbours where pixels are many.
Filter Spread(double support, double scale, bool antialias, std::function<double(double)> weight) {
  Filter filter;
  const double reach = antialias ? std::min(scale, 1.0) : 1.0;
  filter.first = static_cast<int64_t>(std::floor(-support / reach)) + 1;
  filter.count = 2 - 2 * filter.first;
  filter.weights = [=, n = filter.count, first = filter.first](double fraction, double* weights) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      weights[i] = weight(reach * (static_cast<double>(first + i) - fraction));
      sum += weights[i];
    }
    for (int64_t i = 0; antialias && i < n; ++i) weights[i] /= sum;
  };
  return filter;
}

absl::StatusOr<std::function<double(double)>> NearestWeight(const Node& node) {
  const std::string mode = node.String("nearest_mode", "round_prefer_floor");
  // Of the left neighbour, whose distance is minus the fraction.
  const auto pick = [](auto takes_left) -> std::function<double(double)> {
    return [takes_left](double d) {
      const bool left = d <= 0 && d > -1;
      const double fraction = left ? -d : 1 - d;
      if (d == 0 || d == -1) return d == 0 ? 1.0 : 0.0;
      return takes_left(fraction) == left ? 1.0 : 0.0;
    };
  };
  if (mode == "round_prefer_floor") return pick([](double f) { return f <= 0.5; });
  if (mode == "round_prefer_ceil") return pick([](double f) { return f < 0.5; });
  if (mode == "floor") return pick([](double) { return true; });
  if (mode == "ceil") return pick([](double) { return false; });
  return NodeError(node, absl::StrCat("unknown nearest_mode ", mode));
}

absl::StatusOr<Filter> FilterOf(const Node& node, double scale) {
  const std::string mode = node.String("mode", "nearest");
  const bool antialias = node.Int("antialias", 0) != 0;
  if (mode == "nearest") {
    if (antialias) return NodeError(node, "antialias is for the modes linear and cubic");
    ONWARD_ASSIGN_OR_RETURN(std::function<double(double)> weight, NearestWeight(node));
    return Spread(1, 1, false, std::move(weight));
  }
  if (mode == "linear") {
    return Spread(1, scale, antialias, [](double d) { return std::max(1 - std::abs(d), 0.0); });
  }
  if (mode == "cubic") {
    const double a = node.Float("cubic_coeff_a", -0.75f);
    return Spread(2, scale, antialias, [a](double d) { return CubicWeight(d, a); });
  }
  return NodeError(node, absl::StrCat("unknown mode ", mode));
}

// Adds the taps of one output: neighbours beyond the ends repeat the last pixel, or count
// for nothing.
void AddTaps(int64_t first, absl::Span<double> weights, bool exclude_outside, AxisMap& map) {
  const auto n = static_cast<int64_t>(weights.size());
  if (exclude_outside) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (first + i < 0 || first + i >= map.in) weights[i] = 0;
      sum += weights[i];
    }
    for (double& w : weights) w /= sum == 0 ? 1 : sum;
  }
  const auto begin = static_cast<size_t>(map.starts.back());
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<int32_t>(std::clamp<int64_t>(first + i, 0, map.in - 1));
    if (map.index.size() > begin && map.index.back() == at) {
      map.weight.back() += weights[i];
    } else if (weights[i] != 0) {
      map.index.push_back(at);
      map.weight.push_back(weights[i]);
    }
  }
  map.starts.push_back(static_cast<int64_t>(map.index.size()));
}

absl::StatusOr<AxisMap> MapOf(const Node& node, Coordinates mode, const AxisSize& a) {
  AxisMap map;
  map.axis = a.axis;
  map.in = a.in;
  map.out = a.out;
  ONWARD_ASSIGN_OR_RETURN(const Filter filter, FilterOf(node, a.scale));
  const double taps = static_cast<double>(a.out) * static_cast<double>(filter.count);
  if (a.in < 1 || a.in > INT32_MAX || taps > kMostTaps) {
    return absl::ResourceExhaustedError(absl::StrCat(node.Describe(), ": axis ", a.axis,
                                                     " cannot be resized from ", a.in, " to ",
                                                     a.out, " elements"));
  }
  const bool exclude_outside = node.Int("exclude_outside", 0) != 0;
  // Whole pixels are picked by quotients of floats, as onnxruntime has them: 6 / 1.2 is 5 there,
  // and less than 5 in double, because the float 1.2 is a bit more than that.
  const bool quotient =
      mode == Coordinates::kAsymmetric && node.String("mode", "nearest") == "nearest";
  std::vector<double> weights(filter.count);
  map.starts = {0};
  map.starts.reserve(a.out + 1);
  for (int64_t o = 0; o < a.out; ++o) {
    const double x = quotient ? static_cast<float>(o) / static_cast<float>(a.scale)
                              : Original(mode, a, static_cast<double>(o));
    if (mode == Coordinates::kCrop && !(x >= 0 && x <= static_cast<double>(a.in - 1))) {
      map.outside.push_back(o);
      map.starts.push_back(map.starts.back());
      continue;
    }
    // The pixel on the left is preferred: a whole coordinate has the fraction 1.
    const double left = std::ceil(x) - 1;
    filter.weights(x - left, weights.data());
    AddTaps(static_cast<int64_t>(left) + filter.first, absl::MakeSpan(weights), exclude_outside,
            map);
  }
  return map;
}

bool IsIdentity(Coordinates mode, const AxisSize& a) {
  const bool whole = mode != Coordinates::kCrop || (a.roi_begin == 0 && a.roi_end == 1);
  // Those of tf_half_pixel_for_nn, too, which would else mix channels.
  return a.in == a.out && a.scale == 1 && whole;
}

bool Given(const Tensor* t) { return t != nullptr && t->elements() > 0; }

absl::Status ExpectCount(const Node& node, const char* what, size_t given, size_t expected) {
  if (given == expected) return absl::OkStatus();
  return NodeError(node, absl::StrCat(what, " has ", given, " values, expected ", expected));
}

absl::Status ReadRoi(const Node& node, const Tensor* roi, std::vector<AxisSize>& axes) {
  if (!Given(roi)) return NodeError(node, "tf_crop_and_resize needs the input roi");
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(*roi));
  ONWARD_RETURN_IF_ERROR(ExpectCount(node, "roi", values.size(), 2 * axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].roi_begin = values[i];
    axes[i].roi_end = values[axes.size() + i];
  }
  return absl::OkStatus();
}

absl::Status ReadScales(const Node& node, const Tensor& scales, std::vector<AxisSize>& axes) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(scales));
  ONWARD_RETURN_IF_ERROR(ExpectCount(node, "scales", values.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!(values[i] > 0 && values[i] < 0x1p31)) {
      return NodeError(node,
                       absl::StrCat("scales holds ", values[i], ", expected numbers above 0"));
    }
    axes[i].scale = values[i];
    // In float, as onnxruntime and Onward's shape inference have it.
    const float out = std::floor(static_cast<float>(axes[i].in) * static_cast<float>(values[i]));
    if (out >= 0x1p48f) return NodeError(node, "the result is too large");
    axes[i].out = static_cast<int64_t>(out);
  }
  return absl::OkStatus();
}

absl::Status ReadSizes(const Node& node, const Tensor& sizes, std::vector<AxisSize>& axes) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntsOf(node, sizes, "sizes"));
  ONWARD_RETURN_IF_ERROR(ExpectCount(node, "sizes", values.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (values[i] < 0 || values[i] > (int64_t{1} << 48)) {
      return NodeError(node, absl::StrCat("sizes holds ", values[i]));
    }
    axes[i].out = values[i];
    if (axes[i].in > 0) {
      axes[i].scale = static_cast<double>(values[i]) / static_cast<double>(axes[i].in);
    }
  }
  const std::string policy = node.String("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || axes.empty()) return absl::OkStatus();
  if (policy != "not_larger" && policy != "not_smaller") {
    return NodeError(node, absl::StrCat("unknown keep_aspect_ratio_policy ", policy));
  }
  double scale = axes[0].scale;
  for (const AxisSize& a : axes) {
    scale = policy == "not_larger" ? std::min(scale, a.scale) : std::max(scale, a.scale);
  }
  for (AxisSize& a : axes) {
    a.scale = scale;
    const double out = std::floor(scale * static_cast<double>(a.in) + 0.5);
    if (!(out < 0x1p48)) return NodeError(node, "the result is too large");
    a.out = static_cast<int64_t>(out);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<AxisSize>> AxesOf(const Node& node, const Shape& in,
                                             const ResizeInputs& inputs, Coordinates mode) {
  std::vector<int64_t> listed = node.Ints("axes");
  if (!node.Has("axes")) {
    for (int i = 0; i < in.rank(); ++i) listed.push_back(i);
  }
  std::vector<AxisSize> axes;
  std::vector<bool> seen(in.rank(), false);
  for (int64_t axis : listed) {
    const absl::StatusOr<int> at = NormalizeAxis(axis, in.rank());
    if (!at.ok()) return AtNode(node, at.status());
    if (seen[*at]) return NodeError(node, absl::StrCat("axis ", axis, " is given twice"));
    seen[*at] = true;
    axes.push_back({.axis = *at, .in = in[*at], .out = in[*at]});
  }
  if (Given(inputs.scales) == Given(inputs.sizes) && !axes.empty()) {
    return NodeError(node, "needs either scales or sizes");
  }
  if (mode == Coordinates::kCrop) ONWARD_RETURN_IF_ERROR(ReadRoi(node, inputs.roi, axes));
  if (Given(inputs.scales)) ONWARD_RETURN_IF_ERROR(ReadScales(node, *inputs.scales, axes));
  if (Given(inputs.sizes)) ONWARD_RETURN_IF_ERROR(ReadSizes(node, *inputs.sizes, axes));
  std::sort(axes.begin(), axes.end(),
            [](const AxisSize& a, const AxisSize& b) { return a.axis < b.axis; });
  return axes;
}

}  // namespace

AxisMap Transposed(const AxisMap& map) {
  AxisMap to;
  to.axis = map.axis;
  to.in = map.out;
  to.out = map.in;
  to.starts.assign(to.out + 1, 0);
  to.index.resize(map.index.size());
  to.weight.resize(map.index.size());
  for (int32_t i : map.index) ++to.starts[i + 1];
  for (int64_t i = 0; i < to.out; ++i) to.starts[i + 1] += to.starts[i];
  std::vector<int64_t> next(to.starts.begin(), to.starts.end() - 1);
  for (int64_t o = 0; o < map.out; ++o) {
    for (int64_t k = map.starts[o]; k < map.starts[o + 1]; ++k) {
      const int64_t at = next[map.index[k]]++;
      to.index[at] = static_cast<int32_t>(o);
      to.weight[at] = map.weight[k];
    }
  }
  return to;
}

absl::StatusOr<ResizePlan> PlanResize(const Node& node, const Shape& in,
                                      const ResizeInputs& inputs) {
  ONWARD_ASSIGN_OR_RETURN(const Coordinates mode, CoordinatesOf(node));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<AxisSize> axes, AxesOf(node, in, inputs, mode));
  ResizePlan plan;
  plan.shape = in;
  for (const AxisSize& a : axes) plan.shape[a.axis] = a.out;
  const absl::StatusOr<int64_t> elements = CheckedElements(plan.shape.dims());
  if (!elements.ok()) return AtNode(node, elements.status());
  if (*elements == 0) return plan;
  for (const AxisSize& a : axes) {
    if (IsIdentity(mode, a)) continue;
    ONWARD_ASSIGN_OR_RETURN(AxisMap map, MapOf(node, mode, a));
    plan.maps.push_back(std::move(map));
  }
  return plan;
}

}  // namespace onward

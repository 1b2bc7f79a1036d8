// SPDX-License-Identifier: Apache-2.0
// Resizing, boxes, and what windows are put together from.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

// One axis of a Resize: its length before and after, the factor, the part that is cropped.
struct Side {
  Number in = 1, factor = 1, roi_from = 0, roi_to = 1;
  int64_t out = 1;
  bool resized = false;
};

std::vector<Side> SidesOf(const Call& c) {
  const Shape& x = c.in[0].shape;
  std::vector<Side> sides(x.rank());
  Index axes = c.node.Ints("axes");
  if (!c.node.Has("axes")) {
    axes.resize(x.rank());
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int d = 0; d < x.rank(); ++d) {
    sides[d].in = static_cast<Number>(x[d]);
    sides[d].out = x[d];
  }
  const bool by_size = c.Has(3) && c.in[3].size() > 0;
  Number shared = by_size ? c.in[3].values[0] / x[Axis(axes[0], x.rank())] : 1;
  const std::string policy = c.node.String("keep_aspect_ratio_policy", "stretch");
  for (size_t i = 0; i < axes.size(); ++i) {
    Side& side = sides[Axis(axes[i], x.rank())];
    side.resized = true;
    if (c.Has(1) && c.in[1].size() > 0) {
      side.roi_from = c.in[1].values[i];
      side.roi_to = c.in[1].values[axes.size() + i];
    }
    side.factor = by_size ? c.in[3].values[i] / side.in : c.in[2].values[i];
    side.out = static_cast<int64_t>(
        by_size ? c.in[3].values[i]
                : std::floor(static_cast<float>(side.in) * static_cast<float>(side.factor)));
    shared = policy == "not_larger" ? std::min(shared, side.factor) : std::max(shared, side.factor);
  }
  if (policy == "stretch" || !by_size) return sides;
  for (Side& side : sides) {
    if (!side.resized) continue;
    side.factor = shared;
    side.out = static_cast<int64_t>(std::floor(shared * side.in + 0.5L));
  }
  return sides;
}

Number Coordinate(const std::string& mode, const Side& s, Number x) {
  const Number length = s.factor * s.in;
  if (mode == "align_corners") return length == 1 ? 0 : x * (s.in - 1) / (length - 1);
  if (mode == "asymmetric") return x / s.factor;
  if (mode == "tf_half_pixel_for_nn") return s.factor == 1 ? x : (x + 0.5L) / s.factor;
  if (mode == "pytorch_half_pixel" && length == 1) return -0.5L;
  if (mode == "half_pixel_symmetric") {
    return s.in / 2 * (1 - s.out / length) + (x + 0.5L) / s.factor - 0.5L;
  }
  if (mode == "tf_crop_and_resize") {
    const Number whole = (s.roi_to - s.roi_from) * (s.in - 1);
    return s.roi_from * (s.in - 1) + (length == 1 ? whole / 2 : x * whole / (length - 1));
  }
  return (x + 0.5L) / s.factor - 0.5L;
}

Number Cubic(Number d, Number a) {
  d = std::fabs(d);
  if (d >= 2) return 0;
  if (d > 1) return a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
  return (a + 2) * d * d * d - (a + 3) * d * d + 1;
}

// The value of a line of pixels (repeated at its ends) at a coordinate.
Number AtCoordinate(const Node& node, const Side& s, Number x, const std::vector<Number>& line) {
  const std::string mode = node.String("mode", "nearest");
  const auto pixel = [&](int64_t i) {
    return line[std::clamp<int64_t>(i, 0, static_cast<int64_t>(line.size()) - 1)];
  };
  if (mode == "nearest") {
    const std::string round = node.String("nearest_mode", "round_prefer_floor");
    if (round == "floor") return pixel(static_cast<int64_t>(std::floor(x)));
    if (round == "ceil") return pixel(static_cast<int64_t>(std::ceil(x)));
    if (round == "round_prefer_ceil") return pixel(static_cast<int64_t>(std::floor(x + 0.5L)));
    return pixel(static_cast<int64_t>(std::ceil(x - 0.5L)));
  }
  const bool smooth = node.Int("antialias", 0) != 0;
  const Number shrink = smooth ? std::min<Number>(s.factor, 1) : 1;
  const Number reach = (mode == "linear" ? 1 : 2) / shrink;
  Number sum = 0, weights = 0;
  for (auto i = static_cast<int64_t>(std::floor(x - reach)); i <= x + reach; ++i) {
    const bool outside = i < 0 || i >= static_cast<int64_t>(line.size());
    if (outside && node.Int("exclude_outside", 0) != 0) continue;
    const Number d = (static_cast<Number>(i) - x) * shrink;
    const Number w = mode == "linear" ? std::max<Number>(0, 1 - std::fabs(d))
                                      : Cubic(d, node.Float("cubic_coeff_a", -0.75f));
    weights += w;
    if (w != 0) sum += w * pixel(i);
  }
  return sum / weights;
}

Arrays Resize(const Call& c) {
  const std::string mode = c.node.String("coordinate_transformation_mode", "half_pixel");
  if (c.in[0].dtype == DType::kBool && c.node.String("mode", "nearest") != "nearest") {
    throw NotDefined("what lies between true and false");
  }
  const std::vector<Side> sides = SidesOf(c);
  Array now = c.in[0];
  for (int d = 0; d < now.rank(); ++d) {
    if (!sides[d].resized) continue;
    Shape shape = now.shape;
    shape[d] = sides[d].out;
    now = Make(now.dtype, shape, [&](const Index& at) -> Number {
      const Number x = Coordinate(mode, sides[d], static_cast<Number>(at[d]));
      if (mode == "tf_crop_and_resize" && (x < 0 || x > sides[d].in - 1)) {
        return c.node.Float("extrapolation_value", 0);
      }
      std::vector<Number> line;
      for (int64_t i = 0; i < now.shape[d]; ++i) line.push_back(now[With(at, d, i)]);
      return AtCoordinate(c.node, sides[d], x, line);
    });
  }
  if (IsInteger(now.dtype)) {
    for (Number& v : now.values) {
      v = c.node.Int("antialias", 0) != 0 ? std::round(v) : std::trunc(v + std::copysign(1e-4L, v));
      if (now.dtype == DType::kUint8 || now.dtype == DType::kUint16 ||
          now.dtype == DType::kUint32 || now.dtype == DType::kUint64) {
        v = std::max<Number>(v, 0);
      }
    }
  }
  return {now};
}

// Elements of columns [N, C * block, L] are added where they lie in the image.
Arrays Col2Im(const Call& c) {
  const Index image = c.in[1].Ints(), block = c.in[2].Ints();
  const size_t axes = image.size();
  const Index ones(axes, 1), zeros(2 * axes, 0);
  const Index strides = c.node.Ints("strides", ones), pads = c.node.Ints("pads", zeros),
              dilations = c.node.Ints("dilations", ones);
  int64_t taps = 1;
  Shape windows;
  for (size_t i = 0; i < axes; ++i) {
    taps *= block[i];
    windows.push_back(
        (image[i] + pads[i] + pads[axes + i] - dilations[i] * (block[i] - 1) - 1) / strides[i] + 1);
  }
  Shape shape = {c.in[0].shape[0], c.in[0].shape[1] / taps};
  for (int64_t size : image) shape.push_back(size);
  Array y(c.in[0].dtype, shape);
  ForEach(Shape{shape[0], shape[1]}, [&](const Index& plane) {
    int64_t tap_number = 0;
    ForEach(Shape(block), [&](const Index& tap) {
      int64_t window_number = 0;
      ForEach(windows, [&](const Index& window) {
        Index at = plane;
        bool inside = true;
        for (size_t i = 0; i < axes; ++i) {
          at.push_back(window[i] * strides[i] + tap[i] * dilations[i] - pads[i]);
          inside &= at.back() >= 0 && at.back() < image[i];
        }
        const Index from = {plane[0], plane[1] * taps + tap_number, window_number++};
        if (inside) y[at] += c.in[0][from];
      });
      ++tap_number;
    });
  });
  return {y};
}

Arrays MaxUnpool(const Call& c) {
  const Array &x = c.in[0], &indices = c.in[1];
  const int axes = x.rank() - 2;
  const Index kernel = c.node.Ints("kernel_shape"),
              strides = c.node.Ints("strides", Index(axes, 1)),
              pads = c.node.Ints("pads", Index(2 * axes, 0));
  Shape counted = {x.shape[0], x.shape[1]};
  for (int i = 0; i < axes; ++i) {
    counted.push_back((x.shape[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[axes + i]);
  }
  Array small(x.dtype, counted);
  for (int64_t i = 0; i < x.size(); ++i) {
    small.values[static_cast<size_t>(indices.values[i])] = x.values[i];
  }
  Array y(x.dtype, c.Has(2) ? Shape(c.in[2].Ints()) : counted);
  ForEach(counted, [&](const Index& at) { y[at] = small[at]; });
  return {y};
}

// Boxes as [left, right, top, bottom].
std::vector<Number> EdgesOf(const Array& boxes, int64_t batch, int64_t box, bool centered) {
  std::vector<Number> v;
  for (int64_t k = 0; k < 4; ++k) v.push_back(boxes[{batch, box, k}]);
  if (centered) {
    return {v[0] - v[2] / 2, v[0] + v[2] / 2, v[1] - v[3] / 2, v[1] + v[3] / 2};
  }
  return {std::min(v[1], v[3]), std::max(v[1], v[3]), std::min(v[0], v[2]), std::max(v[0], v[2])};
}

Number Overlap(const std::vector<Number>& a, const std::vector<Number>& b) {
  const Number width = std::min(a[1], b[1]) - std::max(a[0], b[0]);
  const Number height = std::min(a[3], b[3]) - std::max(a[2], b[2]);
  if (width <= 0 || height <= 0) return 0;
  const Number shared = width * height;
  return shared / ((a[1] - a[0]) * (a[3] - a[2]) + (b[1] - b[0]) * (b[3] - b[2]) - shared);
}

Arrays NonMaxSuppression(const Call& c) {
  const Array &boxes = c.in[0], &scores = c.in[1];
  const bool centered = c.node.Int("center_point_box", 0) != 0;
  const Number most = c.Has(2) ? c.in[2].values[0] : 0, overlap = c.Has(3) ? c.in[3].values[0] : 0;
  std::vector<Number> rows;
  ForEach(Shape{scores.shape[0], scores.shape[1]}, [&](const Index& of) {
    Index order(boxes.shape[1]);
    std::iota(order.begin(), order.end(), 0);
    const auto score = [&](int64_t i) { return scores[{of[0], of[1], i}]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return score(a) > score(b); });
    Index kept;
    for (int64_t i : order) {
      if (static_cast<Number>(kept.size()) >= most) break;
      bool stays = !c.Has(4) || score(i) > c.in[4].values[0];
      for (int64_t k : kept) {
        stays &= Overlap(EdgesOf(boxes, of[0], i, centered), EdgesOf(boxes, of[0], k, centered)) <=
                 overlap;
      }
      if (!stays) continue;
      kept.push_back(i);
      for (int64_t v : {of[0], of[1], i}) rows.push_back(static_cast<Number>(v));
    }
  });
  Array y(DType::kInt64, {static_cast<int64_t>(rows.size()) / 3, 3});
  y.values = rows;
  return {y};
}

}  // namespace

const Table& ImageTable() {
  static const auto* const table = new Table{
      {"Resize", Resize},
      {"Col2Im", Col2Im},
      {"MaxUnpool", MaxUnpool},
      {"NonMaxSuppression", NonMaxSuppression},
  };
  return *table;
}

}  // namespace onward::reference

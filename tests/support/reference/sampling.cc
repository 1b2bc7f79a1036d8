// SPDX-License-Identifier: Apache-2.0
// Pictures that are read between their pixels.
#include <algorithm>
#include <cmath>

#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

// Mirrored at the borders until it lies between them.
Number Reflect(Number x, Number low, Number high) {
  if (high <= low) return 0;
  while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
  return x;
}

struct Line {
  int64_t size;
  std::string mode, padding;
  Number low, high;
};

// The pixel at index i of an axis; -1 outside of it.
int64_t PixelIndex(const Line& line, Number i) {
  const Number last = static_cast<Number>(line.size - 1);
  if (line.padding == "border") return static_cast<int64_t>(std::clamp<Number>(i, 0, last));
  if (line.padding == "reflection") {
    return static_cast<int64_t>(std::clamp<Number>(Reflect(i, line.low, line.high), 0, last));
  }
  return i < 0 || i > last ? -1 : static_cast<int64_t>(i);
}

Number Weight(const std::string& mode, Number d) {
  d = std::fabs(d);
  if (mode == "linear") return std::max<Number>(0, 1 - d);
  constexpr Number a = -0.75L;
  if (d >= 2) return 0;
  return d > 1 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a
               : (a + 2) * d * d * d - (a + 3) * d * d + 1;
}

// Pixels and their weights along an axis.
std::vector<std::pair<int64_t, Number>> Read(const Line& line, Number x) {
  if (line.mode == "nearest") x = std::nearbyint(x);
  // Cubic leads each pixel back by itself.
  if (line.mode != "cubic" && (x < line.low || x > line.high)) {
    if (line.padding == "border") {
      x = std::clamp<Number>(x, 0, static_cast<Number>(line.size - 1));
    }
    if (line.padding == "reflection") x = Reflect(x, line.low, line.high);
  }
  if (line.mode == "nearest") return {{PixelIndex(line, std::floor(x)), 1}};
  std::vector<std::pair<int64_t, Number>> pixels;
  const Number reach = line.mode == "linear" ? 1 : 2;
  for (Number i = std::floor(x) - reach + 1; i <= std::floor(x) + reach; ++i) {
    pixels.emplace_back(PixelIndex(line, i), Weight(line.mode, x - i));
  }
  return pixels;
}

Number ReadAll(const Array& x, const std::vector<Line>& lines, const std::vector<Number>& at,
               Index pixel) {
  const size_t axis = pixel.size() - 2;
  if (axis == lines.size()) return x[pixel];
  Number sum = 0;
  for (const auto& [index, weight] : Read(lines[axis], at[axis])) {
    if (index < 0) continue;
    Index next = pixel;
    next.push_back(index);
    sum += weight * ReadAll(x, lines, at, next);
  }
  return sum;
}

Arrays GridSample(const Call& c) {
  const Array &x = c.in[0], &grid = c.in[1];
  const int axes = x.rank() - 2;
  const bool corners = c.node.Int("align_corners", 0) != 0;
  std::vector<Line> lines;
  for (int a = 0; a < axes; ++a) {
    const int64_t size = x.shape[2 + a];
    const Number half = corners ? 0 : 0.5L;
    lines.push_back({size, c.node.String("mode", "linear"), c.node.String("padding_mode", "zeros"),
                     -half, static_cast<Number>(size - 1) + half});
  }
  if (!IsFloating(x.dtype) && lines[0].mode != "nearest") throw NotDefined("pixels in between");
  Shape shape = {x.shape[0], x.shape[1]};
  for (int d = 1; d + 1 < grid.rank(); ++d) shape.push_back(grid.shape[d]);
  return {Make(x.dtype, shape, [&](const Index& out) {
    Index point = {out[0]};
    point.insert(point.end(), out.begin() + 2, out.end());
    std::vector<Number> at;
    for (int a = 0; a < axes; ++a) {
      Index number = point;
      number.push_back(axes - 1 - a);
      const auto size = static_cast<Number>(lines[a].size);
      at.push_back(corners ? (grid[number] + 1) / 2 * (size - 1)
                           : ((grid[number] + 1) * size - 1) / 2);
    }
    return ReadAll(x, lines, at, {out[0], out[1]});
  })};
}

Arrays AffineGrid(const Call& c) {
  const Array& theta = c.in[0];
  if (!IsFloating(theta.dtype)) throw NotDefined("a linear map of integers");
  const Index sizes = c.in[1].Ints();
  const auto axes = static_cast<int64_t>(sizes.size()) - 2;
  const bool corners = c.node.Int("align_corners", 0) != 0;
  Shape shape = {sizes[0]};
  for (int64_t a = 0; a < axes; ++a) shape.push_back(sizes[a + 2]);
  shape.push_back(axes);
  return {Make(theta.dtype, shape, [&](const Index& out) {
    Number sum = theta[{out[0], out.back(), axes}];
    for (int64_t k = 0; k < axes; ++k) {  // x, y, ...
      const int64_t axis = axes - 1 - k;
      const auto size = static_cast<Number>(sizes[axis + 2]),
                 i = static_cast<Number>(out[axis + 1]);
      const Number place = !corners    ? (2 * i + 1) / size - 1
                           : size == 1 ? -1
                                       : 2 * i / (size - 1) - 1;
      sum += theta[{out[0], out.back(), k}] * place;
    }
    return sum;
  })};
}

// The weights times what the taps of the kernel read at places that offsets move.
Arrays DeformConv(const Call& c) {
  const Array &x = c.in[0], &w = c.in[1], &offset = c.in[2];
  if (!IsFloating(x.dtype)) throw NotDefined("pixels in between");
  const int axes = x.rank() - 2;
  const Index ones(axes, 1), zeros(2 * axes, 0);
  const Index strides = c.node.Ints("strides", ones), dilations = c.node.Ints("dilations", ones),
              pads = c.node.Ints("pads", zeros);
  const int64_t groups = c.node.Int("group", 1), offsets = c.node.Int("offset_group", 1);
  Shape kernel, shape = {x.shape[0], w.shape[0]};
  std::vector<Line> lines;
  for (int a = 0; a < axes; ++a) {
    kernel.push_back(w.shape[2 + a]);
    shape.push_back(offset.shape[2 + a]);
    lines.push_back(
        {x.shape[2 + a], "linear", "zeros", 0, static_cast<Number>(x.shape[2 + a] - 1)});
  }
  return {Make(x.dtype, shape, [&](const Index& out) {
    Number sum = c.Has(3) ? c.in[3].values[out[1]] : 0;
    const int64_t group = out[1] / (w.shape[0] / groups);
    for (int64_t k = 0; k < w.shape[1]; ++k) {
      const int64_t channel = group * w.shape[1] + k;
      int64_t place = channel / (x.shape[1] / offsets) * kernel.elements();
      ForEach(kernel, [&](const Index& tap) {
        Index weight = {out[1], k}, at = out;
        weight.insert(weight.end(), tap.begin(), tap.end());
        std::vector<Number> where;
        for (int a = 0; a < axes; ++a) {
          at[1] = place * axes + a;
          where.push_back(
              static_cast<Number>(out[a + 2] * strides[a] + tap[a] * dilations[a] - pads[a]) +
              offset[at]);
        }
        at[1] = place++;
        const Number mask = c.Has(4) ? c.in[4][at] : 1;
        sum += w[weight] * mask * ReadAll(x, lines, where, {out[0], channel});
      });
    }
    return sum;
  })};
}

// Samples of one bin along one side of a region, and how many of them a bin has.
struct BinSide {
  Number start, step, count;
  Number At(int64_t i) const { return start + (static_cast<Number>(i) + 0.5L) * step; }
};

BinSide BinOf(const Call& c, Number from, Number to, int64_t bin, int64_t bins) {
  const bool half = c.node.String("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const Number scale = c.node.Float("spatial_scale", 1), shift = half ? 0.5L : 0;
  const Number start = from * scale - shift;
  Number length = to * scale - shift - start;
  if (!half) length = std::max<Number>(length, 1);
  const Number size = length / static_cast<Number>(bins);
  const auto ratio = static_cast<Number>(c.node.Int("sampling_ratio", 0));
  const Number count = ratio > 0 ? ratio : std::max<Number>(0, std::ceil(size));
  return {start + static_cast<Number>(bin) * size, size / std::max<Number>(count, 1), count};
}

// The two pixels beside a coordinate with their weights; none beyond the picture.
std::vector<std::pair<int64_t, Number>> Beside(Number at, int64_t pixels) {
  if (at < -1 || at > static_cast<Number>(pixels)) return {};
  at = std::clamp<Number>(at, 0, static_cast<Number>(pixels - 1));
  const auto low = static_cast<int64_t>(std::floor(at));
  const Number part = at - std::floor(at);
  return {{low, 1 - part}, {std::min(low + 1, pixels - 1), part}};
}

Arrays RoiAlign(const Call& c) {
  const Array &x = c.in[0], &rois = c.in[1];
  if (!IsFloating(x.dtype)) throw NotDefined("pixels in between");
  const int64_t tall = c.node.Int("output_height", 1), wide = c.node.Int("output_width", 1);
  const bool maximum = c.node.String("mode", "avg") == "max";
  return {Make(x.dtype, {rois.shape[0], x.shape[1], tall, wide}, [&](const Index& out) {
    const BinSide down = BinOf(c, rois[{out[0], 1}], rois[{out[0], 3}], out[2], tall);
    const BinSide across = BinOf(c, rois[{out[0], 0}], rois[{out[0], 2}], out[3], wide);
    const auto image = static_cast<int64_t>(c.in[2].values[out[0]]);
    std::vector<Number> products;  // of all samples
    Number sum = 0;
    for (int64_t i = 0; i < down.count; ++i) {
      for (int64_t k = 0; k < across.count; ++k) {
        const auto rows = Beside(down.At(i), x.shape[2]);
        const auto columns = Beside(across.At(k), x.shape[3]);
        if (rows.empty() || columns.empty()) products.push_back(0);
        for (const auto& [row, down_weight] : rows) {
          for (const auto& [column, across_weight] : columns) {
            products.push_back(down_weight * across_weight * x[{image, out[1], row, column}]);
            sum += products.back();
          }
        }
      }
    }
    if (!maximum) return sum / std::max<Number>(1, down.count * across.count);
    return products.empty() ? 0 : *std::max_element(products.begin(), products.end());
  })};
}

// Bin i of n of a side that is rounded to whole pixels, both ends among them.
std::pair<Number, Number> PixelsOfBin(const Call& c, Number from, Number to, int64_t i, int64_t n) {
  const Number scale = c.node.Float("spatial_scale", 1);
  const Number start = std::round(from * scale);
  const Number length = std::max<Number>(std::round(to * scale) - start + 1, 1);
  const auto whole = static_cast<int64_t>(length);
  const int64_t end = (i + 1) * whole;
  return {start + static_cast<Number>(i * whole / n),
          start + static_cast<Number>(end / n + (end % n == 0 ? 0 : 1))};
}

Arrays MaxRoiPool(const Call& c) {
  const Array &x = c.in[0], &rois = c.in[1];
  if (!IsFloating(x.dtype)) throw NotDefined("regions of whole numbers");
  const std::vector<int64_t> bins = c.node.Ints("pooled_shape");
  return {Make(x.dtype, {rois.shape[0], x.shape[1], bins[0], bins[1]}, [&](const Index& out) {
    const auto corner = [&](int64_t i) { return rois[{out[0], i}]; };
    const auto image = static_cast<int64_t>(corner(0));
    const auto rows = PixelsOfBin(c, corner(2), corner(4), out[2], bins[0]);
    const auto columns = PixelsOfBin(c, corner(1), corner(3), out[3], bins[1]);
    std::vector<Number> seen;
    for (int64_t h = 0; h < x.shape[2]; ++h) {
      for (int64_t w = 0; w < x.shape[3]; ++w) {
        const bool inside =
            h >= rows.first && h < rows.second && w >= columns.first && w < columns.second;
        if (inside) seen.push_back(x[{image, out[1], h, w}]);
      }
    }
    return seen.empty() ? 0 : *std::max_element(seen.begin(), seen.end());
  })};
}

}  // namespace

const Table& SamplingTable() {
  static const auto* const table = new Table{
      {"GridSample", GridSample}, {"AffineGrid", AffineGrid}, {"DeformConv", DeformConv},
      {"RoiAlign", RoiAlign},     {"MaxRoiPool", MaxRoiPool},
  };
  return *table;
}

}  // namespace onward::reference

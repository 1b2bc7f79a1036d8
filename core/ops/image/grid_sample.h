// SPDX-License-Identifier: Apache-2.0
// The taps of many grid points at once, as GridSample and its gradient walk over them.
#ifndef ONWARD_CORE_OPS_IMAGE_GRID_SAMPLE_H_
#define ONWARD_CORE_OPS_IMAGE_GRID_SAMPLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/kernel.h"
#include "core/ops/image/sampling.h"

namespace onward {

// X [batch, channels, size...] read at grid [batch, points..., axes].
struct GridGeometry {
  int64_t batch = 0, channels = 0, pixels = 1, points = 1;
  std::vector<int64_t> sizes;  // of the spatial axes
  Interpolation mode = Interpolation::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners = false;

  int axes() const { return static_cast<int>(sizes.size()); }
  // Pixels by which a step of 1 of the grid's coordinate leads on.
  double Rate(int axis) const {
    return static_cast<double>(align_corners ? sizes[axis] - 1 : sizes[axis]) / 2;
  }
};

absl::StatusOr<GridGeometry> GridGeometryOf(const Node& node, const Shape& x, const Shape& grid);
Shape SampledShape(const Shape& x, const Shape& grid);

// The taps of points [first, first + n) of one picture's grid.
template <typename A, typename G>
void FindPoints(const GridGeometry& g, const G* grid, int64_t first, int64_t n, bool with_slopes,
                PointTaps<A>* taps) {
  const int axes = g.axes();
  std::vector<LineSampler<A>> lines;
  for (int64_t size : g.sizes) lines.emplace_back(size, g.mode, g.padding, g.align_corners);
  taps->Find(lines, n, with_slopes, [&](int64_t p, int axis) {
    // The grid lists the last axis first.
    const A at = static_cast<A>(grid[(first + p) * axes + axes - 1 - axis]);
    return at * static_cast<A>(g.Rate(axis)) + static_cast<A>(g.sizes[axis] - 1) / 2;
  });
}

void RegisterGridSampleGradKernels(KernelTable& table);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_IMAGE_GRID_SAMPLE_H_

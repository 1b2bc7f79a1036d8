// SPDX-License-Identifier: Apache-2.0
// The columns of a deformable convolution: what each tap of the kernel reads for each output,
// at a place that an offset moves, times a mask.
#ifndef ONWARD_CORE_OPS_IMAGE_DEFORM_H_
#define ONWARD_CORE_OPS_IMAGE_DEFORM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device/kernel.h"
#include "core/device/plan/window.h"
#include "core/ops/image/sampling.h"

namespace onward {

// X [batch, channels, in...], offset [batch, groups * taps * axes, out...], mask
// [batch, groups * taps, out...]; columns are [batch, channels, taps, points].
struct DeformGeometry {
  int64_t batch = 0, channels = 0, groups = 1;
  int64_t taps = 1, points = 1, pixels = 1;
  Window window;

  int axes() const { return window.rank(); }
  int64_t channels_of_group() const { return channels / groups; }
};

// `node` has the attribute kernel_shape. The mask's shape is null where there is none.
absl::StatusOr<DeformGeometry> DeformGeometryOf(const Node& node, const Shape& x,
                                                const Shape& offset, const Shape* mask);

// Points [first, first + n) of one image, group and tap.
template <typename T>
struct DeformedPoints {
  std::vector<LineSampler<T>> lines;
  PointTaps<T> taps;

  std::vector<T> bases;  // [axis][point]: where the first tap of an output lies

  explicit DeformedPoints(const DeformGeometry& g);
  // `offset` begins with the image.
  void Find(const DeformGeometry& g, const T* offset, int64_t group, int64_t tap, int64_t first,
            int64_t n, bool with_slopes);
};

extern template struct DeformedPoints<float>;
extern template struct DeformedPoints<double>;

// The columns of one image.
template <typename T>
void ReadColumns(const DeformGeometry& g, const T* x, const T* offset, const T* mask, T* columns);

void RegisterDeformGradKernels(KernelTable& table);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_IMAGE_DEFORM_H_

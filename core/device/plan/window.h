// SPDX-License-Identifier: Apache-2.0
// How a sliding window meets its input: the one place that turns the attributes
// of Conv, ConvTranspose and the pools, with concrete shapes, into pads, strides
// and output sizes. What is accepted here is safe to index with.
#ifndef ONWARD_CORE_DEVICE_PLAN_WINDOW_H_
#define ONWARD_CORE_DEVICE_PLAN_WINDOW_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "core/base/shape.h"
#include "core/graph/graph.h"

namespace onward {

// One entry per spatial axis. Window position o covers the input elements
// o*stride - pad_begin + t*dilation for t in [0, kernel) that lie in [0, in).
struct Window {
  using Dims = absl::InlinedVector<int64_t, 3>;
  Dims in, kernel, strides, dilations, pads_begin, pads_end, out;

  int rank() const { return static_cast<int>(in.size()); }
  // The extent of a window, holes included.
  int64_t extent(int axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  // The padding at the end that the last window really reaches; negative where
  // it leaves elements out.
  int64_t reached_pad_end(int axis) const {
    return (out[axis] - 1) * strides[axis] + extent(axis) - in[axis] - pads_begin[axis];
  }
  int64_t in_elements() const { return Product(in); }
  int64_t kernel_elements() const { return Product(kernel); }
  int64_t out_elements() const { return Product(out); }

 private:
  static int64_t Product(const Dims& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
};

// A convolution from x [batch, in_channels, window.in...] with weights
// w [out_channels, in_channels/groups, window.kernel...] to
// y [batch, out_channels, window.out...].
struct ConvGeometry {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Window window;

  Shape x() const;
  Shape w() const;
  Shape y() const;
};

// For Conv and its gradients, from the shapes of X and W.
absl::StatusOr<ConvGeometry> GeometryOfConv(const Node& node, const Shape& x, const Shape& w);

// The convolution whose data gradient a ConvTranspose is: its x() is the
// node's output, its y() the node's input X, its w() the node's W.
absl::StatusOr<ConvGeometry> GeometryOfConvTranspose(const Node& node, const Shape& x,
                                                     const Shape& w);

// For MaxPool, AveragePool, LpPool and their gradients, from the shape of X.
absl::StatusOr<Window> GeometryOfPool(const Node& node, const Shape& x);

// [batch, channels, spatial...].
Shape WithSpatial(int64_t batch, int64_t channels, const Window::Dims& spatial);

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_PLAN_WINDOW_H_

// SPDX-License-Identifier: Apache-2.0
// DeformConv: a product of the weights with the columns of the input.
#include "core/ops/image/deform.h"

#include <Eigen/Core>
#include <algorithm>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/sgemm.h"
#include "core/ops/image/image.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

template <typename T>
using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// c [m, n] = a [m, k] * b [k, n], all dense.
template <typename T>
void Multiply(const Sgemm& product, int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c,
              void* workspace) {
  if constexpr (std::is_same_v<T, float>) {
    product.Run({a, k, 1}, {b, n, 1}, c, {}, workspace);
  } else {
    Eigen::Map<Rows<T>>(c, m, n).noalias() =
        Eigen::Map<const Rows<T>>(a, m, k) * Eigen::Map<const Rows<T>>(b, k, n);
  }
}

struct DeformConv {
  DeformGeometry g;
  int64_t groups, rows, depth;  // of the weights: [groups][rows, depth]
  Sgemm product;
  size_t columns_at, product_at;

  template <typename T>
  void Run(const KernelCall& call) const {
    const auto input = [&](size_t i) -> const T* {
      return i < call.inputs.size() && call.inputs[i] != nullptr ? call.inputs[i]->data<T>()
                                                                 : nullptr;
    };
    const T *x = input(0), *w = input(1), *offset = input(2), *bias = input(3), *mask = input(4);
    T* y = call.outputs[0]->data<T>();
    T* columns = At<T>(call.workspace, columns_at);
    const int64_t made = groups * rows;
    for (int64_t image = 0; image < g.batch; ++image) {
      const int64_t places = g.groups * g.taps * g.points;
      ReadColumns(g, x + image * g.channels * g.pixels, offset + image * places * g.axes(),
                  mask == nullptr ? nullptr : mask + image * places, columns);
      T* out = y + image * made * g.points;
      for (int64_t group = 0; group < groups; ++group) {
        Multiply(product, rows, g.points, depth, w + group * rows * depth,
                 columns + group * depth * g.points, out + group * rows * g.points,
                 At<char>(call.workspace, product_at));
      }
      for (int64_t m = 0; bias != nullptr && m < made; ++m) {
        for (int64_t p = 0; p < g.points; ++p) out[m * g.points + p] += bias[m];
      }
    }
  }
};

Node WithKernel(const Node& node, const Shape& w) {
  Node copy = node;
  if (!node.Has("kernel_shape") && w.rank() > 2) {
    copy.attributes["kernel_shape"] = std::vector<int64_t>(w.begin() + 2, w.end());
  }
  return copy;
}

absl::StatusOr<Kernel> MakeDeformConv(const KernelRequest& r) {
  if (!r.HasInput(0) || !r.HasInput(1) || !r.HasInput(2)) {
    return NodeError(r.node, "needs X, W and offset");
  }
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry conv, GeometryOfConv(r.node, r.in(0), r.in(1)));
  ONWARD_ASSIGN_OR_RETURN(const DeformGeometry g,
                          DeformGeometryOf(WithKernel(r.node, r.in(1)), r.in(0), r.in(2),
                                           r.HasInput(4) ? &r.in(4) : nullptr));
  if (r.HasInput(3) && r.in(3) != Shape{conv.out_channels}) {
    return NodeError(r.node, absl::StrCat("the bias has shape ", r.in(3).ToString(), ", expected [",
                                          conv.out_channels, "]"));
  }
  for (int i = 1; i < 5; ++i) {
    if (r.HasInput(i) && r.inputs[i].dtype != r.inputs[0].dtype) {
      return NodeError(r.node, "the inputs have different element types");
    }
  }
  Kernel kernel;
  kernel.infallible = true;
  const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
    const int64_t rows = conv.out_channels / conv.groups;
    const int64_t depth = conv.in_channels / conv.groups * g.taps;
    WorkspacePlan plan;
    const size_t columns_at = plan.Add(g.channels * g.taps * g.points * sizeof(T));
    const Sgemm product(rows, g.points, depth);
    const size_t product_at = plan.Add(product.workspace_bytes());
    kernel.workspace_bytes = plan.bytes();
    auto state = std::make_shared<const DeformConv>(
        DeformConv{g, conv.groups, rows, depth, product, columns_at, product_at});
    kernel.run = [state, empty = conv.y().elements() == 0](const KernelCall& call) {
      if (!empty) state->Run<T>(call);
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "no kernel for this element type");
  return kernel;
}

}  // namespace

absl::StatusOr<DeformGeometry> DeformGeometryOf(const Node& node, const Shape& x,
                                                const Shape& offset, const Shape* mask) {
  Shape w{1, x.rank() > 1 ? x[1] : 0};
  for (int64_t k : node.Ints("kernel_shape")) w.push_back(k);
  Node plain = node;
  plain.attributes.erase("group");
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry conv, GeometryOfConv(plain, x, w));
  DeformGeometry g;
  g.window = conv.window;
  g.batch = conv.batch;
  g.channels = conv.in_channels;
  g.groups = node.Int("offset_group", 1);
  g.taps = g.window.kernel_elements();
  g.points = g.window.out_elements();
  g.pixels = g.window.in_elements();
  if (g.groups < 1 || g.groups > std::max<int64_t>(g.channels, 1) || g.channels % g.groups != 0) {
    return NodeError(node, absl::StrCat(g.channels, " channels do not divide into ", g.groups,
                                        " offset groups"));
  }
  if (g.pixels == 0) return NodeError(node, "X has no pixels");
  if (g.pixels > INT32_MAX) return NodeUnimplemented(node, "pictures of 2^31 pixels and more");
  const Shape offsets = WithSpatial(g.batch, g.groups * g.taps * g.axes(), g.window.out);
  if (offset != offsets) {
    return NodeError(node, absl::StrCat("offset has shape ", offset.ToString(), ", expected ",
                                        offsets.ToString()));
  }
  const Shape masks = WithSpatial(g.batch, g.groups * g.taps, g.window.out);
  if (mask != nullptr && *mask != masks) {
    return NodeError(
        node, absl::StrCat("mask has shape ", mask->ToString(), ", expected ", masks.ToString()));
  }
  return g;
}

template <typename T>
DeformedPoints<T>::DeformedPoints(const DeformGeometry& g) : bases(g.axes() * g.points) {
  const Window& w = g.window;
  for (int64_t size : w.in) {
    lines.emplace_back(size, Interpolation::kLinear, Padding::kZeros, /*align_corners=*/true);
  }
  for (int64_t p = 0; p < g.points; ++p) {
    for (int64_t axis = g.axes() - 1, rest = p; axis >= 0; rest /= w.out[axis--]) {
      bases[axis * g.points + p] =
          static_cast<T>(rest % w.out[axis] * w.strides[axis] - w.pads_begin[axis]);
    }
  }
}

template <typename T>
void DeformedPoints<T>::Find(const DeformGeometry& g, const T* offset, int64_t group, int64_t tap,
                             int64_t first, int64_t n, bool with_slopes) {
  const Window& w = g.window;
  Window::Dims shift(g.axes());
  for (int64_t axis = g.axes() - 1, rest = tap; axis >= 0; rest /= w.kernel[axis--]) {
    shift[axis] = rest % w.kernel[axis] * w.dilations[axis];
  }
  const T* moved = offset + (group * g.taps + tap) * g.axes() * g.points;
  taps.Find(lines, n, with_slopes, [&](int64_t p, int axis) {
    const int64_t at = axis * g.points + first + p;
    return bases[at] + static_cast<T>(shift[axis]) + moved[at];
  });
}

template <typename T>
void ReadColumns(const DeformGeometry& g, const T* x, const T* offset, const T* mask, T* columns) {
  const int64_t chunks = (g.points + kPointsTogether - 1) / kPointsTogether;
  ParallelFor(g.groups * g.taps * chunks, 1, [&](int64_t begin, int64_t end) {
    DeformedPoints<T> points(g);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % chunks * kPointsTogether, place = i / chunks;
      const int64_t group = place / g.taps, tap = place % g.taps;
      const int64_t n = std::min(kPointsTogether, g.points - first);
      points.Find(g, offset, group, tap, first, n, /*with_slopes=*/false);
      const int64_t c = group * g.channels_of_group(), stride = g.taps * g.points;
      T* column = columns + (c * g.taps + tap) * g.points + first;
      points.taps.Read(x + c * g.pixels, g.pixels, g.channels_of_group(), column, stride);
      if (mask == nullptr) continue;
      const T* factor = mask + place * g.points + first;
      for (int64_t k = 0; k < g.channels_of_group(); ++k) {
        for (int64_t p = 0; p < n; ++p) column[k * stride + p] *= factor[p];
      }
    }
  });
}

template struct DeformedPoints<float>;
template struct DeformedPoints<double>;
template void ReadColumns(const DeformGeometry&, const float*, const float*, const float*, float*);
template void ReadColumns(const DeformGeometry&, const double*, const double*, const double*,
                          double*);

void RegisterDeformKernels(KernelTable& table) {
  const auto shape = [](const KernelRequest& r, int) {
    return GeometryOfConv(r.node, r.in(0), r.in(1))->y();
  };
  table.Add("DeformConv",
            {"reference", 19, Adapt(MakeDeformConv, shape), "float, double, float16, bfloat16"});
  RegisterDeformGradKernels(table);
}

}  // namespace onward

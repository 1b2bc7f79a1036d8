// SPDX-License-Identifier: Apache-2.0
#include "core/ops/image/grid_sample.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/type_list.h"
#include "core/ops/image/image.h"
#include "core/ops/movement/movement.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kMostTapsOfPoint = 4096;

absl::Status ReadModes(const Node& node, GridGeometry& g) {
  const std::string mode = node.String("mode", "linear");
  if (mode == "nearest") {
    g.mode = Interpolation::kNearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    g.mode = Interpolation::kCubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return NodeError(node, absl::StrCat("unknown mode ", mode));
  }
  const std::string padding = node.String("padding_mode", "zeros");
  if (padding == "border") {
    g.padding = Padding::kBorder;
  } else if (padding == "reflection") {
    g.padding = Padding::kReflection;
  } else if (padding != "zeros") {
    return NodeError(node, absl::StrCat("unknown padding_mode ", padding));
  }
  g.align_corners = node.Int("align_corners", 0) != 0;
  return absl::OkStatus();
}

template <typename T, typename G>
void Sample(const GridGeometry& g, const T* x, const G* grid, T* y) {
  using A =
      std::conditional_t<std::is_same_v<T, double> || std::is_same_v<G, double>, double, float>;
  const int64_t chunks = (g.points + kPointsTogether - 1) / kPointsTogether;
  ParallelFor(g.batch * chunks, 1, [&](int64_t begin, int64_t end) {
    PointTaps<A> taps;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / chunks, first = i % chunks * kPointsTogether;
      FindPoints(g, grid + image * g.points * g.axes(), first,
                 std::min(kPointsTogether, g.points - first), /*with_slopes=*/false, &taps);
      taps.Read(x + image * g.channels * g.pixels, g.pixels, g.channels,
                y + image * g.channels * g.points + first, g.points);
    }
  });
}

// Elements of any kind, each as it is.
template <typename T, typename G>
void SampleNearest(const GridGeometry& g, const T* x, const G* grid, T* y) {
  PointTaps<double> taps;
  for (int64_t image = 0; image < g.batch; ++image) {
    for (int64_t first = 0; first < g.points; first += kPointsTogether) {
      FindPoints(g, grid + image * g.points * g.axes(), first,
                 std::min(kPointsTogether, g.points - first), /*with_slopes=*/false, &taps);
      for (int64_t c = 0; c < g.channels; ++c) {
        const int64_t plane = image * g.channels + c;
        for (int64_t p = 0; p < taps.count; ++p) {
          const int32_t at = taps.position[p];
          y[plane * g.points + first + p] = at < 0 ? T{} : x[plane * g.pixels + at];
        }
      }
    }
  }
}

absl::StatusOr<Kernel> MakeGridSample(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_ASSIGN_OR_RETURN(const GridGeometry g,
                          GridGeometryOf(request.node, request.in(0), request.in(1)));
  const OutputSlot slot(request, 0);
  const Shape shape = SampledShape(request.in(0), request.in(1));
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  const DType x = request.inputs[0].dtype, grid = request.inputs[1].dtype;
  const bool numbers = IsFloating(x);
  if ((!numbers && g.mode != Interpolation::kNearest) || !IsMovable(x) || !IsFloating(grid)) {
    return NodeUnimplemented(
        request.node, absl::StrCat("no interpolation of ", DTypeName(x), " at ", DTypeName(grid)));
  }
  Kernel kernel;
  kernel.infallible = slot.planned();
  kernel.run = [=](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    if (output->elements() == 0) return absl::OkStatus();
    DispatchFloating(grid, [&]<typename G>() {
      const G* at = call.inputs[1]->data<G>();
      if (!numbers) {
        DispatchWidth(x, [&]<typename T>() {
          SampleNearest(g, call.inputs[0]->data<T>(), at, output->data<T>());
        });
      }
      DispatchFloating(
          x, [&]<typename T>() { Sample(g, call.inputs[0]->data<T>(), at, output->data<T>()); });
    });
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

absl::StatusOr<GridGeometry> GridGeometryOf(const Node& node, const Shape& x, const Shape& grid) {
  GridGeometry g;
  ONWARD_RETURN_IF_ERROR(ReadModes(node, g));
  const int rank = x.rank();
  if (rank < 3 || grid.rank() != rank || grid[0] != x[0] || grid[rank - 1] != rank - 2) {
    return NodeError(node, absl::StrCat("X of shape ", x.ToString(), " and grid of shape ",
                                        grid.ToString(), ": expected [N, C, D...] and [N, ..., ",
                                        rank - 2, "] with as many axes"));
  }
  g.batch = x[0];
  g.channels = x[1];
  g.points = grid.elements(1, rank - 1);
  int64_t taps = 1;
  for (int i = 2; i < rank; ++i) {
    g.sizes.push_back(x[i]);
    g.pixels *= x[i];
    taps *= TapsOf(g.mode);
    if (taps > kMostTapsOfPoint) return NodeUnimplemented(node, "too many spatial axes");
  }
  const bool empty = g.batch * g.channels * g.points == 0;
  if ((g.pixels == 0 && !empty) || g.pixels > INT32_MAX) {
    return NodeError(node, absl::StrCat("pictures of ", g.pixels, " pixels cannot be sampled"));
  }
  return g;
}

Shape SampledShape(const Shape& x, const Shape& grid) {
  Shape shape{x[0], x[1]};
  for (int i = 1; i + 1 < grid.rank(); ++i) shape.push_back(grid[i]);
  return shape;
}

void RegisterGridSampleKernels(KernelTable& table) {
  table.Add("GridSample", {"reference", 16, MakeGridSample, "all but packed"});
  RegisterGridSampleGradKernels(table);
}

}  // namespace onward

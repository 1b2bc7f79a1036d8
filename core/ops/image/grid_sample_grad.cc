// SPDX-License-Identifier: Apache-2.0
// GridSampleGrad (dY, X, grid): the gradients of X and, where it is wanted, of the grid.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/image/grid_sample.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

// One channel is one thread's, so that sums have one order.
template <typename T>
void AddToPixels(const GridGeometry& g, const T* dy, const T* grid, T* dx) {
  std::fill_n(dx, g.batch * g.channels * g.pixels, T{0});
  PointTaps<T> taps;
  for (int64_t image = 0; image < g.batch; ++image) {
    for (int64_t first = 0; first < g.points; first += kPointsTogether) {
      const int64_t n = std::min(kPointsTogether, g.points - first);
      FindPoints(g, grid + image * g.points * g.axes(), first, n, /*with_slopes=*/false, &taps);
      ParallelFor(g.channels, (1 << 13) / (n * taps.taps) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          const int64_t plane = image * g.channels + c;
          taps.Add(dy + plane * g.points + first, dx + plane * g.pixels);
        }
      });
    }
  }
}

// dgrid = sum over channels and taps of dy * x[tap] * slope.
template <typename T>
void SlopesOfPoints(const GridGeometry& g, const T* dy, const T* x, const T* grid, T* dgrid) {
  const int axes = g.axes();
  const int64_t chunks = (g.points + kPointsTogether - 1) / kPointsTogether;
  ParallelFor(g.batch * chunks, 1, [&](int64_t begin, int64_t end) {
    PointTaps<T> taps;
    std::vector<T> moments;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / chunks, first = i % chunks * kPointsTogether;
      const int64_t n = std::min(kPointsTogether, g.points - first);
      FindPoints(g, grid + image * g.points * axes, first, n, /*with_slopes=*/true, &taps);
      moments.assign(taps.taps * n, T{0});
      for (int64_t c = 0; c < g.channels; ++c) {
        const int64_t plane = image * g.channels + c;
        taps.AddMoments(dy + plane * g.points + first, x + plane * g.pixels, moments.data());
      }
      for (int64_t p = 0; p < n; ++p) {
        for (int axis = 0; axis < axes; ++axis) {
          dgrid[(image * g.points + first + p) * axes + axes - 1 - axis] =
              taps.Slope(moments.data(), axis, p) * static_cast<T>(g.Rate(axis));
        }
      }
    }
  });
}

absl::StatusOr<Kernel> MakeGridSampleGrad(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const GridGeometry g, GridGeometryOf(r.node, r.in(1), r.in(2)));
  if (r.in(0) != SampledShape(r.in(1), r.in(2))) {
    return NodeError(r.node, absl::StrCat("dY has shape ", r.in(0).ToString(), ", expected ",
                                          SampledShape(r.in(1), r.in(2)).ToString()));
  }
  Kernel kernel;
  kernel.infallible = true;
  const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [g](const KernelCall& call) {
      const T *dy = call.inputs[0]->data<T>(), *grid = call.inputs[2]->data<T>();
      if (call.outputs[0] != nullptr) AddToPixels(g, dy, grid, call.outputs[0]->data<T>());
      if (call.outputs.size() > 1 && call.outputs[1] != nullptr) {
        SlopesOfPoints(g, dy, call.inputs[1]->data<T>(), grid, call.outputs[1]->data<T>());
      }
      return absl::OkStatus();
    };
  });
  const bool same =
      r.inputs[1].dtype == r.inputs[0].dtype && r.inputs[2].dtype == r.inputs[0].dtype;
  if (!known || !same) return NodeUnimplemented(r.node, "no kernel for these element types");
  return kernel;
}

}  // namespace

void RegisterGridSampleGradKernels(KernelTable& table) {
  const auto shape = [](const KernelRequest& r, int output) { return r.in(1 + output); };
  table.Add("GridSampleGrad",
            {"reference", 1, Adapt(MakeGridSampleGrad, shape), "float, double, float16, bfloat16"},
            kOnwardDomain);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// DeformColumns (X, offset, mask), and DeformColumnsGrad (dcolumns, X, offset, mask) with the
// gradients of X, offset and mask.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/image/deform.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

Shape ColumnsShape(const DeformGeometry& g) { return Shape{g.batch, g.channels, g.taps, g.points}; }

// The geometry of a call whose X is input `x`, followed by offset and mask.
absl::StatusOr<DeformGeometry> GeometryAt(const KernelRequest& r, int x) {
  return DeformGeometryOf(r.node, r.in(x), r.in(x + 1), r.HasInput(x + 2) ? &r.in(x + 2) : nullptr);
}

template <typename T>
const T* DataAt(const KernelCall& call, size_t i) {
  return i < call.inputs.size() && call.inputs[i] != nullptr ? call.inputs[i]->data<T>() : nullptr;
}

absl::StatusOr<Kernel> MakeDeformColumns(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const DeformGeometry g, GeometryAt(r, 0));
  Kernel kernel;
  kernel.infallible = true;
  const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [g](const KernelCall& call) {
      const T *x = DataAt<T>(call, 0), *offset = DataAt<T>(call, 1), *mask = DataAt<T>(call, 2);
      const int64_t places = g.groups * g.taps * g.points;
      for (int64_t image = 0; image < g.batch && g.points > 0; ++image) {
        ReadColumns(g, x + image * g.channels * g.pixels, offset + image * places * g.axes(),
                    mask == nullptr ? nullptr : mask + image * places,
                    call.outputs[0]->data<T>() + image * g.channels * g.taps * g.points);
      }
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "no kernel for this element type");
  return kernel;
}

// All of one image; `mask` and the gradients may be null.
template <typename T>
struct ImageGrads {
  const T *dcolumns, *x, *offset, *mask;
  T *dx, *doffset, *dmask;
};

// A group of channels is one thread's: it alone adds to the gradients of its pixels.
template <typename T>
void AddGroup(const DeformGeometry& g, const ImageGrads<T>& of, int64_t group) {
  DeformedPoints<T> points(g);
  std::vector<T> moments, part(kPointsTogether);
  const int64_t channels = g.channels_of_group();
  for (int64_t tap = 0; tap < g.taps; ++tap) {
    const int64_t place = group * g.taps + tap;
    for (int64_t first = 0; first < g.points; first += kPointsTogether) {
      const int64_t n = std::min(kPointsTogether, g.points - first);
      points.Find(g, of.offset, group, tap, first, n, of.doffset != nullptr);
      const PointTaps<T>& taps = points.taps;
      const T* factor = of.mask == nullptr ? nullptr : of.mask + place * g.points + first;
      moments.assign(taps.taps * n, T{0});
      for (int64_t c = group * channels; c < (group + 1) * channels; ++c) {
        const T* dy = of.dcolumns + (c * g.taps + tap) * g.points + first;
        taps.AddMoments(dy, of.x + c * g.pixels, moments.data());
        if (of.dx == nullptr) continue;
        for (int64_t p = 0; p < n; ++p) part[p] = factor == nullptr ? dy[p] : dy[p] * factor[p];
        taps.Add(part.data(), of.dx + c * g.pixels);
      }
      for (int64_t p = 0; p < n; ++p) {
        const T scale = factor == nullptr ? T{1} : factor[p];
        for (int axis = 0; of.doffset != nullptr && axis < g.axes(); ++axis) {
          of.doffset[(place * g.axes() + axis) * g.points + first + p] =
              scale * taps.Slope(moments.data(), axis, p);
        }
        if (of.dmask == nullptr) continue;
        T sum = 0;
        for (int64_t i = p; i < taps.taps * n; i += n) sum += moments[i] * taps.weight[i];
        of.dmask[place * g.points + first + p] = sum;
      }
    }
  }
}

absl::StatusOr<Kernel> MakeDeformColumnsGrad(const KernelRequest& r) {
  ONWARD_ASSIGN_OR_RETURN(const DeformGeometry g, GeometryAt(r, 1));
  if (r.in(0) != ColumnsShape(g)) {
    return NodeError(r.node, absl::StrCat("dcolumns has shape ", r.in(0).ToString(), ", expected ",
                                          ColumnsShape(g).ToString()));
  }
  Kernel kernel;
  kernel.infallible = true;
  const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [g](const KernelCall& call) {
      const auto output = [&](size_t i, int64_t at) -> T* {
        return i < call.outputs.size() && call.outputs[i] != nullptr
                   ? call.outputs[i]->data<T>() + at
                   : nullptr;
      };
      const T* mask = DataAt<T>(call, 3);
      if (T* dx = output(0, 0)) std::fill_n(dx, call.outputs[0]->elements(), T{0});
      ParallelFor(g.batch * g.groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t image = i / g.groups, places = g.groups * g.taps * g.points;
          const int64_t x = image * g.channels * g.pixels;
          const ImageGrads<T> of = {DataAt<T>(call, 0) + image * g.channels * g.taps * g.points,
                                    DataAt<T>(call, 1) + x,
                                    DataAt<T>(call, 2) + image * places * g.axes(),
                                    mask == nullptr ? nullptr : mask + image * places,
                                    output(0, x),
                                    output(1, image * places * g.axes()),
                                    output(2, image * places)};
          AddGroup(g, of, i % g.groups);
        }
      });
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "no kernel for this element type");
  return kernel;
}

}  // namespace

void RegisterDeformGradKernels(KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  table.Add("DeformColumns",
            {"reference", 1,
             Adapt(MakeDeformColumns,
                   [](const KernelRequest& r, int) { return ColumnsShape(*GeometryAt(r, 0)); }),
             types},
            kOnwardDomain);
  table.Add("DeformColumnsGrad",
            {"reference", 1,
             Adapt(MakeDeformColumnsGrad,
                   [](const KernelRequest& r, int output) { return r.in(1 + output); }),
             types},
            kOnwardDomain);
}

}  // namespace onward

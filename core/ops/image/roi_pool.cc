// SPDX-License-Identifier: Apache-2.0
// MaxRoiPool, and MaxRoiPoolGrad (dY, X, rois) by X. A region [image, x1, y1, x2, y2] is rounded
// to whole pixels, both ends included, and split into bins that share the pixels between them:
//   bin i of n over `length` pixels = [floor(i * length / n), ceil((i + 1) * length / n))
// which is reckoned in integers. A bin beyond the picture gives 0.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/image/image.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kMostBins = 1 << 24;  // along one side of a region
// Beyond all pictures, and small enough to be multiplied by the number of bins.
constexpr double kFar = 1 << 30;

struct RoiGrid {
  int64_t batch = 0, channels = 0, height = 0, width = 0, rois = 0;
  int64_t bins_down = 1, bins_across = 1;
  double scale = 1;

  Shape y() const { return Shape{rois, channels, bins_down, bins_across}; }
};

absl::StatusOr<RoiGrid> RoiGridOf(const Node& node, const Shape& x, const Shape& rois) {
  if (x.rank() != 4 || rois.rank() != 2 || rois[1] != 5) {
    return NodeError(node, absl::StrCat("X of shape ", x.ToString(), ", rois of shape ",
                                        rois.ToString(), ": expected [N, C, H, W], [R, 5]"));
  }
  const std::vector<int64_t> bins = node.Ints("pooled_shape");
  if (bins.size() != 2 || std::min(bins[0], bins[1]) < 1 ||
      std::max(bins[0], bins[1]) > kMostBins) {
    return NodeError(node, "pooled_shape must be two numbers of bins");
  }
  const RoiGrid g{x[0],    x[1],    x[2],    x[3],
                  rois[0], bins[0], bins[1], node.Float("spatial_scale", 1)};
  const absl::StatusOr<int64_t> elements = CheckedElements(g.y().dims());
  if (!elements.ok()) return Annotate(elements.status(), node.Describe());
  return g;
}

// Pixels [begin, end).
struct Span {
  int64_t begin, end;
};

struct RoiSide {
  int64_t start, length;

  Span Bin(int64_t i, int64_t bins, int64_t pixels) const {
    return {std::clamp<int64_t>(start + i * length / bins, 0, pixels),
            std::clamp<int64_t>(start + ((i + 1) * length + bins - 1) / bins, 0, pixels)};
  }
};

struct PooledRegion {
  int64_t image;
  bool known;  // its corners are numbers
  RoiSide down, across;
};

template <typename T>
RoiSide SideOf(T from, T to, T scale) {
  const auto pixel = [&](T at) {
    return static_cast<int64_t>(
        std::clamp(std::round(static_cast<double>(at * scale)), -kFar, kFar));
  };
  const int64_t start = pixel(from);
  return {start, std::max<int64_t>(pixel(to) - start + 1, 1)};
}

template <typename T>
absl::StatusOr<std::vector<PooledRegion>> RegionsOf(const Node& node, const RoiGrid& g,
                                                    const T* rois) {
  std::vector<PooledRegion> regions;
  const T scale = static_cast<T>(g.scale);
  for (int64_t r = 0; r < g.rois; ++r, rois += 5) {
    if (!(rois[0] >= 0 && rois[0] < static_cast<T>(g.batch))) {
      return NodeError(node, absl::StrCat("region ", r, " is of picture ", rois[0], ", but X has ",
                                          g.batch, " pictures"));
    }
    const bool known = !std::isnan(scale * (rois[1] + rois[2] + rois[3] + rois[4]));
    PooledRegion region{static_cast<int64_t>(rois[0]), known, {0, 1}, {0, 1}};
    if (known) {
      region.down = SideOf(rois[2], rois[4], scale);
      region.across = SideOf(rois[1], rois[3], scale);
    }
    regions.push_back(region);
  }
  return regions;
}

// The place of the first largest number of a bin (of the first that is none, if there is one);
// -1 where the bin has no pixels.
template <typename T>
int64_t Largest(const Span& rows, const Span& columns, int64_t width, const T* x) {
  int64_t best = -1;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t at = row * width + columns.begin; at < row * width + columns.end; ++at) {
      if (best < 0 || x[at] > x[best] || (std::isnan(x[at]) && !std::isnan(x[best]))) best = at;
    }
  }
  return best;
}

// Calls visit(bin, place of its largest number) for the bins of a region.
template <typename T, typename Visit>
void ForEachBin(const RoiGrid& g, const PooledRegion& region, const T* plane, Visit visit) {
  int64_t bin = 0;
  for (int64_t i = 0; i < g.bins_down; ++i) {
    const Span rows = region.down.Bin(i, g.bins_down, g.height);
    for (int64_t k = 0; k < g.bins_across; ++k, ++bin) {
      visit(bin, Largest(rows, region.across.Bin(k, g.bins_across, g.width), g.width, plane));
    }
  }
}

template <typename T>
void Pool(const RoiGrid& g, const std::vector<PooledRegion>& regions, const T* x, T* y) {
  const int64_t bins = g.bins_down * g.bins_across, pixels = g.height * g.width;
  ParallelFor(g.rois * g.channels, 1024 / bins + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const PooledRegion& region = regions[i / g.channels];
      T* out = y + i * bins;
      if (!region.known) {
        std::fill_n(out, bins, std::numeric_limits<T>::quiet_NaN());
        continue;
      }
      const T* plane = x + (region.image * g.channels + i % g.channels) * pixels;
      ForEachBin(g, region, plane,
                 [&](int64_t bin, int64_t at) { out[bin] = at < 0 ? T(0) : plane[at]; });
    }
  });
}

// A channel is one thread's, and takes the regions in their order.
template <typename T>
void PoolGrad(const RoiGrid& g, const std::vector<PooledRegion>& regions, const T* dy, const T* x,
              T* dx) {
  const int64_t bins = g.bins_down * g.bins_across, pixels = g.height * g.width;
  std::fill_n(dx, g.batch * g.channels * pixels, T(0));
  ParallelFor(g.channels, 1024 / std::max<int64_t>(bins * g.rois, 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t c = begin; c < end; ++c) {
                  for (int64_t r = 0; r < g.rois; ++r) {
                    if (!regions[r].known) continue;
                    const int64_t plane = (regions[r].image * g.channels + c) * pixels;
                    const T* gradient = dy + (r * g.channels + c) * bins;
                    ForEachBin(g, regions[r], x + plane, [&](int64_t bin, int64_t at) {
                      if (at >= 0) dx[plane + at] += gradient[bin];
                    });
                  }
                }
              });
}

// Both kernels; X and rois begin with input `first`, which dY stands before.
absl::StatusOr<Kernel> MakeRoiPool(const KernelRequest& r, int first) {
  for (int i = 0; i < first + 2; ++i) {
    if (!r.HasInput(i)) return NodeError(r.node, absl::StrCat("needs input ", i));
  }
  ONWARD_ASSIGN_OR_RETURN(const RoiGrid g, RoiGridOf(r.node, r.in(first), r.in(first + 1)));
  if (r.inputs[first + 1].dtype != r.inputs[first].dtype) {
    return NodeError(r.node, "X and rois have different element types");
  }
  if (first == 1 && r.in(0) != g.y()) {
    return NodeError(
        r.node, absl::StrCat("dY has shape ", r.in(0).ToString(), ", expected ", g.y().ToString()));
  }
  Kernel kernel;
  const bool known = DispatchFloat(r.inputs[first].dtype, [&]<typename T>() {
    kernel.run = [g, first, node = r.node](const KernelCall& call) -> absl::Status {
      ONWARD_ASSIGN_OR_RETURN(const std::vector<PooledRegion> regions,
                              RegionsOf(node, g, call.inputs[first + 1]->data<T>()));
      const T* x = call.inputs[first]->data<T>();
      T* out = call.outputs[0]->data<T>();
      if (first == 0) {
        Pool(g, regions, x, out);
      } else {
        PoolGrad(g, regions, call.inputs[0]->data<T>(), x, out);
      }
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "no kernel for this element type");
  return kernel;
}

absl::StatusOr<Kernel> MakeMaxRoiPool(const KernelRequest& r) { return MakeRoiPool(r, 0); }
absl::StatusOr<Kernel> MakeMaxRoiPoolGrad(const KernelRequest& r) { return MakeRoiPool(r, 1); }

}  // namespace

void RegisterRoiPoolKernels(KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  const auto shape = [](const KernelRequest& r, int) {
    return RoiGridOf(r.node, r.in(0), r.in(1))->y();
  };
  table.Add("MaxRoiPool", {"reference", 1, Adapt(MakeMaxRoiPool, shape), types});
  table.Add("MaxRoiPoolGrad", {"reference", 1, Adapt(MakeMaxRoiPoolGrad, LikeInput(1)), types},
            kOnwardDomain);
}

}  // namespace onward

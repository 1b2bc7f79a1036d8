// SPDX-License-Identifier: Apache-2.0
// RoiAlign, and RoiAlignGrad (dY, X, rois, batch_indices) by X. An average over the samples of a
// bin is a product of weights of rows and of columns: each sample reads two of both.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/image/image.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kMostSamples = 1 << 16;  // along one side of a bin
constexpr int64_t kMostBins = 1 << 24;     // along one side of a region

struct RoiGeometry {
  int64_t batch = 0, channels = 0, height = 0, width = 0, rois = 0;
  int64_t bins_down = 1, bins_across = 1, samples = 0;
  double scale = 1, shift = 0;
  bool half_pixel = true, maximum = false;

  Shape y() const { return Shape{rois, channels, bins_down, bins_across}; }
};

absl::StatusOr<RoiGeometry> RoiGeometryOf(const Node& node, const Shape& x, const Shape& rois,
                                          const Shape& indices) {
  if (x.rank() != 4 || rois.rank() != 2 || rois[1] != 4 || indices != Shape{rois[0]}) {
    return NodeError(node,
                     absl::StrCat("X of shape ", x.ToString(), ", rois of shape ", rois.ToString(),
                                  ", batch_indices of shape ", indices.ToString(),
                                  ": expected [N, C, H, W], [R, 4], [R]"));
  }
  RoiGeometry g{.batch = x[0], .channels = x[1], .height = x[2], .width = x[3], .rois = rois[0]};
  g.bins_down = node.Int("output_height", 1);
  g.bins_across = node.Int("output_width", 1);
  g.samples = node.Int("sampling_ratio", 0);
  g.scale = node.Float("spatial_scale", 1);
  const std::string mode = node.String("mode", "avg");
  if (g.bins_down < 1 || g.bins_across < 1 || g.bins_down > kMostBins ||
      g.bins_across > kMostBins || g.samples < 0 || g.samples > kMostSamples ||
      (mode != "avg" && mode != "max")) {
    return NodeError(node, "output_height, output_width, sampling_ratio or mode cannot be used");
  }
  g.maximum = mode == "max";
  g.half_pixel = node.String("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  if (g.half_pixel) g.shift = 0.5;
  const absl::StatusOr<int64_t> elements = CheckedElements(g.y().dims());
  if (!elements.ok()) return Annotate(elements.status(), node.Describe());
  if (g.height * g.width == 0 && *elements > 0) return NodeError(node, "X has no pixels");
  return g;
}

// A sample along one side: the pixels on both of its sides.
template <typename T>
struct SidePair {
  int64_t low, high;
  T low_weight, high_weight;
};

// The samples of one bin along one side that lie within the picture; the others are zeros.
template <typename T>
struct SideBin {
  std::vector<SidePair<T>> inside;
  bool some_outside = false;
  // The same summed up: weights of the pixels from `first` on.
  int64_t first = 0;
  std::vector<T> weights;
};

template <typename T>
struct Side {
  std::vector<SideBin<T>> bins;
  double samples = 0;  // of a bin
};

template <typename T>
Side<T> MakeSide(const RoiGeometry& g, T from, T to, int64_t bins, int64_t pixels) {
  const T scale = static_cast<T>(g.scale), shift = static_cast<T>(g.shift);
  const T start = from * scale - shift;
  T length = to * scale - shift - start;
  if (!g.half_pixel) length = std::max(length, T(1));
  const T bin = length / static_cast<T>(bins);
  Side<T> side;
  side.bins.resize(bins);
  side.samples = g.samples > 0 ? static_cast<double>(g.samples) : std::ceil(bin);
  // A region without size has no samples; one that is no number, one that is none.
  if (std::isnan(length)) side.samples = 1;
  if (!(side.samples >= 1)) return side;
  const double step = static_cast<double>(bin) / side.samples;
  for (int64_t b = 0; b < bins; ++b) {
    SideBin<T>& of = side.bins[b];
    const double base = static_cast<double>(start + static_cast<T>(b) * bin);
    // Only samples in [-1, pixels] count: huge regions have few of them.
    double begin = 0, end = side.samples;
    if (step > 0) {
      begin = std::clamp(std::floor((-1 - base) / step - 1.5), 0.0, side.samples);
      end = std::clamp(std::ceil((static_cast<double>(pixels) - base) / step + 1.5), begin,
                       side.samples);
    }
    of.some_outside = begin > 0 || end < side.samples;
    for (double i = begin; i < end && i < begin + 4.0 * kMostSamples; ++i) {
      T at = start + static_cast<T>(b) * bin +
             (static_cast<T>(i) + T(0.5)) * bin / static_cast<T>(side.samples);
      if (std::isnan(at)) {
        of.inside.push_back({0, 0, at, at});
        continue;
      }
      if (at < -1 || at > static_cast<T>(pixels)) {
        of.some_outside = true;
        continue;
      }
      at = std::max(at, T(0));
      const auto low = std::min(static_cast<int64_t>(at), pixels - 1);
      const int64_t high = std::min(low + 1, pixels - 1);
      const T part = low == pixels - 1 ? T(0) : at - static_cast<T>(low);
      of.inside.push_back({low, high, 1 - part, part});
    }
    if (of.inside.empty()) continue;
    int64_t last = 0;
    of.first = pixels;
    for (const SidePair<T>& p : of.inside) {
      of.first = std::min(of.first, p.low);
      last = std::max(last, p.high);
    }
    of.weights.assign(last - of.first + 1, T(0));
    for (const SidePair<T>& p : of.inside) {
      of.weights[p.low - of.first] += p.low_weight;
      of.weights[p.high - of.first] += p.high_weight;
    }
  }
  return side;
}

template <typename T>
struct Region {
  int64_t image;
  Side<T> down, across;
  T count() const {
    return static_cast<T>(std::max(down.samples, 0.0) * std::max(across.samples, 0.0));
  }
};

template <typename T>
Region<T> MakeRegion(const RoiGeometry& g, const T* roi, int64_t image) {
  return {image, MakeSide(g, roi[1], roi[3], g.bins_down, g.height),
          MakeSide(g, roi[0], roi[2], g.bins_across, g.width)};
}

template <typename T>
T Average(const SideBin<T>& down, const SideBin<T>& across, int64_t width, T count, const T* x) {
  T sum = 0;
  for (size_t i = 0; i < down.weights.size(); ++i) {
    const T* row = x + (down.first + static_cast<int64_t>(i)) * width + across.first;
    T part = 0;
    for (size_t k = 0; k < across.weights.size(); ++k) {
      if (across.weights[k] != 0) part += across.weights[k] * row[k];
    }
    if (down.weights[i] != 0) sum += down.weights[i] * part;
  }
  return sum / std::max(count, T(1));
}

// The largest of all products of a pixel with its weight, which one it is, and that weight.
// Samples outside of the picture are zeros.
template <typename T>
struct Largest {
  T value = 0, weight = 0;
  int64_t pixel = -1;
};

template <typename T>
Largest<T> FindLargest(const SideBin<T>& down, const SideBin<T>& across, int64_t width,
                       const T* x) {
  Largest<T> best;
  bool any = down.some_outside || across.some_outside;
  const auto meet = [&](int64_t row, int64_t column, T weight) {
    const T value = weight == 0 ? T(0) : weight * x[row * width + column];
    if (any && !(value > best.value) && !std::isnan(value)) return;
    if (any && std::isnan(best.value)) return;
    any = true;
    best = {value, weight, row * width + column};
  };
  for (const SidePair<T>& v : down.inside) {
    for (const SidePair<T>& h : across.inside) {
      meet(v.low, h.low, v.low_weight * h.low_weight);
      meet(v.low, h.high, v.low_weight * h.high_weight);
      meet(v.high, h.low, v.high_weight * h.low_weight);
      meet(v.high, h.high, v.high_weight * h.high_weight);
    }
  }
  return best;
}

template <typename T>
void Align(const RoiGeometry& g, const Region<T>& region, const T* x, T* y) {
  const T count = region.count();
  for (int64_t c = 0; c < g.channels; ++c) {
    const T* plane = x + (region.image * g.channels + c) * g.height * g.width;
    for (const SideBin<T>& down : region.down.bins) {
      for (const SideBin<T>& across : region.across.bins) {
        *y++ = g.maximum ? FindLargest(down, across, g.width, plane).value
                         : Average(down, across, g.width, count, plane);
      }
    }
  }
}

// One channel of one region. x is read for the largest alone.
template <typename T>
void AlignGrad(const RoiGeometry& g, const Region<T>& region, const T* dy, const T* x, T* dx) {
  const T count = std::max(region.count(), T(1));
  for (const SideBin<T>& down : region.down.bins) {
    for (const SideBin<T>& across : region.across.bins) {
      const T gradient = *dy++;
      if (g.maximum) {
        const Largest<T> best = FindLargest(down, across, g.width, x);
        if (best.pixel >= 0) dx[best.pixel] += gradient * best.weight;
        continue;
      }
      for (size_t i = 0; i < down.weights.size(); ++i) {
        const T part = gradient / count * down.weights[i];
        T* row = dx + (down.first + static_cast<int64_t>(i)) * g.width + across.first;
        for (size_t k = 0; k < across.weights.size(); ++k) row[k] += part * across.weights[k];
      }
    }
  }
}

// The pictures that the regions lie in.
absl::StatusOr<std::vector<int64_t>> Images(const Node& node, const RoiGeometry& g,
                                            const Tensor& indices) {
  ONWARD_ASSIGN_OR_RETURN(std::vector<int64_t> images, ToInts(indices));
  for (int64_t i : images) {
    if (i < 0 || i >= g.batch) {
      return NodeError(
          node, absl::StrCat("batch_indices holds ", i, ", but X has ", g.batch, " pictures"));
    }
  }
  return images;
}

// Both kernels; X, rois and batch_indices begin with input `first`.
template <typename Body>
absl::StatusOr<Kernel> MakeAlign(const KernelRequest& r, int first, Body body) {
  ONWARD_ASSIGN_OR_RETURN(const RoiGeometry g,
                          RoiGeometryOf(r.node, r.in(first), r.in(first + 1), r.in(first + 2)));
  if (r.inputs[first + 1].dtype != r.inputs[first].dtype) {
    return NodeError(r.node, "X and rois have different element types");
  }
  if (first == 1 && r.in(0) != g.y()) {
    return NodeError(
        r.node, absl::StrCat("dY has shape ", r.in(0).ToString(), ", expected ", g.y().ToString()));
  }
  Kernel kernel;
  const bool known = DispatchFloat(r.inputs[first].dtype, [&]<typename T>() {
    kernel.run = [g, body, first, node = r.node](const KernelCall& call) -> absl::Status {
      ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                              Images(node, g, *call.inputs[first + 2]));
      body.template operator()<T>(g, images, call);
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "no kernel for this element type");
  return kernel;
}

absl::StatusOr<Kernel> MakeRoiAlign(const KernelRequest& r) {
  for (int i = 0; i < 3; ++i) {
    if (!r.HasInput(i)) return NodeError(r.node, absl::StrCat("needs input ", i));
  }
  return MakeAlign(r, 0,
                   []<typename T>(const RoiGeometry& g, const std::vector<int64_t>& images,
                                  const KernelCall& call) {
                     const T *x = call.inputs[0]->data<T>(), *rois = call.inputs[1]->data<T>();
                     const int64_t size = g.channels * g.bins_down * g.bins_across;
                     ParallelFor(g.rois, 1024 / std::max<int64_t>(size, 1) + 1,
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t i = begin; i < end; ++i) {
                                     Align(g, MakeRegion(g, rois + 4 * i, images[i]), x,
                                           call.outputs[0]->data<T>() + i * size);
                                   }
                                 });
                   });
}

// A channel is one thread's, and takes the regions in their order.
absl::StatusOr<Kernel> MakeRoiAlignGrad(const KernelRequest& r) {
  return MakeAlign(r, 1,
                   []<typename T>(const RoiGeometry& g, const std::vector<int64_t>& images,
                                  const KernelCall& call) {
                     const T *dy = call.inputs[0]->data<T>(), *x = call.inputs[1]->data<T>();
                     const T* rois = call.inputs[2]->data<T>();
                     T* dx = call.outputs[0]->data<T>();
                     std::fill_n(dx, call.outputs[0]->elements(), T(0));
                     const int64_t size = g.bins_down * g.bins_across, pixels = g.height * g.width;
                     for (int64_t i = 0; i < g.rois; ++i) {
                       const Region<T> region = MakeRegion(g, rois + 4 * i, images[i]);
                       ParallelFor(g.channels, 1024 / size + 1, [&](int64_t begin, int64_t end) {
                         for (int64_t c = begin; c < end; ++c) {
                           const int64_t plane = (images[i] * g.channels + c) * pixels;
                           AlignGrad(g, region, dy + (i * g.channels + c) * size, x + plane,
                                     dx + plane);
                         }
                       });
                     }
                   });
}

}  // namespace

void RegisterRoiKernels(KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  const auto shape = [](const KernelRequest& r, int) {
    return RoiGeometryOf(r.node, r.in(0), r.in(1), r.in(2))->y();
  };
  table.Add("RoiAlign", {"reference", 16, Adapt(MakeRoiAlign, shape), types});
  table.Add("RoiAlignGrad", {"reference", 1, Adapt(MakeRoiAlignGrad, LikeInput(1)), types},
            kOnwardDomain);
}

}  // namespace onward

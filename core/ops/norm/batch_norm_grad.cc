// SPDX-License-Identifier: Apache-2.0
// BatchNormalizationGrad, of BatchNormalization in training mode. With n the
// pixels per channel, xh = (x - mean) * s and s = 1 / sqrt(var + epsilon):
//   dB = sum(dy);  dscale = sum(dy * xh)
//   dx = scale * s * (dy - dB / n - xh * dscale / n)
// One pass over x and dy gives mean, var and both sums, a second one dx.
//
// FusedBatchNormalizationGrad is that of a normalisation with an activation: dy
// counts where the activation's input, worked out again from x, lay within bounds.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/device/plan/followers.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/channel_view.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/norm/norm.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kChunk = 256;  // vectors of x and of dy that stay in the first-level cache

// What of dy passes the activation.
struct NoActivation {
  template <typename T, WalkForm kForm>
  auto For(const ChannelView&, const ChannelGroup&) const {
    return [](Vec<T>, Vec<T> dy) { return dy; };
  }
};

struct WithinBounds {
  double low, high;   // inclusive
  const void* table;  // of T: means, factors, shifts of the forward pass

  template <typename T, WalkForm kForm>
  auto For(const ChannelView& v, const ChannelGroup& group) const {
    const T* rows = static_cast<const T*>(table);
    const auto row = [&](int i) { return PerChannel<T, kForm>(group, rows + i * v.channels); };
    return [affine = ChannelAffine<T>{row(0), row(1), row(2)}, from = Splat(static_cast<T>(low)),
            to = Splat(static_cast<T>(high))](Vec<T> x, Vec<T> dy) {
      const Vec<T> n = affine(x);
      return (n >= from) & (n <= to) ? dy : Vec<T>{};
    };
  }
};

template <typename T, WalkForm kForm, typename Activation>
Moments ChunkMoments(const ChannelView& v, const ChannelGroup& group, int64_t from, int64_t to,
                     const Activation& activation, const T* x, const T* dy) {
  const auto gate = activation.template For<T, kForm>(v, group);
  constexpr bool kPlanes = kForm == WalkForm::kPlanes;
  const T n = static_cast<T>(to - from);
  Vec<T> sum[4] = {};
  Walk<T, kForm>(v, group, from, to,
                 [&](int64_t at, int count, auto u) { sum[u] += Load(x + at, count); });
  Vec<T> mean = ((sum[0] + sum[1]) + (sum[2] + sum[3])) / n;
  if constexpr (kPlanes) mean = Splat(HorizontalSum<T>(mean));
  Vec<T> squares[2] = {}, rest[2] = {}, grad[2] = {}, product[2] = {};
  Walk<T, kForm>(v, group, from, to, [&](int64_t at, int count, auto u) {
    const Vec<T> value = Load(x + at, count);
    const Vec<T> d = Keep<T>(value - mean, count);
    const Vec<T> g = gate(value, Load(dy + at, count));
    squares[u % 2] += d * d;
    rest[u % 2] += d;
    grad[u % 2] += g;
    product[u % 2] += g * d;
  });
  Moments m;
  m.count = static_cast<double>(to - from);
  auto total = [](const Vec<T>* parts, int i) -> double {
    const Vec<T> all = parts[0] + parts[1];
    return kPlanes ? HorizontalSum<T>(all) : all[i];
  };
  for (int i = 0; i < group.lanes; ++i) {
    // What the deviations from the rounded mean add up to corrects it.
    const double off = total(rest, i) / m.count;
    m.mean[i] = mean[i] + off;
    m.m2[i] = NanMax(0.0, total(squares, i) - m.count * off * off);
    m.dy[i] = total(grad, i);
    m.dyx[i] = total(product, i) - off * m.dy[i];
  }
  return m;
}

template <typename T, typename Activation>
Moments MomentsOf(const ChannelView& v, const ChannelGroup& group, int64_t from, int64_t to,
                  const Activation& activation, const T* x, const T* dy) {
  const int64_t chunk = kChunk * (v.planes ? kLanes<T> : 1);
  Moments all;
  for (; from < to; from += chunk) {
    const int64_t end = std::min(from + chunk, to);
    WithForm<T>(v, group, [&]<WalkForm kForm>() {
      all.Merge(ChunkMoments<T, kForm>(v, group, from, end, activation, x, dy));
    });
  }
  return all;
}

// Per-channel numbers, in the workspace: dx = by_dy*dy + by_x*(x - mean) + shift.
struct ChannelNumbers {
  double *scale, *mean, *by_dy, *by_x, *shift, *dscale, *dbias;
};

template <typename T, typename Activation>
void InputGrad(const ChannelView& v, const ChannelGroup& group, int64_t from, int64_t to,
               const ChannelNumbers& numbers, const Activation& activation, const T* x, const T* dy,
               T* dx) {
  WithForm<T>(v, group, [&]<WalkForm kForm>() {
    const auto gate = activation.template For<T, kForm>(v, group);
    const Vec<T> mean = PerChannel<T, kForm>(group, numbers.mean);
    const Vec<T> by_dy = PerChannel<T, kForm>(group, numbers.by_dy);
    const Vec<T> by_x = PerChannel<T, kForm>(group, numbers.by_x);
    const Vec<T> shift = PerChannel<T, kForm>(group, numbers.shift);
    Walk<T, kForm>(v, group, from, to, [&](int64_t at, int count, auto) {
      const Vec<T> value = Load(x + at, count);
      const Vec<T> g = gate(value, Load(dy + at, count));
      Store<T>(dx + at, by_dy * g + (by_x * (value - mean) + shift), count);
    });
  });
}

struct BatchNormGradState {
  ChannelView view;
  ChannelSplit split;
  double epsilon;
  size_t numbers_at[7];
  size_t moments_at;

  // Inputs dY, X, scale; outputs dX, dscale, dB.
  template <typename T, typename Activation>
  void Run(const KernelCall& call, const Activation& activation) const {
    ChannelNumbers numbers;
    double** slots[] = {&numbers.scale, &numbers.mean,   &numbers.by_dy, &numbers.by_x,
                        &numbers.shift, &numbers.dscale, &numbers.dbias};
    for (int i = 0; i < 7; ++i) *slots[i] = At<double>(call.workspace, numbers_at[i]);
    ReadDoubles(*call.inputs[2], numbers.scale);
    const T* dy = call.inputs[0]->data<T>();
    const T* x = call.inputs[1]->data<T>();
    T* dx = call.outputs[0] == nullptr ? nullptr : call.outputs[0]->data<T>();
    auto measure = [&](int64_t g, int64_t from, int64_t to) {
      return MomentsOf<T>(view, GroupAt<T>(view, g), from, to, activation, x, dy);
    };
    auto finish = [&](int64_t g, const Moments& m) {
      const ChannelGroup group = GroupAt<T>(view, g);
      for (int i = 0; i < group.lanes; ++i) {
        const int64_t c = group.first + i;
        const double s = 1 / std::sqrt(m.m2[i] / m.count + epsilon);
        numbers.mean[c] = m.mean[i];
        numbers.dbias[c] = m.dy[i];
        numbers.dscale[c] = m.count > 0 ? m.dyx[i] * s : 0;
        numbers.by_dy[c] = numbers.scale[c] * s;
        numbers.by_x[c] = -numbers.by_dy[c] * s * numbers.dscale[c] / m.count;
        // The second term makes up for the rounding of the mean to T.
        numbers.shift[c] = -numbers.by_dy[c] * numbers.dbias[c] / m.count +
                           numbers.by_x[c] * (static_cast<T>(m.mean[i]) - m.mean[i]);
      }
    };
    auto apply = [&](int64_t g, int64_t from, int64_t to) {
      if (dx == nullptr) return;
      InputGrad<T>(view, GroupAt<T>(view, g), from, to, numbers, activation, x, dy, dx);
    };
    MeasureAndApply(split, view.pixels(), At<Moments>(call.workspace, moments_at), measure, finish,
                    apply);
    const double* sums[] = {numbers.dscale, numbers.dbias};
    for (int i = 1; i < static_cast<int>(call.outputs.size()) && i <= 2; ++i) {
      if (call.outputs[i] != nullptr) WriteDoubles(sums[i - 1], *call.outputs[i]);
    }
  }
};

// dY and X are wanted in one layout: that of X, else that of dY, else plain.
Layout ChooseLayout(const KernelRequest& r) {
  for (int i : {1, 0}) {
    const Layout& layout = r.inputs[i].layout;
    if (layout != nullptr && ChannelViewOf(r.in(1), layout).has_value()) return layout;
  }
  return nullptr;
}

absl::StatusOr<Kernel> MakeBatchNormGrad(const KernelRequest& r) {
  if (!r.HasInput(0) || !r.HasInput(1) || !r.HasInput(2)) {
    return NodeError(r.node, "dY, X and scale are required");
  }
  const Shape& shape = r.in(1);
  if (r.in(0) != shape || shape.rank() == 0 || r.inputs[0].dtype != r.inputs[1].dtype) {
    return NodeError(r.node,
                     absl::StrCat("dY has shape ", r.in(0).ToString(), ", X ", shape.ToString()));
  }
  const int64_t channels = shape.rank() == 1 ? 1 : shape[1];
  if (r.in(2) != Shape{channels}) {
    return NodeError(r.node, absl::StrCat("scale has shape ", r.in(2).ToString(),
                                          ", expected one number per channel (", channels, ")"));
  }
  const bool fused = r.node.op_type == "FusedBatchNormalizationGrad";
  const auto bounds = fused ? ReadActivation(r.node) : std::nullopt;
  if (bounds.has_value() &&
      (!r.HasInput(3) || r.in(3) != Shape{3, channels} || r.inputs[3].dtype != r.inputs[1].dtype)) {
    return NodeError(r.node, "the fourth input is the table of the forward pass");
  }
  auto state = std::make_shared<BatchNormGradState>();
  state->epsilon = r.node.Float("epsilon", 1e-5f);
  Kernel kernel;
  kernel.infallible = true;
  kernel.in_place = {{0, 0}, {0, 1}};
  const Layout layout = ChooseLayout(r);
  kernel.input_layouts = {layout, layout};
  kernel.output_layouts = {layout};
  state->view = *ChannelViewOf(shape, layout);
  WorkspacePlan plan;
  for (size_t& at : state->numbers_at) at = plan.Add(channels * sizeof(double));
  const bool known = DispatchFloat(r.inputs[1].dtype, [&]<typename T>() {
    state->split = SplitOf<T>(state->view);
    kernel.run = [state, bounds](const KernelCall& call) {
      if (!bounds.has_value()) {
        state->Run<T>(call, NoActivation());
      } else {
        // Relu lets through what is above zero: no less than the smallest number.
        const double low = bounds->is_relu ? std::numeric_limits<T>::denorm_min() : bounds->low;
        state->Run<T>(call, WithinBounds{low, bounds->high, call.inputs[3]->raw()});
      }
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "takes floating-point tensors");
  state->moments_at = plan.Add(state->split.moments_bytes());
  kernel.workspace_bytes = plan.bytes();
  return kernel;
}

}  // namespace

void RegisterBatchNormGradKernels(KernelTable& table) {
  auto shape = [](const KernelRequest& r, int output) { return r.in(output == 0 ? 1 : 2); };
  table.Add("BatchNormalizationGrad",
            Adapted("reference", 1, MakeBatchNormGrad, shape, "float, double, float16, bfloat16"),
            kOnwardDomain);
  table.Add("FusedBatchNormalizationGrad", {"reference", 1, MakeBatchNormGrad, "float, double"},
            kOnwardDomain);
}

}  // namespace onward

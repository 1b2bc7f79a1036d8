// SPDX-License-Identifier: Apache-2.0
// BatchNormalization: Y = (X - mean) / sqrt(var + epsilon) * scale + B.
// Training mode takes mean and population variance from X, over all axes but 1,
// and gives running = input * momentum + current * (1 - momentum).
//
// FusedBatchNormalization adds a residual to the result and bounds it by an
// activation. Its last output holds, per channel, the mean, factor and shift that
// were used: with them the gradient knows the activation's input again.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/device/plan/followers.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/channel_view.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/norm/norm.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kChunk = 256;  // vectors that stay in the first-level cache

// Mean and squared deviations of one chunk. What the deviations from the
// rounded mean add up to corrects it.
template <typename T, WalkForm kForm>
Moments ChunkMoments(const ChannelView& v, const ChannelGroup& group, int64_t from, int64_t to,
                     const T* x) {
  constexpr bool kPlanes = kForm == WalkForm::kPlanes;
  const T n = static_cast<T>(to - from);
  Vec<T> sum[4] = {}, squares[4] = {}, rest[4] = {};
  Walk<T, kForm>(v, group, from, to,
                 [&](int64_t at, int count, auto u) { sum[u] += Load(x + at, count); });
  Vec<T> mean = ((sum[0] + sum[1]) + (sum[2] + sum[3])) / n;
  if constexpr (kPlanes) mean = Splat(HorizontalSum<T>(mean));
  Walk<T, kForm>(v, group, from, to, [&](int64_t at, int count, auto u) {
    const Vec<T> d = Keep<T>(Load(x + at, count) - mean, count);
    squares[u] += d * d;
    rest[u] += d;
  });
  auto total = [](const Vec<T>* parts, int i) -> double {
    const Vec<T> all = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    return kPlanes ? HorizontalSum<T>(all) : all[i];
  };
  Moments m;
  m.count = static_cast<double>(to - from);
  for (int i = 0; i < group.lanes; ++i) {
    const double off = total(rest, i) / m.count;
    m.mean[i] = mean[i] + off;
    m.m2[i] = NanMax(0.0, total(squares, i) - m.count * off * off);
  }
  return m;
}

template <typename T>
Moments MomentsOf(const ChannelView& v, const ChannelGroup& group, int64_t from, int64_t to,
                  const T* x) {
  const int64_t chunk = kChunk * (v.planes ? kLanes<T> : 1);
  Moments all;
  for (; from < to; from += chunk) {
    const int64_t end = std::min(from + chunk, to);
    WithForm<T>(v, group, [&]<WalkForm kForm>() {
      all.Merge(ChunkMoments<T, kForm>(v, group, from, end, x));
    });
  }
  return all;
}

// Per-channel numbers, in the workspace: y = (x - mean) * factor + shift, where
// mean will be rounded to T and shift makes up for it.
struct ChannelNumbers {
  double *mean, *var, *scale, *bias, *factor, *shift;
};

template <typename T, WalkForm kForm>
ChannelAffine<T> AffineOf(const ChannelGroup& group, const ChannelNumbers& numbers) {
  return {PerChannel<T, kForm>(group, numbers.mean), PerChannel<T, kForm>(group, numbers.factor),
          PerChannel<T, kForm>(group, numbers.shift)};
}

template <typename T>
void Normalize(const ChannelView& v, const ChannelGroup& group, int64_t from, int64_t to,
               const ChannelNumbers& numbers, const T* x, T* y) {
  WithForm<T>(v, group, [&]<WalkForm kForm>() {
    const ChannelAffine<T> affine = AffineOf<T, kForm>(group, numbers);
    Walk<T, kForm>(v, group, from, to, [&](int64_t at, int count, auto) {
      Store<T>(y + at, affine(Load(x + at, count)), count);
    });
  });
}

// The same with what follows: z is null or the residual.
template <typename T>
void NormalizeAndBound(const ChannelView& v, const ChannelGroup& group, int64_t from, int64_t to,
                       const ChannelNumbers& numbers, const ActivationBounds& bounds, const T* x,
                       const T* z, T* y) {
  WithForm<T>(v, group, [&]<WalkForm kForm>() {
    const ChannelAffine<T> affine = AffineOf<T, kForm>(group, numbers);
    // Lanes without a channel stay zero.
    const Vec<T> low = OverChannels<T, kForm>(group, bounds.low);
    const Vec<T> high = OverChannels<T, kForm>(group, bounds.high);
    const auto bound = [&](Vec<T> n) {  // NaN stays
      n = low > n ? low : n;
      return n > high ? high : n;
    };
    if (z == nullptr) {
      Walk<T, kForm>(v, group, from, to, [&](int64_t at, int count, auto) {
        Store<T>(y + at, bound(affine(Load(x + at, count))), count);
      });
    } else {
      Walk<T, kForm>(v, group, from, to, [&](int64_t at, int count, auto) {
        Store<T>(y + at, bound(affine(Load(x + at, count)) + Load(z + at, count)), count);
      });
    }
  });
}

struct BatchNormState {
  static constexpr int kZ = 5, kTable = 3;  // input and output of the fused form

  ChannelView view;
  ChannelSplit split;
  bool training;
  std::optional<ActivationBounds> bounds;  // set where anything follows
  double epsilon, momentum;
  size_t numbers_at[6];
  size_t moments_at;

  template <typename T>
  void Run(const KernelCall& call) const {
    ChannelNumbers numbers;
    double** slots[] = {&numbers.mean, &numbers.var,    &numbers.scale,
                        &numbers.bias, &numbers.factor, &numbers.shift};
    for (int i = 0; i < 6; ++i) *slots[i] = At<double>(call.workspace, numbers_at[i]);
    ReadDoubles(*call.inputs[1], numbers.scale);
    ReadDoubles(*call.inputs[2], numbers.bias);
    const T* x = call.inputs[0]->data<T>();
    T* y = call.outputs[0] == nullptr ? nullptr : call.outputs[0]->data<T>();
    auto set_factor = [&](int64_t c) {
      const double rounded = static_cast<T>(numbers.mean[c]);
      numbers.factor[c] = numbers.scale[c] / std::sqrt(numbers.var[c] + epsilon);
      numbers.shift[c] = numbers.bias[c] + (rounded - numbers.mean[c]) * numbers.factor[c];
    };
    const T* z = kZ < call.inputs.size() && call.inputs[kZ] != nullptr ? call.inputs[kZ]->data<T>()
                                                                       : nullptr;
    auto apply = [&](int64_t g, int64_t from, int64_t to) {
      if (y == nullptr) return;
      const ChannelGroup group = GroupAt<T>(view, g);
      if (bounds.has_value()) {
        NormalizeAndBound<T>(view, group, from, to, numbers, *bounds, x, z, y);
      } else {
        Normalize<T>(view, group, from, to, numbers, x, y);
      }
    };
    if (!training) {
      ReadDoubles(*call.inputs[3], numbers.mean);
      ReadDoubles(*call.inputs[4], numbers.var);
      for (int64_t c = 0; c < view.channels; ++c) set_factor(c);
      const int64_t grain = 16384 / std::max<int64_t>(view.channels, 1) + 1;
      ParallelFor(view.pixels(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t g = 0; g < split.groups; ++g) apply(g, begin, end);
      });
      return;
    }
    auto measure = [&](int64_t g, int64_t from, int64_t to) {
      return MomentsOf<T>(view, GroupAt<T>(view, g), from, to, x);
    };
    auto finish = [&](int64_t g, const Moments& m) {
      const ChannelGroup group = GroupAt<T>(view, g);
      for (int i = 0; i < group.lanes; ++i) {
        const int64_t c = group.first + i;
        numbers.mean[c] = m.count > 0 ? m.mean[i] : NAN;
        numbers.var[c] = m.m2[i] / m.count;
        set_factor(c);
      }
    };
    MeasureAndApply(split, view.pixels(), At<Moments>(call.workspace, moments_at), measure, finish,
                    apply);
    WriteRunning(call, 1, numbers.mean);
    WriteRunning(call, 2, numbers.var);
    if (kTable < call.outputs.size() && call.outputs[kTable] != nullptr) {
      T* table = call.outputs[kTable]->data<T>();
      for (const double* row : {numbers.mean, numbers.factor, numbers.shift}) {
        table = std::transform(row, row + view.channels, table,
                               [](double value) { return static_cast<T>(value); });
      }
    }
  }

  // Running statistics i (1 mean, 2 variance): input 2 + i, output i.
  void WriteRunning(const KernelCall& call, int i, const double* current) const {
    Tensor* out = i < static_cast<int>(call.outputs.size()) ? call.outputs[i] : nullptr;
    if (out == nullptr) return;
    DispatchFloat(out->dtype(), [&]<typename T>() {
      const T* before = call.inputs[2 + i]->data<T>();
      T* after = out->data<T>();
      for (int64_t c = 0; c < view.channels; ++c) {
        after[c] = static_cast<T>(before[c] * momentum + current[c] * (1 - momentum));
      }
    });
  }
};

absl::Status CheckInputs(const KernelRequest& r, int64_t channels) {
  for (int i = 1; i <= 4; ++i) {
    if (!r.HasInput(i)) return NodeError(r.node, absl::StrCat("input ", i, " is missing"));
    if (r.in(i) != Shape{channels}) {
      return NodeError(r.node, absl::StrCat("input ", i, " has shape ", r.in(i).ToString(),
                                            ", expected one number per channel (", channels, ")"));
    }
    if (r.inputs[i].dtype != DType::kFloat && r.inputs[i].dtype != DType::kDouble) {
      return NodeUnimplemented(r.node, "takes floating-point tensors");
    }
  }
  for (int i = 1; i <= 2; ++i) {
    if (r.HasOutput(i) && r.outputs[i].dtype != r.inputs[2 + i].dtype) {
      return NodeError(r.node, "running statistics must have the type of input_mean and input_var");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeBatchNorm(const KernelRequest& r) {
  if (!r.HasInput(0) || r.in(0).rank() == 0) return NodeError(r.node, "X needs at least one axis");
  const int64_t channels = r.in(0).rank() == 1 ? 1 : r.in(0)[1];
  ONWARD_RETURN_IF_ERROR(CheckInputs(r, channels));
  auto state = std::make_shared<BatchNormState>();
  state->training = r.node.Int("training_mode", 0) != 0;
  if (!state->training && (r.HasOutput(1) || r.HasOutput(2) || r.HasOutput(3))) {
    return NodeError(r.node, "running statistics are outputs of training_mode=1 only");
  }
  state->epsilon = r.node.Float("epsilon", 1e-5f);
  state->momentum = r.node.Float("momentum", 0.9f);
  Kernel kernel;
  kernel.infallible = true;
  kernel.in_place = {{0, 0}};
  auto view = ChannelViewOf(r.in(0), r.inputs[0].layout);
  if (view.has_value()) {
    kernel.input_layouts = kernel.output_layouts = {r.inputs[0].layout};
  } else {
    view = ChannelViewOf(r.in(0), nullptr);
  }
  state->view = *view;
  if (r.node.op_type == "FusedBatchNormalization") {
    state->bounds = ReadActivation(r.node).value_or(ActivationBounds::None());
    if (r.HasInput(BatchNormState::kZ)) {
      if (r.in(BatchNormState::kZ) != r.in(0)) return NodeError(r.node, "Z needs the shape of X");
      kernel.input_layouts.resize(BatchNormState::kZ + 1);
      kernel.input_layouts[BatchNormState::kZ] = kernel.input_layouts[0];
      kernel.in_place.push_back({0, BatchNormState::kZ});
    }
  }
  WorkspacePlan plan;
  for (size_t& at : state->numbers_at) at = plan.Add(channels * sizeof(double));
  const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
    state->split = SplitOf<T>(*view);
    kernel.run = [state](const KernelCall& call) {
      state->Run<T>(call);
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "takes floating-point tensors");
  state->moments_at = plan.Add(state->split.moments_bytes());
  kernel.workspace_bytes = plan.bytes();
  return kernel;
}

}  // namespace

void RegisterBatchNormKernels(KernelTable& table) {
  auto shape = [](const KernelRequest& r, int output) {
    return output == 0 ? r.in(0) : r.in(2 + output);
  };
  table.Add("BatchNormalization",
            Adapted("reference", 14, MakeBatchNorm, shape, "float, double, float16, bfloat16"));
  table.Add("FusedBatchNormalization", {"reference", 1, MakeBatchNorm, "float, double"},
            kOnwardDomain);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// InstanceNormalization, GroupNormalization, LpNormalization and LRN.
#include "core/ops/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/axis_view.h"
#include "core/ops/cpu/register.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kGrain = 8192;  // elements
constexpr const char* kTypes = "float, double, float16, bfloat16";

// A kernel that calls run.operator()<T>(call) for X's type.
template <typename Run>
absl::StatusOr<Kernel> FloatKernelOf(const KernelRequest& r, Run run) {
  Kernel kernel;
  kernel.infallible = true;
  kernel.in_place = {{0, 0}};
  const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
    kernel.run = [run](const KernelCall& call) {
      run.template operator()<T>(call);
      return absl::OkStatus();
    };
  });
  if (!known) return NodeUnimplemented(r.node, "takes floating-point tensors");
  return kernel;
}

// Groups of channels within each instance: y = (x - mean) / sqrt(variance +
// epsilon) * scale[c] + bias[c]. Instance normalisation has a group per channel.
struct GroupShape {
  int64_t instances, groups, group_channels, plane;
  double epsilon;
};

template <typename T>
void GroupNorm(const GroupShape& s, const T* x, const T* scale, const T* bias, T* y) {
  const int64_t length = s.group_channels * s.plane;
  ParallelFor(s.instances * s.groups, kGrain / std::max<int64_t>(length, 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const RowMoments<T> m = MomentsOfRow(x + row * length, length, s.epsilon);
                  for (int64_t k = 0; k < s.group_channels; ++k) {
                    const int64_t c = row % s.groups * s.group_channels + k;
                    const int64_t at = row * length + k * s.plane;
                    const T factor = scale[c] * m.inverse_deviation;
                    const T shift = bias[c] - m.rest * factor;
                    ForVecs<T>(s.plane, [&](int64_t i, int n) {
                      Store<T>(y + at + i, (Load(x + at + i, n) - m.mean) * factor + shift, n);
                    });
                  }
                }
              });
}

absl::StatusOr<Kernel> MakeGroupNorm(const KernelRequest& r, bool instance) {
  if (!r.HasInput(0) || !r.HasInput(1) || !r.HasInput(2)) {
    return NodeError(r.node, "needs a tensor, a scale and a bias");
  }
  const Shape& x = r.in(0);
  if (x.rank() < 2) {
    return NodeError(r.node,
                     absl::StrCat("needs a batch and a channel axis, got shape ", x.ToString()));
  }
  const int64_t channels = x[1], groups = instance ? channels : r.node.Int("num_groups", 0);
  if (!instance && (groups < 1 || channels % groups != 0)) {
    return NodeError(
        r.node, absl::StrCat("num_groups ", groups, " does not divide ", channels, " channels"));
  }
  for (int i = 1; i <= 2; ++i) {
    if (r.in(i) != Shape{channels} || r.inputs[i].dtype != r.inputs[0].dtype) {
      return NodeError(r.node, absl::StrCat("input ", i, " has shape ", r.in(i).ToString(),
                                            ", expected one number per channel (", channels,
                                            ") in the type of the tensor"));
    }
  }
  const GroupShape shape{x[0], groups, groups == 0 ? 0 : channels / groups, x.elements(2, x.rank()),
                         r.node.Float("epsilon", 1e-5f)};
  return FloatKernelOf(r, [shape]<typename T>(const KernelCall& c) {
    GroupNorm<T>(shape, c.inputs[0]->data<T>(), c.inputs[1]->data<T>(), c.inputs[2]->data<T>(),
                 c.outputs[0]->data<T>());
  });
}

// y = x / norm along an axis, zero where the norm is zero.
template <typename T>
void LpNormRow(int p, const T* x, T* y, int64_t n) {
  const auto [sum] = Sums<T, 1>(n, [&](int64_t i, int c, Vec<T>* term) {
    const Vec<T> v = Load(x + i, c);
    term[0] = p == 1 ? Abs(v) : v * v;
  });
  const T norm = p == 1 ? sum : std::sqrt(sum);
  ForVecs<T>(n, [&](int64_t i, int c) {
    Store<T>(y + i, norm == 0 ? Vec<T>{} : Load(x + i, c) / norm, c);
  });
}

template <typename T>
void LpNormColumns(int p, const T* x, T* y, int64_t n, int64_t stride, int count) {
  Vec<T> norm = {};
  for (int64_t i = 0; i < n; ++i) {
    const Vec<T> v = Load(x + i * stride, count);
    norm += p == 1 ? Abs(v) : v * v;
  }
  if (p == 2) norm = Sqrt(norm);
  for (int64_t i = 0; i < n; ++i) {
    const Vec<T> quotient = Load(x + i * stride, count) / norm;
    Store<T>(y + i * stride, norm == 0 ? Vec<T>{} : quotient, count);
  }
}

absl::StatusOr<Kernel> MakeLpNorm(const KernelRequest& r) {
  if (!r.HasInput(0)) return NodeError(r.node, "input 0 is missing");
  const Shape& x = r.in(0);
  auto axis = NormalizeAxis(r.node.Int("axis", -1), x.rank());
  if (!axis.ok()) return Annotate(axis.status(), r.node.Describe());
  const int64_t p = r.node.Int("p", 2);
  if (p != 1 && p != 2) return NodeError(r.node, absl::StrCat("p = ", p, " is not 1 or 2"));
  const AxisView view(x, *axis);
  return FloatKernelOf(r, [view, p = static_cast<int>(p)]<typename T>(const KernelCall& call) {
    const T* from = call.inputs[0]->data<T>();
    T* to = call.outputs[0]->data<T>();
    if (view.inner == 1) {
      ForRows(view,
              [&](int64_t o) { LpNormRow<T>(p, from + o * view.n, to + o * view.n, view.n); });
      return;
    }
    ForColumns<T>(view, [&](int64_t o, int64_t column, int count) {
      const int64_t at = view.Offset(o, column);
      LpNormColumns<T>(p, from + at, to + at, view.n, view.inner, count);
    });
  });
}

// y = x / (bias + alpha / size * sum(x^2 over neighbouring channels)) ^ beta
struct LrnShape {
  int64_t batch, channels, plane, size;
  double alpha, beta, bias;
};

template <typename T>
Vec<T> Power(Vec<T> v, T exponent) {
  if (exponent == T(0.75)) {
    const Vec<T> root = Sqrt(v);
    return root * Sqrt(root);
  }
  for (int i = 0; i < kLanes<T>; ++i) v[i] = std::pow(v[i], exponent);
  return v;
}

template <typename T>
void Lrn(const LrnShape& s, const T* x, T* y) {
  const int64_t before = (s.size - 1) / 2, after = s.size / 2;
  const T factor = static_cast<T>(s.alpha / static_cast<double>(s.size));
  const T bias = static_cast<T>(s.bias), beta = static_cast<T>(s.beta);
  const int64_t grain = kGrain / std::max<int64_t>(s.plane, 1) + 1;
  ParallelFor(s.batch * s.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t c = t % s.channels, first = t - std::min(c, before);
      const int64_t last = t + std::min(s.channels - 1 - c, after);
      ForVecs<T>(s.plane, [&](int64_t i, int n) {
        Vec<T> sum = {};
        for (int64_t k = first; k <= last; ++k) {
          const Vec<T> v = Load(x + k * s.plane + i, n);
          sum += v * v;
        }
        const int64_t at = t * s.plane + i;
        Store<T>(y + at, Load(x + at, n) / Power<T>(bias + factor * sum, beta), n);
      });
    }
  });
}

absl::StatusOr<Kernel> MakeLrn(const KernelRequest& r) {
  if (!r.HasInput(0) || r.in(0).rank() < 2) {
    return NodeError(r.node, "X needs a batch and a channel axis");
  }
  const Shape& x = r.in(0);
  const int64_t size = r.node.Int("size", 0);
  if (size < 1) return NodeError(r.node, absl::StrCat("size ", size, " is not positive"));
  const LrnShape shape{x[0],
                       x[1],
                       x.elements(2, x.rank()),
                       size,
                       r.node.Float("alpha", 1e-4f),
                       r.node.Float("beta", 0.75f),
                       r.node.Float("bias", 1.0f)};
  auto kernel = FloatKernelOf(r, [shape]<typename T>(const KernelCall& c) {
    Lrn<T>(shape, c.inputs[0]->data<T>(), c.outputs[0]->data<T>());
  });
  // An element's neighbours are read after it would have been overwritten.
  if (kernel.ok()) kernel->in_place.clear();
  return kernel;
}

}  // namespace

void RegisterNormKernels(KernelTable& table) {
  RegisterBatchNormKernels(table);
  RegisterBatchNormGradKernels(table);
  RegisterLayerNormKernels(table);
  RegisterLayerNormGradKernels(table);
  auto instance = [](const KernelRequest& r) { return MakeGroupNorm(r, true); };
  auto group = [](const KernelRequest& r) { return MakeGroupNorm(r, false); };
  table.Add("InstanceNormalization", Adapted("reference", 6, instance, LikeInput(0), kTypes));
  table.Add("GroupNormalization", Adapted("reference", 21, group, LikeInput(0), kTypes));
  table.Add("LpNormalization", Adapted("reference", 1, MakeLpNorm, LikeInput(0), kTypes));
  table.Add("LRN", Adapted("reference", 1, MakeLrn, LikeInput(0), kTypes));
}

}  // namespace onward

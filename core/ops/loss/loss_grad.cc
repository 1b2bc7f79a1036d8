// SPDX-License-Identifier: Apache-2.0
// Gradients of the losses by their scores. With g the gradient of a position's
// loss times its weight (divided by the sum of weights for `mean`):
//   cross entropy: dx = g * (softmax(x) - onehot(label))
//   negative log-likelihood: dx = -g * onehot(label)
// Ignored positions get exact zeros.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/vec.h"
#include "core/ops/loss/loss.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

// g of each position.
template <typename T>
struct Upstream {
  const T* dl;
  bool per_position;
  T factor;  // 1, or one over the sum of weights
  const T* weights;
  const int64_t* label;

  T operator()(int64_t p) const {
    const T g = dl[per_position ? p : 0] * factor;
    return weights == nullptr ? g : g * weights[label[p]];
  }
};

template <typename T>
void RowGrad(const T* x, int64_t n, int64_t label, T g, T* dx) {
  const T max = RowMax(x, n);
  const auto [sum] = Sums<T, 1>(n, [&](int64_t i, int count, Vec<T>* term) {
    term[0] = Exp(Load(x + i, count) - max);
    Store(dx + i, term[0], count);
  });
  const T scale = g / sum;
  ForVecs<T>(n,
             [&](int64_t i, int count) { Store<T>(dx + i, Load(dx + i, count) * scale, count); });
  dx[label] -= g;
}

template <typename T>
void ColumnGrads(const T* x, int64_t n, int64_t stride, int count, int64_t position,
                 const Upstream<T>& upstream, T* dx) {
  const int64_t* label = upstream.label + position;
  Vec<T> max = Splat(-std::numeric_limits<T>::infinity());
  for (int64_t i = 0; i < n; ++i) max = Max(Load(x + i * stride, count), max);
  Vec<T> sum = {};
  for (int64_t i = 0; i < n; ++i) {
    const Vec<T> e = Exp(Load(x + i * stride, count) - max);
    sum += e;
    Store(dx + i * stride, e, count);
  }
  Vec<T> g = {};
  IntVec<T> counts = {};
  for (int k = 0; k < count; ++k) {
    if (label[k] < 0) continue;
    g[k] = upstream(position + k);
    counts[k] = -1;
  }
  const Vec<T> scale = g / sum;
  for (int64_t i = 0; i < n; ++i) {
    const Vec<T> value = Load(dx + i * stride, count) * scale;
    Store<T>(dx + i * stride, counts ? value : Vec<T>{}, count);
  }
  for (int k = 0; k < count; ++k) {
    if (label[k] >= 0) dx[label[k] * stride + k] -= g[k];
  }
}

template <typename T>
void CrossEntropyGrad(const AxisView& v, const T* x, const Upstream<T>& upstream, T* dx) {
  if (v.inner == 1) {
    ForRows(v, [&](int64_t p) {
      const int64_t at = p * v.n, label = upstream.label[p];
      if (label < 0) {
        std::fill_n(dx + at, v.n, T(0));
      } else {
        RowGrad(x + at, v.n, label, upstream(p), dx + at);
      }
    });
    return;
  }
  ForColumns<T>(v, [&](int64_t o, int64_t column, int count) {
    const int64_t at = v.Offset(o, column);
    ColumnGrads(x + at, v.n, v.inner, count, o * v.inner + column, upstream, dx + at);
  });
}

template <typename T>
void NegativeLogLikelihoodGrad(const AxisView& v, const Upstream<T>& upstream, T* dx) {
  const int64_t block = v.n * v.inner;
  ParallelFor(v.outer, kAxisGrain / std::max<int64_t>(block, 1) + 1,
              [&](int64_t begin, int64_t end) {
                std::fill(dx + begin * block, dx + end * block, T(0));
                for (int64_t p = begin * v.inner; p < end * v.inner; ++p) {
                  const int64_t label = upstream.label[p];
                  if (label < 0) continue;
                  dx[v.Offset(p / v.inner, p % v.inner) + label * v.inner] = -upstream(p);
                }
              });
}

struct LossGradState {
  Node node;
  LossShape shape;
  bool softmax;

  // Inputs: dL, scores (shape only without softmax), labels, weights.
  template <typename T>
  absl::Status Run(const KernelCall& call) const {
    const Tensor* w = call.inputs.size() > 3 ? call.inputs[3] : nullptr;
    const T* weights = w == nullptr ? nullptr : w->data<T>();
    ONWARD_ASSIGN_OR_RETURN(
        const Labels labels,
        ReadLabels<T>(node, shape, *call.inputs[2], weights, At<int64_t>(call.workspace, 0)));
    const bool mean = shape.reduction == Reduction::kMean;
    const Upstream<T> upstream{call.inputs[0]->data<T>(), shape.reduction == Reduction::kNone,
                               mean ? static_cast<T>(1 / labels.total_weight) : T(1), weights,
                               labels.label};
    T* dx = call.outputs[0]->data<T>();
    if (softmax) {
      CrossEntropyGrad<T>(shape.view, call.inputs[1]->data<T>(), upstream, dx);
    } else {
      NegativeLogLikelihoodGrad<T>(shape.view, upstream, dx);
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<Kernel> MakeLossGrad(const KernelRequest& r, bool softmax) {
  auto state = std::make_shared<LossGradState>();
  state->node = r.node;
  state->softmax = softmax;
  ONWARD_ASSIGN_OR_RETURN(state->shape, LossShapeOf(r, 1));
  const bool per_position = state->shape.reduction == Reduction::kNone;
  if (!r.HasInput(0) || r.inputs[0].dtype != r.inputs[1].dtype ||
      (per_position ? r.in(0) != r.in(2) : r.in(0).elements() != 1)) {
    return NodeError(r.node, absl::StrCat("the gradient of the loss must have its shape (",
                                          per_position ? r.in(2).ToString() : "a scalar",
                                          ") and the type of the scores"));
  }
  Kernel kernel;
  if (softmax) kernel.in_place = {{0, 1}};
  const bool known = DispatchFloat(r.inputs[1].dtype, [&]<typename T>() {
    kernel.run = [state](const KernelCall& call) { return state->Run<T>(call); };
  });
  if (!known) return NodeUnimplemented(r.node, "takes floating-point tensors");
  kernel.workspace_bytes = std::max<int64_t>(state->shape.positions(), 1) * sizeof(int64_t);
  return kernel;
}

KernelFactory LossGradFactory(bool softmax) {
  auto make = [softmax](const KernelRequest& r) { return MakeLossGrad(r, softmax); };
  AdaptOptions options;
  if (!softmax) options.shape_only = {1};
  return Adapt(make, LikeInput(1), options);
}

}  // namespace

void RegisterLossGradKernels(KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  table.Add("SoftmaxCrossEntropyLossGrad", {"reference", 1, LossGradFactory(true), types},
            kOnwardDomain);
  table.Add("NegativeLogLikelihoodLossGrad", {"reference", 1, LossGradFactory(false), types},
            kOnwardDomain);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss.
//
// With l a position's label and w its weight (1 without weights, 0 if ignored):
//   L = -logp[l] * w[l];  sum: sum(L);  mean: sum(L) / sum(w[l])
// so a batch in which every label is ignored has the mean 0/0 = NaN.
#include "core/ops/loss/loss.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/register.h"
#include "core/ops/cpu/vec.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

absl::StatusOr<Reduction> ReductionOf(const Node& node) {
  const std::string name = node.String("reduction", "mean");
  if (name == "none") return Reduction::kNone;
  if (name == "sum") return Reduction::kSum;
  if (name == "mean") return Reduction::kMean;
  return NodeError(node, absl::StrCat("reduction '", name, "' is not none, sum or mean"));
}

}  // namespace

absl::StatusOr<LossShape> LossShapeOf(const KernelRequest& r, int scores) {
  if (!r.HasInput(scores) || !r.HasInput(scores + 1)) {
    return NodeError(r.node, "scores and labels are required");
  }
  const Shape& x = r.in(scores);
  const Shape& labels = r.in(scores + 1);
  if (x.rank() < 2) {
    return NodeError(
        r.node, absl::StrCat("scores need a batch and a class axis, got shape ", x.ToString()));
  }
  Shape expected{x[0]};
  for (int i = 2; i < x.rank(); ++i) expected.push_back(x[i]);
  if (labels != expected) {
    return NodeError(r.node, absl::StrCat("labels of shape ", labels.ToString(),
                                          " do not fit scores of shape ", x.ToString()));
  }
  const DType label_type = r.inputs[scores + 1].dtype;
  if (label_type != DType::kInt32 && label_type != DType::kInt64) {
    return NodeError(r.node, "labels must be int32 or int64");
  }
  if (r.HasInput(scores + 2)) {
    if (r.in(scores + 2) != Shape{x[1]} || r.inputs[scores + 2].dtype != r.inputs[scores].dtype) {
      return NodeError(r.node, absl::StrCat("weights must be one per class (", x[1],
                                            ") and of the type of the scores, got shape ",
                                            r.in(scores + 2).ToString()));
    }
  }
  LossShape shape;
  shape.view = AxisView(x, 1);
  ONWARD_ASSIGN_OR_RETURN(shape.reduction, ReductionOf(r.node));
  if (r.node.Has("ignore_index")) shape.ignore_index = r.node.Int("ignore_index", 0);
  return shape;
}

template <typename T>
absl::StatusOr<Labels> ReadLabels(const Node& node, const LossShape& shape, const Tensor& labels,
                                  const T* weights, int64_t* buffer) {
  Labels out{buffer};
  const int64_t positions = shape.positions();
  // Without ignore_index no label may be skipped, so -1 is then out of range.
  const bool skips = shape.ignore_index.has_value();
  const int64_t skipped = shape.ignore_index.value_or(0);
  int64_t bad = -1, counted = 0;
  DispatchIntegral(labels.dtype(), [&]<typename Int>() {
    const Int* label = labels.data<Int>();
    for (int64_t i = 0; i < positions; ++i) {
      const int64_t l = static_cast<int64_t>(label[i]);
      const bool ignored = skips && l == skipped;
      const bool valid = static_cast<uint64_t>(l) < static_cast<uint64_t>(shape.classes());
      if (!ignored && !valid && bad < 0) bad = i;
      buffer[i] = ignored ? -1 : l;
      counted += !ignored;
    }
    if (bad >= 0) buffer[0] = static_cast<int64_t>(label[bad]);
  });
  if (bad >= 0) {
    return NodeError(node,
                     absl::StrCat("label ", buffer[0], " at position ", bad, " is outside [0, ",
                                  shape.classes(), ")", skips ? " and is not ignore_index" : ""));
  }
  out.total_weight = static_cast<double>(counted);
  if (weights != nullptr) {
    out.total_weight = 0;
    for (int64_t i = 0; i < positions; ++i) {
      if (buffer[i] >= 0) out.total_weight += weights[buffer[i]];
    }
  }
  return out;
}

template absl::StatusOr<Labels> ReadLabels(const Node&, const LossShape&, const Tensor&,
                                           const float*, int64_t*);
template absl::StatusOr<Labels> ReadLabels(const Node&, const LossShape&, const Tensor&,
                                           const double*, int64_t*);

namespace {

template <typename T>
T WeightOf(const T* weights, int64_t label) {
  if (label < 0) return 0;
  return weights == nullptr ? T(1) : weights[label];
}

// Log-probabilities of the scores x with the normaliser of a position split in
// two parts, so that large scores lose nothing: logp = (x - max) - log_sum.
template <typename T>
T RowLoss(const T* x, int64_t n, int64_t label, T* log_prob) {
  const T max = RowMax(x, n);
  const auto [sum] = Sums<T, 1>(
      n, [&](int64_t i, int count, Vec<T>* term) { term[0] = Exp(Load(x + i, count) - max); });
  const T log_sum = std::log(sum);
  const T loss = label < 0 ? T(0) : -((x[label] - max) - log_sum);
  if (log_prob != nullptr) {
    ForVecs<T>(n, [&](int64_t i, int count) {
      Store<T>(log_prob + i, (Load(x + i, count) - max) - log_sum, count);
    });
  }
  return loss;
}

// The same for `count` neighbouring positions whose classes are `stride` apart.
template <typename T>
void ColumnLosses(const T* x, int64_t n, int64_t stride, int count, const int64_t* label,
                  T* log_prob, T* loss) {
  Vec<T> max = Splat(-std::numeric_limits<T>::infinity());
  for (int64_t i = 0; i < n; ++i) max = Max(Load(x + i * stride, count), max);
  Vec<T> sum = {};
  for (int64_t i = 0; i < n; ++i) sum += Exp(Load(x + i * stride, count) - max);
  Vec<T> log_sum = {};
  for (int k = 0; k < count; ++k) {
    log_sum[k] = std::log(sum[k]);
    loss[k] = label[k] < 0 ? T(0) : -((x[label[k] * stride + k] - max[k]) - log_sum[k]);
  }
  if (log_prob == nullptr) return;
  for (int64_t i = 0; i < n; ++i) {
    Store<T>(log_prob + i * stride, (Load(x + i * stride, count) - max) - log_sum, count);
  }
}

template <typename T>
void CrossEntropy(const LossShape& s, const T* x, const int64_t* label, T* log_prob, T* loss) {
  auto log_prob_at = [&](int64_t at) { return log_prob == nullptr ? nullptr : log_prob + at; };
  const AxisView& v = s.view;
  if (v.inner == 1) {
    ForRows(
        v, [&](int64_t p) { loss[p] = RowLoss(x + p * v.n, v.n, label[p], log_prob_at(p * v.n)); });
    return;
  }
  ForColumns<T>(v, [&](int64_t o, int64_t column, int count) {
    const int64_t p = o * v.inner + column, at = v.Offset(o, column);
    ColumnLosses(x + at, v.n, v.inner, count, label + p, log_prob_at(at), loss + p);
  });
}

template <typename T>
void NegativeLogLikelihood(const LossShape& s, const T* x, const int64_t* label, T* loss) {
  ParallelFor(s.positions(), kAxisGrain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      loss[p] = label[p] < 0 ? T(0) : -x[s.Offset(p) + label[p] * s.view.inner];
    }
  });
}

// Multiplies the losses by their weights and adds them up in double.
template <typename T>
double WeighAndSum(int64_t n, const T* weights, const int64_t* label, T* loss) {
  if (weights != nullptr) {
    for (int64_t p = 0; p < n; ++p) loss[p] *= WeightOf(weights, label[p]);
  }
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t p = 0; p < n; ++p) sum += loss[p];
  return sum;
}

struct LossState {
  Node node;
  LossShape shape;
  bool softmax;
  size_t labels_at, losses_at;

  template <typename T>
  absl::Status Run(const KernelCall& call) const {
    const T* x = call.inputs[0]->data<T>();
    const Tensor* w = call.inputs.size() > 2 ? call.inputs[2] : nullptr;
    const T* weights = w == nullptr ? nullptr : w->data<T>();
    ONWARD_ASSIGN_OR_RETURN(const Labels labels,
                            ReadLabels<T>(node, shape, *call.inputs[1], weights,
                                          At<int64_t>(call.workspace, labels_at)));
    T* out = call.outputs[0] == nullptr ? nullptr : call.outputs[0]->data<T>();
    const bool direct = shape.reduction == Reduction::kNone && out != nullptr;
    T* loss = direct ? out : At<T>(call.workspace, losses_at);
    if (softmax) {
      Tensor* lp = call.outputs.size() > 1 ? call.outputs[1] : nullptr;
      CrossEntropy<T>(shape, x, labels.label, lp == nullptr ? nullptr : lp->data<T>(), loss);
    } else {
      NegativeLogLikelihood<T>(shape, x, labels.label, loss);
    }
    const double sum = WeighAndSum(shape.positions(), weights, labels.label, loss);
    if (out == nullptr || direct) return absl::OkStatus();
    *out = static_cast<T>(shape.reduction == Reduction::kMean ? sum / labels.total_weight : sum);
    return absl::OkStatus();
  }
};

absl::StatusOr<Kernel> MakeLoss(const KernelRequest& r, bool softmax) {
  auto state = std::make_shared<LossState>();
  state->node = r.node;
  state->softmax = softmax;
  ONWARD_ASSIGN_OR_RETURN(state->shape, LossShapeOf(r, 0));
  WorkspacePlan plan;
  state->labels_at = plan.Add(std::max<int64_t>(state->shape.positions(), 1) * sizeof(int64_t));
  Kernel kernel;
  const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
    state->losses_at = plan.Add(state->shape.positions() * sizeof(T));
    kernel.run = [state](const KernelCall& call) { return state->Run<T>(call); };
  });
  if (!known) return NodeUnimplemented(r.node, "takes floating-point tensors");
  kernel.workspace_bytes = plan.bytes();
  return kernel;
}

KernelFactory LossFactory(bool softmax) {
  auto make = [softmax](const KernelRequest& r) { return MakeLoss(r, softmax); };
  auto shape = [](const KernelRequest& r, int output) {
    if (output == 1) return r.in(0);
    return r.node.String("reduction", "mean") == "none" ? r.in(1) : Shape{};
  };
  return Adapt(make, shape);
}

}  // namespace

void RegisterLossKernels(KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  table.Add("SoftmaxCrossEntropyLoss", {"reference", 12, LossFactory(true), types});
  table.Add("NegativeLogLikelihoodLoss", {"reference", 12, LossFactory(false), types});
  RegisterLossGradKernels(table);
}

}  // namespace onward

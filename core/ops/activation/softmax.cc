// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax, Hardmax along one axis, and the gradients of the first
// two.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/axis_view.h"
#include "core/ops/cpu/float_math.h"
#include "core/ops/cpu/register.h"
#include "core/ops/cpu/vec.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

// From this length on, the vectors of FloatMath are worth the calls.
constexpr int64_t kLongRow = 32;

template <typename T>
T LargestOf(const T* x, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    if (n >= kLongRow) return FloatMathHere().max(x, n);
  }
  return RowMax(x, n);
}

// sum(exp(x - max)), the terms written to y unless it is null.
template <typename T>
T SumOfExp(const T* x, T max, T* y, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    const FloatMath& math = FloatMathHere();
    if (n >= kLongRow && y != nullptr) return math.exp_and_sum(x, max, y, n);
    if (n >= kLongRow) return math.sum_of_exp(x, max, n);
  }
  const auto [sum] = Sums<T, 1>(n, [&](int64_t i, int count, Vec<T>* term) {
    term[0] = Exp(Load(x + i, count) - max);
    if (y != nullptr) Store(y + i, term[0], count);
  });
  return sum;
}

// y = exp(x - max) / sum(exp(x - max)); its logarithm with kLog.
template <typename T, bool kLog>
void SoftmaxRow(const T* x, T* y, int64_t n) {
  const T max = LargestOf(x, n);
  const T sum = SumOfExp<T>(x, max, kLog ? nullptr : y, n);
  if constexpr (kLog) {
    const T log_sum = std::log(sum);
    ForVecs<T>(n, [&](int64_t i, int count) {
      Store<T>(y + i, Load(x + i, count) - max - log_sum, count);
    });
  } else {
    const T scale = 1 / sum;
    ForVecs<T>(n,
               [&](int64_t i, int count) { Store<T>(y + i, Load(y + i, count) * scale, count); });
  }
}

template <typename T>
Vec<T> Log(Vec<T> v) {
  for (int i = 0; i < kLanes<T>; ++i) v[i] = std::log(v[i]);
  return v;
}

template <typename T, bool kLog>
void SoftmaxColumns(const T* x, T* y, int64_t n, int64_t stride, int count) {
  Vec<T> max = Splat(-std::numeric_limits<T>::infinity());
  for (int64_t i = 0; i < n; ++i) max = Max(Load(x + i * stride, count), max);
  Vec<T> sum = {};
  for (int64_t i = 0; i < n; ++i) {
    const Vec<T> e = Exp(Load(x + i * stride, count) - max);
    if constexpr (!kLog) Store(y + i * stride, e, count);
    sum += e;
  }
  if constexpr (kLog) {
    const Vec<T> log_sum = Log<T>(sum);
    for (int64_t i = 0; i < n; ++i) {
      Store<T>(y + i * stride, Load(x + i * stride, count) - max - log_sum, count);
    }
  } else {
    const Vec<T> scale = 1 / sum;
    for (int64_t i = 0; i < n; ++i) {
      Store<T>(y + i * stride, Load(y + i * stride, count) * scale, count);
    }
  }
}

template <typename T, bool kLog>
void Softmax(const AxisView& v, const T* x, T* y) {
  if (v.inner == 1) {
    ForRows(v, [&](int64_t o) { SoftmaxRow<T, kLog>(x + o * v.n, y + o * v.n, v.n); });
  } else {
    ForColumns<T>(v, [&](int64_t o, int64_t column, int count) {
      const int64_t at = v.Offset(o, column);
      SoftmaxColumns<T, kLog>(x + at, y + at, v.n, v.inner, count);
    });
  }
}

// One term of the sum in the gradient, and the gradient given that sum s:
// softmax: dx = y * (dy - sum(y*dy));  log: dx = dy - exp(y) * sum(dy).
template <typename T, bool kLog>
Vec<T> GradTerm(Vec<T> dy, Vec<T> y) {
  return kLog ? dy : y * dy;
}
template <typename T, bool kLog, typename S>
Vec<T> GradValue(Vec<T> dy, Vec<T> y, S s) {
  if constexpr (kLog) {
    return dy - Exp(y) * s;
  } else {
    return y * (dy - s);
  }
}

template <typename T, bool kLog>
void SoftmaxGrad(const AxisView& v, const T* dy, const T* y, T* dx) {
  if (v.inner == 1) {
    ForRows(v, [&](int64_t o) {
      const int64_t at = o * v.n;
      const auto [s] = Sums<T, 1>(v.n, [&](int64_t i, int count, Vec<T>* term) {
        term[0] = GradTerm<T, kLog>(Load(dy + at + i, count), Load(y + at + i, count));
      });
      ForVecs<T>(v.n, [&, s = s](int64_t i, int count) {
        const int64_t p = at + i;
        Store<T>(dx + p, GradValue<T, kLog>(Load(dy + p, count), Load(y + p, count), s), count);
      });
    });
    return;
  }
  ForColumns<T>(v, [&](int64_t o, int64_t column, int count) {
    const int64_t at = v.Offset(o, column), end = at + v.n * v.inner;
    Vec<T> s = {};
    for (int64_t p = at; p < end; p += v.inner) {
      s += GradTerm<T, kLog>(Load(dy + p, count), Load(y + p, count));
    }
    for (int64_t p = at; p < end; p += v.inner) {
      Store<T>(dx + p, GradValue<T, kLog>(Load(dy + p, count), Load(y + p, count), s), count);
    }
  });
}

// 1 at the first largest element, 0 elsewhere; NaN counts as largest.
template <typename T>
void Hardmax(const AxisView& v, const T* x, T* y) {
  const int64_t grain = kAxisGrain / std::max<int64_t>(v.n, 1) + 1;
  ParallelFor(v.outer * v.inner, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = v.Offset(t / v.inner, t % v.inner);
      int64_t best = 0;
      for (int64_t i = 1; i < v.n; ++i) {
        const T value = x[at + i * v.inner], top = x[at + best * v.inner];
        if (value > top || (std::isnan(value) && !std::isnan(top))) best = i;
      }
      for (int64_t i = 0; i < v.n; ++i) y[at + i * v.inner] = T(i == best);
    }
  });
}

absl::StatusOr<AxisView> ViewOf(const KernelRequest& r, int inputs) {
  for (int i = 0; i < inputs; ++i) {
    if (!r.HasInput(i)) return NodeError(r.node, absl::StrCat("input ", i, " is missing"));
    if (r.in(i) != r.in(0) || r.inputs[i].dtype != r.inputs[0].dtype) {
      return NodeError(r.node, absl::StrCat("inputs differ: shapes ", r.in(0).ToString(), " and ",
                                            r.in(i).ToString()));
    }
  }
  const Shape& shape = r.in(0);
  if (shape.rank() == 0) return AxisView{};
  auto axis = NormalizeAxis(r.node.Int("axis", -1), shape.rank());
  if (!axis.ok()) return Annotate(axis.status(), r.node.Describe());
  return AxisView(shape, *axis);
}

// Compute(view, inputs' data..., output's data) for each of float and double.
template <typename Compute>
KernelFactory Along(int inputs, Compute compute) {
  auto make = [inputs, compute](const KernelRequest& r) -> absl::StatusOr<Kernel> {
    ONWARD_ASSIGN_OR_RETURN(const AxisView view, ViewOf(r, inputs));
    Kernel kernel;
    kernel.infallible = true;
    for (int i = 0; i < inputs; ++i) kernel.in_place.push_back({0, i});
    const bool known = DispatchFloat(r.inputs[0].dtype, [&]<typename T>() {
      kernel.run = [view, compute](const KernelCall& call) {
        compute.template operator()<T>(view, call);
        return absl::OkStatus();
      };
    });
    if (!known) return NodeUnimplemented(r.node, "takes floating-point tensors");
    return kernel;
  };
  return Adapt(make, LikeInput(0));
}

template <bool kLog>
KernelFactory Forward() {
  return Along(1, []<typename T>(const AxisView& v, const KernelCall& c) {
    Softmax<T, kLog>(v, c.inputs[0]->data<T>(), c.outputs[0]->data<T>());
  });
}

template <bool kLog>
KernelFactory Gradient() {
  return Along(2, []<typename T>(const AxisView& v, const KernelCall& c) {
    SoftmaxGrad<T, kLog>(v, c.inputs[0]->data<T>(), c.inputs[1]->data<T>(),
                         c.outputs[0]->data<T>());
  });
}

}  // namespace

void RegisterSoftmaxKernels(KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  table.Add("Softmax", {"reference", 13, Forward<false>(), types, false, LikeInput(0)});
  table.Add("LogSoftmax", {"reference", 13, Forward<true>(), types, false, LikeInput(0)});
  auto hardmax = []<typename T>(const AxisView& v, const KernelCall& c) {
    Hardmax<T>(v, c.inputs[0]->data<T>(), c.outputs[0]->data<T>());
  };
  table.Add("Hardmax", {"reference", 13, Along(1, hardmax), types});
  table.Add("SoftmaxGrad", {"reference", 1, Gradient<false>(), types}, kOnwardDomain);
  table.Add("LogSoftmaxGrad", {"reference", 1, Gradient<true>(), types}, kOnwardDomain);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Operators that walk one axis in order: ArgMax, ArgMin, CumSum and CumProd. The
// data is seen as [outer, n, inner]; neighbouring columns of `inner` go together.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/axis_view.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/movement/movement.h"
#include "core/ops/reduce/reduce.h"

namespace onward {
namespace {

constexpr int64_t kColumns = 256;
constexpr int64_t kGrain = 16384;  // elements worth a thread

// Calls body(o, column, width) for each group of `width` neighbouring columns.
template <typename Body>
void ForTiles(const AxisView& view, const Body& body) {
  const int64_t tiles = (view.inner + kColumns - 1) / kColumns;
  const int64_t work = std::max<int64_t>(1, view.n * std::min(view.inner, kColumns));
  ParallelFor(view.outer * tiles, std::max<int64_t>(1, kGrain / work),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t column = i % tiles * kColumns;
                  body(i / tiles, column, std::min(kColumns, view.inner - column));
                }
              });
}

// Whether x takes the place of `best`; NaN is larger and smaller than anything,
// as in numpy.
template <bool kMax, bool kLast, typename T>
bool Takes(T x, T best) {
  if constexpr (kLast) {
    return (kMax ? x >= best : x <= best) | (x != x);
  } else {
    return (kMax ? x > best : x < best) | ((x != x) & (best == best));
  }
}

template <bool kMax, bool kLast, typename T>
void ArgRun(const AxisView& view, const Tensor& data, Tensor& out) {
  using C = ComputeType<T>;
  ForTiles(view, [&](int64_t o, int64_t column, int64_t width) {
    const T* x = data.data<T>() + view.Offset(o, column);
    int64_t* result = out.data<int64_t>() + o * view.inner + column;
    if (view.inner == 1) {
      C best = C(x[0]);
      int64_t index = 0;
      for (int64_t i = 1; i < view.n; ++i) {
        const C value = C(x[i]);
        if (!Takes<kMax, kLast>(value, best)) continue;
        best = value;
        index = i;
      }
      *result = index;
      return;
    }
    C best[kColumns];
    ConvertRun(x, best, width);
    std::fill(result, result + width, 0);
    for (int64_t i = 1; i < view.n; ++i) {
      x += view.inner;
      for (int64_t j = 0; j < width; ++j) {
        const C value = C(x[j]);
        const bool takes = Takes<kMax, kLast>(value, best[j]);
        best[j] = takes ? value : best[j];
        result[j] = takes ? i : result[j];
      }
    }
  });
}

template <bool kMax>
absl::StatusOr<Kernel> MakeArg(const KernelRequest& request) {
  if (!request.HasInput(0)) return NodeError(request.node, "input 0 is missing");
  if (request.outputs[0].dtype != DType::kInt64) return UnservedType(request);
  const bool last = request.node.Int("select_last_index", 0) != 0;
  void (*arg)(const AxisView&, const Tensor&, Tensor&) = nullptr;
  NumericTypes::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    arg = last ? ArgRun<kMax, true, T> : ArgRun<kMax, false, T>;
  });
  if (arg == nullptr) return UnservedType(request);

  const Shape& data = request.in(0);
  const int64_t axis = request.node.Int("axis", 0);
  const bool keepdims = request.node.Int("keepdims", 1) != 0;
  absl::StatusOr<ReducePlan> plan = PlanReduce(data, {axis}, keepdims);
  if (!plan.ok()) return AtNode(request.node, plan.status());
  if (plan->count == 0 && plan->outputs > 0) {
    return NodeError(request.node, absl::StrCat("axis ", axis, " of shape ", data.ToString(),
                                                " has no elements to choose from"));
  }
  const AxisView view(data, static_cast<int>(axis < 0 ? axis + data.rank() : axis));
  const auto make =
      [shape = *std::move(plan)](absl::Span<const Tensor* const>) -> absl::StatusOr<ReducePlan> {
    return shape;
  };
  const auto run = [arg, view](const ReducePlan& fixed, const KernelCall& call, Tensor& out) {
    if (fixed.outputs > 0) arg(view, *call.inputs[0], out);
    return absl::OkStatus();
  };
  return PlannedKernel<ReducePlan>(request, {}, make, run);
}

struct CumulateOptions {
  bool exclusive, reverse;
};

struct PlusStep {
  template <typename T>
  static T Start() {
    return T(0);
  }
  template <typename T>
  static T Next(T a, T b) {
    return WrapAdd(a, b);
  }
};
struct TimesStep {
  template <typename T>
  static T Start() {
    return T(1);
  }
  template <typename T>
  static T Next(T a, T b) {
    return WrapMul(a, b);
  }
};

// Floats are carried in double.
template <typename Step, typename T>
void CumulateRun(const AxisView& view, CumulateOptions options, const Tensor& data, Tensor& out) {
  using Carry = std::conditional_t<std::is_integral_v<T>, T, double>;
  ForTiles(view, [&](int64_t o, int64_t column, int64_t width) {
    const T* x = data.data<T>() + view.Offset(o, column);
    T* y = out.data<T>() + view.Offset(o, column);
    // The element is read before y, which may be the same memory, changes.
    const auto step = [&](Carry& carry, int64_t i) {
      const Carry next = Step::Next(carry, static_cast<Carry>(x[i]));
      const Carry value = options.exclusive ? carry : next;
      if constexpr (std::is_integral_v<T>) {
        y[i] = value;
      } else {
        y[i] = FromDouble<T>(value);
      }
      carry = next;
    };
    const auto row = [&](int64_t i) { return options.reverse ? view.n - 1 - i : i; };
    if (view.inner == 1) {
      Carry carry = Step::template Start<Carry>();
      for (int64_t i = 0; i < view.n; ++i) step(carry, row(i));
      return;
    }
    Carry carry[kColumns];
    std::fill(carry, carry + width, Step::template Start<Carry>());
    for (int64_t i = 0; i < view.n; ++i) {
      for (int64_t j = 0; j < width; ++j) step(carry[j], row(i) * view.inner + j);
    }
  });
}

absl::StatusOr<int> AxisOf(const Node& node, const Tensor& axis, int rank) {
  ONWARD_ASSIGN_OR_RETURN(const int64_t value, IntOf(node, axis, "axis"));
  const absl::StatusOr<int> normal = NormalizeAxis(value, rank);
  if (!normal.ok()) return AtNode(node, normal.status());
  return normal;
}

struct CumulatePlan {
  Shape shape;
  int axis;
};

template <typename Step>
absl::StatusOr<Kernel> MakeCumulate(const KernelRequest& request) {
  if (!request.HasInput(0) || !request.HasInput(1)) {
    return NodeError(request.node, "two inputs are needed");
  }
  if (request.outputs[0].dtype != request.inputs[0].dtype) return UnservedType(request);
  void (*cumulate)(const AxisView&, CumulateOptions, const Tensor&, Tensor&) = nullptr;
  WideNumericTypes::Dispatch(request.inputs[0].dtype,
                             [&]<typename T>() { cumulate = CumulateRun<Step, T>; });
  if (cumulate == nullptr) return UnservedType(request);

  const CumulateOptions options{request.node.Int("exclusive", 0) != 0,
                                request.node.Int("reverse", 0) != 0};
  const auto make = [node = KeepNode(request.node), shape = request.in(0)](
                        absl::Span<const Tensor* const> inputs) -> absl::StatusOr<CumulatePlan> {
    ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(*node, *inputs[1], shape.rank()));
    return CumulatePlan{shape, axis};
  };
  const auto run = [cumulate, options](const CumulatePlan& plan, const KernelCall& call,
                                       Tensor& out) {
    cumulate(AxisView(plan.shape, plan.axis), options, *call.inputs[0], out);
    return absl::OkStatus();
  };
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, PlannedKernel<CumulatePlan>(request, {1}, make, run));
  kernel.in_place = {{0, 0}};
  return kernel;
}

}  // namespace

void RegisterAxisKernels(KernelTable& table) {
  table.Add("ArgMax", Entry<NumericTypes>(12, MakeArg<true>));
  table.Add("ArgMin", Entry<NumericTypes>(12, MakeArg<false>));
  table.Add("CumSum", Entry<WideNumericTypes>(11, MakeCumulate<PlusStep>));
  table.Add("CumProd", Entry<WideNumericTypes>(26, MakeCumulate<TimesStep>));
}

}  // namespace onward

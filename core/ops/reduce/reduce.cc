// SPDX-License-Identifier: Apache-2.0
// ReduceSum and its relatives: what each maps, folds and makes of the total.
#include "core/ops/reduce/reduce.h"

#include <cmath>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/ops/cpu/register.h"
#include "core/ops/cpu/scalar_math.h"
#include "core/ops/cpu/vector_math.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/movement/movement.h"
#include "core/ops/reduce/reducer.h"

namespace onward {
namespace {

struct Unshifted {
  static constexpr bool kShifted = false;
};
struct Same : Unshifted {
  template <typename T>
  static T Apply(T x, T) {
    return x;
  }
};
struct Absolute : Unshifted {
  template <typename T>
  static T Apply(T x, T) {
    if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else {
      return x < T(0) ? WrapSub(T(0), x) : x;
    }
  }
};
struct Square : Unshifted {
  template <typename T>
  static T Apply(T x, T) {
    return WrapMul(x, x);
  }
};
// Of integers in double, where the sum cannot wrap around.
struct RealSquare : Unshifted {
  template <typename T>
  static auto Apply(T x, T) {
    using Real = std::conditional_t<std::is_integral_v<T>, double, T>;
    return static_cast<Real>(x) * static_cast<Real>(x);
  }
};
struct ShiftedExp {
  static constexpr bool kShifted = true;
  template <typename T>
  static T Apply(T x, T shift) {
    return vector_math::Exp(x - shift);
  }
};

// Reductions. Finish gives the result from the total. kKeepsOne: of one element
// the result is that element.
template <typename FoldType, typename MapType, bool kKeeps>
struct PlainReduction {
  using Fold = FoldType;
  using Map = MapType;
  static constexpr bool kKeepsOne = kKeeps;
  template <typename T, typename Total>
  static Total Finish(Total total, int64_t, T) {
    return total;
  }
};
using SumReduction = PlainReduction<Plus, Same, true>;
using ProdReduction = PlainReduction<Times, Same, true>;
using MaxReduction = PlainReduction<Largest, Same, true>;
using MinReduction = PlainReduction<Smallest, Same, true>;
using L1Reduction = PlainReduction<Plus, Absolute, false>;
using SumSquareReduction = PlainReduction<Plus, Square, false>;

struct MeanReduction : SumReduction {
  template <typename T, typename Total>
  static Total Finish(Total total, int64_t count, T) {
    return SafeDiv(total, static_cast<Total>(count));
  }
};
struct L2Reduction : PlainReduction<Plus, RealSquare, false> {
  template <typename T>
  static double Finish(double total, int64_t, T) {
    return std::sqrt(total);
  }
};
struct LogSumReduction : PlainReduction<Plus, Same, false> {
  template <typename T>
  static double Finish(double total, int64_t, T) {
    return std::log(total);
  }
};
// log(sum(exp(x))) = shift + log(sum(exp(x - shift))), the shift being the
// largest element.
struct LogSumExpReduction : PlainReduction<Plus, ShiftedExp, false> {
  template <typename T>
  static double Finish(double total, int64_t, T shift) {
    return std::log(total) + static_cast<double>(shift);
  }
};
// That shift; infinite ones would give infinity - infinity.
struct ShiftReduction : MaxReduction {
  template <typename T>
  static T Finish(T total, int64_t, T) {
    return std::isinf(total) ? T(0) : total;
  }
};

template <typename Reduction, typename T, typename Total>
void FinishAll(const Total* totals, int64_t n, int64_t count, const T* shifts, T* results) {
  for (int64_t i = 0; i < n; ++i) {
    const T shift = Reduction::Map::kShifted ? shifts[i] : T();
    results[i] = Convert<T>(Reduction::Finish(totals[i], count, shift));
  }
}

template <typename Reduction, typename T>
void ReduceData(const ReducePlan& plan, const T* data, const T* shifts, T* results) {
  using Loops = Reducer<typename Reduction::Fold, typename Reduction::Map, T>;
  Loops(plan, data, shifts, results, FinishAll<Reduction, T, typename Loops::Total>).Run();
}

template <typename From, typename To>
void ConvertAll(const Tensor& from, Tensor& to) {
  ParallelFor(from.elements(), kLightGrain, [&](int64_t begin, int64_t end) {
    ConvertRun(from.data<From>() + begin, to.data<To>() + begin, end - begin);
  });
}

template <typename Reduction, typename T>
void Reduce(const ReducePlan& plan, const Tensor& data, Tensor& out) {
  if constexpr (kIsHalf<T>) {
    Tensor wide_data(DType::kFloat, data.shape());
    Tensor wide_out(DType::kFloat, out.shape());
    ConvertAll<T, float>(data, wide_data);
    Reduce<Reduction, float>(plan, wide_data, wide_out);
    ConvertAll<float, T>(wide_out, out);
  } else {
    std::unique_ptr<T[]> shifts;
    if constexpr (Reduction::Map::kShifted) {
      shifts = std::make_unique<T[]>(plan.outputs);
      ReduceData<ShiftReduction>(plan, data.data<T>(), static_cast<const T*>(nullptr),
                                 shifts.get());
    }
    ReduceData<Reduction>(plan, data.data<T>(), static_cast<const T*>(shifts.get()), out.data<T>());
  }
}

absl::StatusOr<ReducePlan> PlanFor(const Node& node, const Shape& data, const Tensor* axes) {
  std::vector<int64_t> values;
  if (axes != nullptr) {
    ONWARD_ASSIGN_OR_RETURN(values, IntsOf(node, *axes, "axes"));
  }
  if (values.empty() && node.Int("noop_with_empty_axes", 0) == 0) {
    for (int d = 0; d < data.rank(); ++d) values.push_back(d);
  }
  absl::StatusOr<ReducePlan> plan = PlanReduce(data, values, node.Int("keepdims", 1) != 0);
  if (!plan.ok()) return AtNode(node, plan.status());
  return plan;
}

template <typename Reduction, typename Types>
absl::StatusOr<Kernel> MakeReduce(const KernelRequest& request) {
  if (!request.HasInput(0)) return NodeError(request.node, "input 0 is missing");
  if (request.outputs[0].dtype != request.inputs[0].dtype) return UnservedType(request);
  void (*reduce)(const ReducePlan&, const Tensor&, Tensor&) = nullptr;
  Types::Dispatch(request.inputs[0].dtype, [&]<typename T>() { reduce = Reduce<Reduction, T>; });
  if (reduce == nullptr) return UnservedType(request);

  if (Reduction::kKeepsOne && AllConstant(request, {1})) {
    const Tensor* axes = request.HasInput(1) ? request.inputs[1].constant : nullptr;
    ONWARD_ASSIGN_OR_RETURN(const ReducePlan plan, PlanFor(request.node, request.in(0), axes));
    if (plan.count == 1) return IdentityKernel(request, plan.shape);
  }
  const auto make = [node = KeepNode(request.node),
                     data = request.in(0)](absl::Span<const Tensor* const> inputs) {
    return PlanFor(*node, data, InputAt(inputs, 1));
  };
  const auto run = [reduce](const ReducePlan& plan, const KernelCall& call, Tensor& out) {
    reduce(plan, *call.inputs[0], out);
    return absl::OkStatus();
  };
  return PlannedKernel<ReducePlan>(request, {1}, make, run);
}

absl::StatusOr<Shape> ReducedShape(const KernelRequest& request, int) {
  return PlannedShape(request, {1}, [&](absl::Span<const Tensor* const> inputs) {
    return PlanFor(request.node, request.in(0), InputAt(inputs, 1));
  });
}

template <typename Reduction, typename Types>
KernelTable::Entry ReduceEntry(int since) {
  return Entry<Types>(since, MakeReduce<Reduction, Types>, ReducedShape);
}

}  // namespace

void RegisterReduceKernels(KernelTable& table) {
  using OrderedTypes = WideNumericTypes::With<int8_t, uint8_t, bool>;
  table.Add("ReduceSum", ReduceEntry<SumReduction, WideNumericTypes>(13));
  table.Add("ReduceMean", ReduceEntry<MeanReduction, WideNumericTypes>(18));
  table.Add("ReduceMax", ReduceEntry<MaxReduction, OrderedTypes>(18));
  table.Add("ReduceMin", ReduceEntry<MinReduction, OrderedTypes>(18));
  table.Add("ReduceProd", ReduceEntry<ProdReduction, WideNumericTypes>(18));
  table.Add("ReduceL1", ReduceEntry<L1Reduction, WideNumericTypes>(18));
  table.Add("ReduceL2", ReduceEntry<L2Reduction, WideNumericTypes>(18));
  table.Add("ReduceLogSum", ReduceEntry<LogSumReduction, FloatingTypes>(18));
  table.Add("ReduceLogSumExp", ReduceEntry<LogSumExpReduction, FloatingTypes>(18));
  table.Add("ReduceSumSquare", ReduceEntry<SumSquareReduction, WideNumericTypes>(18));
  RegisterAxisKernels(table);
}

}  // namespace onward

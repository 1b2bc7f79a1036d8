// SPDX-License-Identifier: Apache-2.0
// The reduce family: reductions over any axes, ArgMax, ArgMin, CumSum, CumProd.
#include "core/cuda/register.h"

#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/cuda/copy.h"
#include "core/cuda/reduce/reduce.h"
#include "core/cuda/request.h"
#include "core/device/plan/reduce.h"

namespace onward::cuda {
namespace {

bool Serves(ReduceOp op, DType dtype) {
  if (IsReal(dtype)) return true;
  if (op == ReduceOp::kLogSum || op == ReduceOp::kLogSumExp) return false;
  const bool ordered = op == ReduceOp::kMax || op == ReduceOp::kMin;
  const bool narrow = dtype == DType::kInt8 || dtype == DType::kUint8 || dtype == DType::kBool;
  return IsWideInteger(dtype) || (ordered && narrow);
}

// False where there are too many dimensions.
bool Append(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides, StridedGrid& grid) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (grid.rank == StridedGrid::kMostDims) return false;
    grid.dims[grid.rank] = dims[i];
    grid.strides[grid.rank++] = strides[i];
  }
  return true;
}

absl::StatusOr<ReduceWork> WorkOf(const KernelRequest& r, const ReducePlan& plan) {
  ReduceWork work;
  work.outputs = plan.outputs;
  work.count = plan.count;
  bool fits = Append(plan.kept.dims, plan.kept.strides, work.kept) &&
              Append(plan.reduced.dims, plan.reduced.strides, work.reduced);
  fits = fits && Append({plan.run}, {int64_t{1}}, plan.run_reduced ? work.reduced : work.kept);
  if (!fits) return NodeUnimplemented(r.node, "too many groups of axes");
  work.DealOut(plan.run_reduced);
  return work;
}

absl::StatusOr<ReducePlan> PlanOf(const KernelRequest& r) {
  std::vector<int64_t> axes;
  if (r.HasInput(1)) {
    ONWARD_ASSIGN_OR_RETURN(axes, ConstantInts(r, 1));
  }
  if (axes.empty() && r.node.Int("noop_with_empty_axes", 0) == 0) {
    for (int d = 0; d < r.in(0).rank(); ++d) axes.push_back(d);
  }
  const auto plan = PlanReduce(r.in(0), axes, r.node.Int("keepdims", 1) != 0);
  if (!plan.ok()) return Unserved(r);
  return plan;
}

absl::StatusOr<Kernel> MakeReduce(const KernelRequest& r, ReduceOp op) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 1));
  const DType dtype = r.inputs[0].dtype;
  if (!Serves(op, dtype) || r.outputs[0].dtype != dtype) return Unserved(r);
  ONWARD_ASSIGN_OR_RETURN(const ReducePlan plan, PlanOf(r));
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, plan.shape));
  const bool keeps_one = op == ReduceOp::kSum || op == ReduceOp::kMean || op == ReduceOp::kMax ||
                         op == ReduceOp::kMin || op == ReduceOp::kProd;
  Kernel kernel;
  if (keeps_one && plan.count == 1) {
    kernel = CopyKernel(plan.outputs * BytesOf(dtype));
    kernel.is_view = true;
  } else {
    ONWARD_ASSIGN_OR_RETURN(const ReduceWork work, WorkOf(r, plan));
    kernel = QueuedKernel(r, [op, dtype, work](const KernelCall& call) {
      return Reduce(op, dtype, work, In(call, 0), Out(call, 0), call.workspace, StreamOf(call));
    });
    kernel.workspace_bytes = work.workspace_bytes(op);
  }
  kernel.infallible = true;
  return kernel;
}

AxisRows RowsOf(const Shape& shape, int axis) {
  return {shape.elements(0, axis), shape[axis], shape.elements(axis + 1, shape.rank())};
}

absl::StatusOr<Kernel> MakeArg(const KernelRequest& r, bool largest) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 1));
  const DType dtype = r.inputs[0].dtype;
  const bool served =
      IsReal(dtype) || IsWideInteger(dtype) || dtype == DType::kInt8 || dtype == DType::kUint8;
  const absl::StatusOr<int> axis = NormalizeAxis(r.node.Int("axis", 0), r.in(0).rank());
  if (!served || !axis.ok() || r.in(0)[*axis] == 0) return Unserved(r);
  const AxisRows rows = RowsOf(r.in(0), *axis);
  const ArgOptions options{largest, r.node.Int("select_last_index", 0) != 0};
  Kernel kernel = QueuedKernel(r, [=](const KernelCall& call) {
    return ArgReduce(dtype, rows, options, In(call, 0), static_cast<int64_t*>(Out(call, 0)),
                     StreamOf(call));
  });
  kernel.infallible = true;
  return kernel;
}

absl::StatusOr<Kernel> MakeCumulate(const KernelRequest& r, bool product) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  const DType dtype = r.inputs[0].dtype;
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ConstantInts(r, 1));
  if (axes.size() != 1 || !(IsReal(dtype) || IsWideInteger(dtype))) return Unserved(r);
  const absl::StatusOr<int> axis = NormalizeAxis(axes[0], r.in(0).rank());
  if (!axis.ok()) return Unserved(r);
  const AxisRows rows = RowsOf(r.in(0), *axis);
  const CumulateOptions options{product, r.node.Int("exclusive", 0) != 0,
                                r.node.Int("reverse", 0) != 0};
  Kernel kernel = QueuedKernel(r, [=](const KernelCall& call) {
    return Cumulate(dtype, rows, options, In(call, 0), Out(call, 0), StreamOf(call));
  });
  kernel.infallible = true;
  kernel.in_place = {{0, 0}};
  return kernel;
}

}  // namespace

void RegisterReduce(const Context&, KernelTable& table) {
  const char* floats = "float, double, float16, bfloat16";
  const char* wide = "float, double, float16, bfloat16, int32, int64, uint32, uint64";
  const auto add = [&](std::string_view name, int since, ReduceOp op, const char* types) {
    table.Add(name,
              {"cuda", since, [op](const KernelRequest& r) { return MakeReduce(r, op); }, types});
  };
  add("ReduceSum", 13, ReduceOp::kSum, wide);
  add("ReduceMean", 18, ReduceOp::kMean, wide);
  add("ReduceMax", 18, ReduceOp::kMax, wide);
  add("ReduceMin", 18, ReduceOp::kMin, wide);
  add("ReduceProd", 18, ReduceOp::kProd, wide);
  add("ReduceL1", 18, ReduceOp::kL1, wide);
  add("ReduceL2", 18, ReduceOp::kL2, wide);
  add("ReduceLogSum", 18, ReduceOp::kLogSum, floats);
  add("ReduceLogSumExp", 18, ReduceOp::kLogSumExp, floats);
  add("ReduceSumSquare", 18, ReduceOp::kSumSquare, wide);
  for (const bool largest : {true, false}) {
    const auto arg = [largest](const KernelRequest& r) { return MakeArg(r, largest); };
    table.Add(largest ? "ArgMax" : "ArgMin", {"cuda", 12, arg, wide});
  }
  const auto sum = [](const KernelRequest& r) { return MakeCumulate(r, false); };
  const auto product = [](const KernelRequest& r) { return MakeCumulate(r, true); };
  table.Add("CumSum", {"cuda", 11, sum, wide});
  table.Add("CumProd", {"cuda", 26, product, wide});
}

}  // namespace onward::cuda

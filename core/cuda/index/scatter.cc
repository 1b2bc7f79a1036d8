// SPDX-License-Identifier: Apache-2.0
// ScatterElements, ScatterND, TensorScatter and GatherGrad.
#include <limits>
#include <string>

#include "core/base/status.h"
#include "core/cuda/index/factories.h"
#include "core/cuda/index/index.h"
#include "core/cuda/request.h"

namespace onward::cuda {
namespace {

// Targets and updates are counted in 32 bits.
bool Countable(int64_t n) { return n < std::numeric_limits<uint32_t>::max(); }

// Whether sums may be made in any order, and can be.
bool AnyOrder(const Context& context, ScatterOp op, DType dtype) {
  return !context.options.deterministic && op == ScatterOp::kAdd && HasAtomicSums(dtype);
}

absl::StatusOr<ScatterOp> OpOf(const KernelRequest& r) {
  const std::string name = r.node.String("reduction", "none");
  ScatterOp op = ScatterOp::kNone;
  if (name == "add") op = ScatterOp::kAdd;
  if (name == "mul") op = ScatterOp::kMul;
  if (name == "min") op = ScatterOp::kMin;
  if (name == "max") op = ScatterOp::kMax;
  const bool known = op != ScatterOp::kNone || name == "none";
  if (!known || !ServesScatter(op, r.inputs[0].dtype)) return Unserved(r);
  if (r.inputs[2].dtype != r.inputs[0].dtype) return Unserved(r);
  return op;
}

absl::StatusOr<Kernel> MakeScatterElements(const Context& context, const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  ONWARD_ASSIGN_OR_RETURN(const ScatterOp op, OpOf(r));
  ONWARD_ASSIGN_OR_RETURN(const ElementsCall state, ElementsOf(r));
  const int64_t targets = r.in(0).elements();
  if (r.in(2) != r.in(1) || !Countable(targets) || !Countable(state.elements)) return Unserved(r);
  const bool any_order = AnyOrder(context, op, r.inputs[0].dtype);
  Kernel kernel =
      FaultingKernel(r, "index", [=, dtype = r.inputs[0].dtype](const KernelCall& call) {
        ElementsCall now = state;
        now.indices.data = In(call, 1);
        now.indices.fault = FaultOf(call);
        now.result = Out(call, 0);
        const cudaError_t error =
            CopyBytes(now.result, In(call, 0), targets * state.bytes, StreamOf(call));
        if (error != cudaSuccess) return error;
        if (any_order) return AddElements(dtype, now, In(call, 2), StreamOf(call));
        return ScatterElements(op, dtype, now, targets, In(call, 2), call.workspace,
                               StreamOf(call));
      });
  kernel.in_place = {{0, 0}};
  if (!any_order) kernel.workspace_bytes = ScatterWorkspace(state.elements);
  return kernel;
}

absl::StatusOr<Kernel> MakeScatterND(const Context& context, const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  ONWARD_ASSIGN_OR_RETURN(const ScatterOp op, OpOf(r));
  ONWARD_ASSIGN_OR_RETURN(const Tuples tuples, TuplesOf(r, 0));
  const int64_t elements = r.in(0).elements();
  const int64_t targets = tuples.slice == 0 ? 0 : elements / tuples.slice;
  if (r.in(2).elements() != tuples.count * tuples.slice || !Countable(targets) ||
      !Countable(tuples.count)) {
    return Unserved(r);
  }
  const DType dtype = r.inputs[0].dtype;
  const size_t bytes = elements * BytesOf(dtype);
  const bool any_order = AnyOrder(context, op, dtype);
  Kernel kernel = FaultingKernel(r, "index", [=](const KernelCall& call) {
    const cudaError_t error = CopyBytes(Out(call, 0), In(call, 0), bytes, StreamOf(call));
    if (error != cudaSuccess) return error;
    Tuples now = tuples;
    now.fault = FaultOf(call);
    const int64_t* indices = static_cast<const int64_t*>(In(call, 1));
    if (any_order) {
      return AddTuples(dtype, now, indices, In(call, 2), Out(call, 0), StreamOf(call));
    }
    return ScatterTuples(op, dtype, now, targets, indices, In(call, 2), Out(call, 0),
                         call.workspace, StreamOf(call));
  });
  kernel.in_place = {{0, 0}};
  if (!any_order) kernel.workspace_bytes = ScatterWorkspace(tuples.count);
  return kernel;
}

absl::StatusOr<Kernel> MakeTensorScatter(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  const Shape &cache = r.in(0), &update = r.in(1);
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(r, -2, cache.rank()));
  TensorScatterCall state;
  state.bytes = BytesOf(r.inputs[0].dtype);
  bool fits = axis > 0 && update.rank() == cache.rank() && state.bytes > 0 &&
              r.inputs[1].dtype == r.inputs[0].dtype;
  for (int i = 0; fits && i < cache.rank(); ++i) {
    fits = i == axis ? update[i] <= cache[i] : update[i] == cache[i];
  }
  if (!fits) return Unserved(r);
  if (r.HasInput(2) && (r.in(2) != Shape{cache[0]} || r.inputs[2].dtype != DType::kInt64 ||
                        r.inputs[2].constant != nullptr)) {
    return Unserved(r);
  }
  state.batch = cache[0];
  state.outer = cache.elements(1, axis);
  state.inner = cache.elements(axis + 1, cache.rank());
  state.all = cache[axis];
  state.steps = update[axis];
  state.circular = r.node.String("mode", "linear") == "circular";
  const size_t bytes = cache.elements() * state.bytes;
  Kernel kernel = FaultingKernel(r, "write index", [=](const KernelCall& call) {
    TensorScatterCall now = state;
    now.starts = static_cast<const int64_t*>(In(call, 2));
    now.fault = FaultOf(call);
    now.update = In(call, 1);
    now.cache = Out(call, 0);
    const cudaError_t error = CopyBytes(now.cache, In(call, 0), bytes, StreamOf(call));
    return error == cudaSuccess ? TensorScatter(now, StreamOf(call)) : error;
  });
  kernel.in_place = {{0, 0}};
  return kernel;
}

// Inputs dY, indices and the data (for its shape).
absl::StatusOr<Kernel> MakeGatherGrad(const Context& context, const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  const Shape& data = r.in(2);
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(r, 0, data.rank()));
  ONWARD_RETURN_IF_ERROR(CheckIndices(r, 1, data[axis]));
  GatherGradCall state;
  state.outer = data.elements(0, axis);
  state.rows = data[axis];
  state.count = r.in(1).elements();
  state.inner = data.elements(axis + 1, data.rank());
  state.dtype = r.inputs[0].dtype;
  state.indices.narrow = r.inputs[1].dtype == DType::kInt32;
  if (!IsReal(state.dtype) || r.inputs[2].dtype != state.dtype || !Countable(state.rows) ||
      !Countable(state.count) || r.in(0).elements() != state.outer * state.count * state.inner) {
    return Unserved(r);
  }
  const bool any_order = AnyOrder(context, ScatterOp::kAdd, state.dtype);
  Kernel kernel = FaultingKernel(r, "index", [state, any_order](const KernelCall& call) {
    GatherGradCall now = state;
    now.dy = In(call, 0);
    now.indices.data = In(call, 1);
    now.indices.fault = FaultOf(call);
    now.result = Out(call, 0);
    return any_order ? AddRows(now, StreamOf(call))
                     : GatherGrad(now, call.workspace, StreamOf(call));
  });
  if (!any_order) kernel.workspace_bytes = ScatterWorkspace(state.count);
  return kernel;
}

}  // namespace

void RegisterScatter(const Context& context, KernelTable& table) {
  const char* types = "all but packed and strings; reductions: numeric";
  const auto with = [&](auto make) -> KernelFactory {
    return [context, make](const KernelRequest& r) { return make(context, r); };
  };
  table.Add("ScatterElements", {"cuda", 11, with(MakeScatterElements), types});
  table.Add("ScatterND", {"cuda", 11, with(MakeScatterND), types});
  table.Add("TensorScatter", {"cuda", 24, MakeTensorScatter, "all but packed and strings"});
  table.Add("GatherGrad", {"cuda", 1, with(MakeGatherGrad), "float, double, float16, bfloat16"},
            kOnwardDomain);
}

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// The index family but scattering.
#include "core/cuda/register.h"

#include <limits>
#include <vector>

#include "core/base/status.h"
#include "core/cuda/index/factories.h"
#include "core/cuda/index/index.h"
#include "core/cuda/request.h"

namespace onward::cuda {

absl::Status CheckIndices(const KernelRequest& r, int input, int64_t bound) {
  const ValueSpec& value = r.inputs[input];
  if (value.dtype != DType::kInt32 && value.dtype != DType::kInt64) return Unserved(r);
  if (value.constant == nullptr) return absl::OkStatus();
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, ConstantInts(r, input));
  for (const int64_t index : indices) {
    if (index < -bound || index >= bound) return Unserved(r);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> AxisOf(const KernelRequest& r, int64_t standard, int rank) {
  const absl::StatusOr<int> axis = NormalizeAxis(r.node.Int("axis", standard), rank);
  if (!axis.ok()) return Unserved(r);
  return axis;
}

absl::StatusOr<ElementsCall> ElementsOf(const KernelRequest& r) {
  const Shape &data = r.in(0), &indices = r.in(1);
  ElementsCall call;
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(r, 0, data.rank()));
  bool fits = data.rank() == indices.rank() && data.rank() <= StridedGrid::kMostDims;
  for (int i = 0; fits && i < data.rank(); ++i) fits = i == axis || indices[i] <= data[i];
  call.bytes = BytesOf(r.inputs[0].dtype);
  if (!fits || call.bytes == 0) return Unserved(r);
  ONWARD_RETURN_IF_ERROR(CheckIndices(r, 1, data[axis]));
  const Shape::Dims strides = data.Strides();
  call.grid.rank = data.rank();
  for (int i = 0; i < data.rank(); ++i) {
    call.grid.dims[i] = indices[i];
    call.grid.strides[i] = i == axis ? 0 : strides[i];
  }
  call.elements = indices.elements();
  call.axis_stride = strides[axis];
  call.bound = data[axis];
  call.real = IsReal(r.inputs[0].dtype);
  call.indices.narrow = r.inputs[1].dtype == DType::kInt32;
  return call;
}

namespace {

// Unimplemented where constant tuples point outside of the axes from `first` on.
absl::Status CheckTuples(const KernelRequest& r, int first) {
  if (r.inputs[1].constant == nullptr) return absl::OkStatus();
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, ConstantInts(r, 1));
  const int64_t length = r.in(1)[r.in(1).rank() - 1];
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t bound = r.in(0)[first + static_cast<int>(static_cast<int64_t>(i) % length)];
    if (indices[i] < -bound || indices[i] >= bound) return Unserved(r);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tuples> TuplesOf(const KernelRequest& r, int64_t batch_dims) {
  const Shape &data = r.in(0), &indices = r.in(1);
  const int rank = indices.rank();
  bool fits = r.inputs[1].dtype == DType::kInt64;
  fits = fits && batch_dims >= 0 && batch_dims < rank && batch_dims <= data.rank();
  for (int i = 0; fits && i < batch_dims; ++i) fits = data[i] == indices[i];
  if (!fits || indices[rank - 1] > data.rank() - batch_dims ||
      indices[rank - 1] > StridedGrid::kMostDims) {
    return Unserved(r);
  }
  const int first = static_cast<int>(batch_dims);
  ONWARD_RETURN_IF_ERROR(CheckTuples(r, first));
  const Shape::Dims strides = data.Strides();
  Tuples tuples;
  tuples.length = static_cast<int>(indices[rank - 1]);
  tuples.count = indices.elements(0, rank - 1);
  tuples.per_batch = indices.elements(first, rank - 1);
  tuples.slice = data.elements(first + tuples.length, data.rank());
  tuples.batch_stride = data.elements(first, data.rank());
  for (int k = 0; k < tuples.length; ++k) {
    tuples.bounds[k] = data[first + k];
    tuples.strides[k] = strides[first + k];
  }
  return tuples;
}

namespace {

absl::StatusOr<Kernel> MakeGather(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  const Shape& data = r.in(0);
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(r, 0, data.rank()));
  ONWARD_RETURN_IF_ERROR(CheckIndices(r, 1, data[axis]));
  GatherCall state;
  state.bytes = BytesOf(r.inputs[0].dtype);
  if (state.bytes == 0) return Unserved(r);
  state.outer = data.elements(0, axis);
  state.bound = data[axis];
  state.inner = data.elements(axis + 1, data.rank());
  state.count = r.in(1).elements();
  state.real = IsReal(r.inputs[0].dtype);
  state.indices.narrow = r.inputs[1].dtype == DType::kInt32;
  return FaultingKernel(r, "index", [state](const KernelCall& call) {
    GatherCall now = state;
    now.data = In(call, 0);
    now.indices.data = In(call, 1);
    now.indices.fault = FaultOf(call);
    now.result = Out(call, 0);
    return Gather(now, StreamOf(call));
  });
}

absl::StatusOr<Kernel> MakeGatherElements(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  ONWARD_ASSIGN_OR_RETURN(const ElementsCall state, ElementsOf(r));
  return FaultingKernel(r, "index", [state](const KernelCall& call) {
    ElementsCall now = state;
    now.data = In(call, 0);
    now.indices.data = In(call, 1);
    now.indices.fault = FaultOf(call);
    now.result = Out(call, 0);
    return GatherElements(now, StreamOf(call));
  });
}

absl::StatusOr<Kernel> MakeGatherND(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  ONWARD_ASSIGN_OR_RETURN(const Tuples tuples, TuplesOf(r, r.node.Int("batch_dims", 0)));
  const int bytes = BytesOf(r.inputs[0].dtype);
  if (bytes == 0) return Unserved(r);
  const bool real = IsReal(r.inputs[0].dtype);
  return FaultingKernel(r, "index", [=](const KernelCall& call) {
    Tuples now = tuples;
    now.fault = FaultOf(call);
    return GatherTuples(now, bytes, real, In(call, 0), static_cast<const int64_t*>(In(call, 1)),
                        Out(call, 0), StreamOf(call));
  });
}

// The depth and K are what the shapes of the outputs, which are known, were made from.
absl::StatusOr<Kernel> MakeOneHot(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  const Shape& indices = r.in(0);
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(r, -1, indices.rank() + 1));
  OneHotCall state;
  state.bytes = BytesOf(r.inputs[2].dtype);
  state.indices_dtype = r.inputs[0].dtype;
  if (state.bytes == 0 || !ServesOneHot(state.indices_dtype) || r.in(2) != Shape{2} ||
      r.inputs[2].dtype != r.outputs[0].dtype || r.out(0).rank() != indices.rank() + 1) {
    return Unserved(r);
  }
  state.outer = indices.elements(0, axis);
  state.depth = r.out(0)[axis];
  state.inner = indices.elements(axis, indices.rank());
  return QueuedKernel(r, [state](const KernelCall& call) {
    OneHotCall now = state;
    now.indices = In(call, 0);
    now.values = In(call, 2);
    now.result = Out(call, 0);
    return OneHot(now, StreamOf(call));
  });
}

absl::StatusOr<Kernel> MakeTopK(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  const Shape& data = r.in(0);
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(r, -1, data.rank()));
  const int output = r.HasOutput(0) ? 0 : 1;
  if (!r.HasOutput(output) || r.out(output).rank() != data.rank()) return Unserved(r);
  TopKCall state;
  state.rows = {data.elements(0, axis), data[axis], data.elements(axis + 1, data.rank())};
  state.k = r.out(output)[axis];
  state.largest = r.node.Int("largest", 1) != 0;
  state.dtype = r.inputs[0].dtype;
  if (!ServesTopK(state.dtype, state.rows, state.k)) return Unserved(r);
  return QueuedKernel(r, [state](const KernelCall& call) {
    TopKCall now = state;
    now.data = In(call, 0);
    now.values = Out(call, 0);
    now.indices = static_cast<int64_t*>(Out(call, 1));
    return TopK(now, StreamOf(call));
  });
}

absl::StatusOr<Kernel> MakeReverseSequence(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  const Shape& in = r.in(0);
  const int64_t batch_axis = r.node.Int("batch_axis", 1), time_axis = r.node.Int("time_axis", 0);
  ReverseCall state;
  state.bytes = BytesOf(r.inputs[0].dtype);
  const bool axes = batch_axis + time_axis == 1 && batch_axis * time_axis == 0;
  if (!axes || in.rank() < 2 || state.bytes == 0 || r.inputs[1].dtype != DType::kInt64 ||
      r.in(1) != Shape{in[static_cast<int>(batch_axis)]}) {
    return Unserved(r);
  }
  if (r.inputs[1].constant != nullptr) {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, ConstantInts(r, 1));
    const int64_t longest = in[static_cast<int>(time_axis)];
    for (const int64_t length : lengths) {
      if (length < 0 || length > longest) return Unserved(r);
    }
  }
  state.first = in[0];
  state.second = in[1];
  state.inner = in.elements(2, in.rank());
  state.time_first = time_axis == 0;
  return FaultingKernel(r, "sequence length", [state](const KernelCall& call) {
    ReverseCall now = state;
    now.lengths = static_cast<const int64_t*>(In(call, 1));
    now.fault = FaultOf(call);
    now.data = In(call, 0);
    now.result = Out(call, 0);
    return ReverseSequence(now, StreamOf(call));
  });
}

}  // namespace

void RegisterIndex(const Context& context, KernelTable& table) {
  const char* movable = "all but packed and strings";
  table.Add("Gather", {"cuda", 1, MakeGather, movable});
  table.Add("GatherElements", {"cuda", 11, MakeGatherElements, movable});
  table.Add("GatherND", {"cuda", 11, MakeGatherND, movable});
  table.Add("OneHot", {"cuda", 9, MakeOneHot, movable});
  table.Add("TopK",
            {"cuda", 10, MakeTopK, "float, double, float16, bfloat16, 32 and 64-bit integers"});
  table.Add("ReverseSequence", {"cuda", 10, MakeReverseSequence, movable});
  RegisterScatter(context, table);
}

}  // namespace onward::cuda

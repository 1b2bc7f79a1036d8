// SPDX-License-Identifier: Apache-2.0
// ScatterElements, ScatterND and the gradient of Gather. Where several updates
// meet in one element they are applied in the order of the indices: threads
// share out the destination, never the updates.
#include <algorithm>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/index/index.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

enum class Reduction { kNone, kAdd, kMul, kMin, kMax };

absl::StatusOr<Reduction> ReadReduction(const Node& node) {
  const std::string name = node.String("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "min") return Reduction::kMin;
  if (name == "max") return Reduction::kMax;
  return NodeError(node, absl::StrCat("unknown reduction ", name));
}

// f(a, b) in the arithmetic of T: integers wrap, bool is or/and, NaN wins.
template <Reduction kReduction, typename T>
T Combine(T a, T b) {
  if constexpr (kReduction == Reduction::kNone) {
    return b;
  } else if constexpr (kReduction == Reduction::kMin) {
    return a < b || a != a ? a : b;
  } else if constexpr (kReduction == Reduction::kMax) {
    return a > b || a != a ? a : b;
  } else if constexpr (std::is_same_v<T, bool>) {
    return kReduction == Reduction::kAdd ? a || b : a && b;
  } else if constexpr (std::is_integral_v<T>) {
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(kReduction == Reduction::kAdd ? x + y : x * y);
  } else {
    const ComputeType<T> x = a, y = b;
    return T(kReduction == Reduction::kAdd ? x + y : x * y);
  }
}

// Calls f.template operator()<T, kReduction>(), T being a width for kNone and
// the number type otherwise; false where the type has no arithmetic.
template <typename F>
bool DispatchReduction(DType dtype, Reduction reduction, const F& f) {
  switch (reduction) {
    case Reduction::kNone:
      return DispatchWidth(dtype,
                           [&]<typename T>() { f.template operator()<T, Reduction::kNone>(); });
    case Reduction::kAdd:
      return DispatchNumeric(dtype,
                             [&]<typename T>() { f.template operator()<T, Reduction::kAdd>(); });
    case Reduction::kMul:
      return DispatchNumeric(dtype,
                             [&]<typename T>() { f.template operator()<T, Reduction::kMul>(); });
    case Reduction::kMin:
      return DispatchNumeric(dtype,
                             [&]<typename T>() { f.template operator()<T, Reduction::kMin>(); });
    case Reduction::kMax:
      return DispatchNumeric(dtype,
                             [&]<typename T>() { f.template operator()<T, Reduction::kMax>(); });
  }
  return false;
}

absl::Status CheckReduction(const KernelRequest& request, Reduction reduction) {
  const DType dtype = request.inputs[0].dtype;
  if (DispatchReduction(dtype, reduction, []<typename T, Reduction kReduction>() {})) {
    return absl::OkStatus();
  }
  return NodeUnimplemented(
      request.node, absl::StrCat("no kernel for ", std::string(DTypeName(dtype)),
                                 " with reduction ", request.node.String("reduction", "none")));
}

// Rows of updates along the last axis; see GatherElements.
struct UpdateRows {
  Shape::Dims dims, update_strides, data_strides;  // the axis has data stride 0
  int64_t axis_stride = 1, bound = 0;
  int64_t lead = 1;  // independent groups of rows: the dims before the axis
  int64_t rows_per_lead = 1;
  bool last_axis = false;
};

// Indices of either type.
struct IndexReader {
  explicit IndexReader(const Tensor& index)
      : narrow(index.dtype() == DType::kInt32 ? index.data<int32_t>() : nullptr),
        wide(narrow == nullptr ? index.data<int64_t>() : nullptr) {}
  int64_t operator()(int64_t i) const { return narrow != nullptr ? narrow[i] : wide[i]; }

  const int32_t* narrow;
  const int64_t* wide;
};

struct ScatterCall {
  const UpdateRows& rows;
  void* data;
  IndexReader index;
  const void* updates;
};

// Columns [begin, end) of the row of updates at `from`, whose data is at `to`. Only
// this is compiled per type and reduction.
using RowBody = void (*)(const ScatterCall& call, int64_t from, int64_t to, int64_t begin,
                         int64_t end);

template <Reduction kReduction, typename T>
void ScatterRow(const ScatterCall& call, int64_t from, int64_t to, int64_t begin, int64_t end) {
  const UpdateRows& u = call.rows;
  T* dst = static_cast<T*>(call.data) + to;
  const T* updates = static_cast<const T*>(call.updates) + from;
  const int64_t step = u.last_axis ? 0 : 1;
  for (int64_t k = begin; k < end; ++k) {
    T& x = dst[FromFront(call.index(from + k), u.bound) * u.axis_stride + k * step];
    x = Combine<kReduction>(x, updates[k]);
  }
}

void ScatterRows(const ScatterCall& call, RowBody body) {
  const UpdateRows& u = call.rows;
  const int outer = static_cast<int>(u.dims.size()) - 1;
  const int64_t columns = u.dims[outer];
  auto apply = [&](int64_t row_begin, int64_t row_end, int64_t begin, int64_t end) {
    ForRows(u.dims, u.update_strides, u.data_strides, outer, row_begin, row_end,
            [&](int64_t from, int64_t to) { body(call, from, to, begin, end); });
  };
  const int64_t rows = u.lead * u.rows_per_lead;
  if (u.last_axis || u.lead >= Threads()) {
    ParallelFor(u.lead, RowGrain<float>(u.rows_per_lead * columns),
                [&](int64_t begin, int64_t end) {
                  apply(begin * u.rows_per_lead, end * u.rows_per_lead, 0, columns);
                });
  } else {
    ParallelFor(columns, RowGrain<float>(rows),
                [&](int64_t begin, int64_t end) { apply(0, rows, begin, end); });
  }
}

absl::StatusOr<Kernel> MakeScatterElements(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 3));
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, 0, {2}));
  ONWARD_RETURN_IF_ERROR(CheckIndexType(request, 1));
  ONWARD_ASSIGN_OR_RETURN(const Reduction reduction, ReadReduction(request.node));
  ONWARD_RETURN_IF_ERROR(CheckReduction(request, reduction));
  const Shape data = request.in(0);
  const Shape& indices = request.in(1);
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", 0), data.rank());
  if (!axis.ok()) return AtNode(request.node, axis.status());
  ONWARD_RETURN_IF_ERROR(CheckElementShapes(request.node, data, indices, *axis));
  if (request.in(2) != indices) {
    return NodeError(request.node, absl::StrCat("updates have shape ", request.in(2).ToString(),
                                                ", indices ", indices.ToString()));
  }
  UpdateRows u;
  u.dims.assign(indices.begin(), indices.end());
  u.update_strides = indices.Strides();
  u.data_strides = data.Strides();
  u.axis_stride = u.data_strides[*axis];
  u.data_strides[*axis] = 0;
  u.bound = data[*axis];
  u.last_axis = *axis + 1 == data.rank();
  u.lead = indices.elements(0, *axis);
  u.rows_per_lead = u.last_axis ? 1 : indices.elements(*axis, indices.rank() - 1);
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(data));
  Kernel kernel;
  kernel.in_place = {{0, 0}};
  kernel.run = [slot, data, u, reduction,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    const Tensor& index = *call.inputs[1];
    ONWARD_RETURN_IF_ERROR(CheckIndices(*node, index, u.bound));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, data));
    CopyAll(*output, *call.inputs[0]);
    if (index.elements() == 0) return absl::OkStatus();
    RowBody body = nullptr;
    DispatchReduction(output->dtype(), reduction, [&]<typename T, Reduction kReduction>() {
      body = ScatterRow<kReduction, T>;
    });
    ScatterRows({u, output->raw(), IndexReader(index), call.inputs[2]->raw()}, body);
    return absl::OkStatus();
  };
  return kernel;
}

// Combines elements [begin, end) of a slice with those of an update.
using SliceBody = void (*)(void* to, int64_t to_at, const void* from, int64_t from_at,
                           int64_t begin, int64_t end);

template <Reduction kReduction, typename T>
void ScatterSlice(void* to, int64_t to_at, const void* from, int64_t from_at, int64_t begin,
                  int64_t end) {
  T* x = static_cast<T*>(to) + to_at;
  const T* update = static_cast<const T*>(from) + from_at;
  for (int64_t k = begin; k < end; ++k) x[k] = Combine<kReduction>(x[k], update[k]);
}

void ScatterSlices(const Tuples& tuples, void* dst, const int64_t* offsets, const void* updates,
                   SliceBody body) {
  const int64_t slice = tuples.slice;
  const bool small = tuples.count * slice < 2 * MoveGrain<float>();
  auto apply = [&](int64_t i, int64_t begin, int64_t end) {
    body(dst, offsets[i], updates, i * slice, begin, end);
  };
  // Wide slices are cut, so that each thread has its columns of all of them;
  // for narrow ones each thread has a part of the destination.
  if (small || slice >= 256) {
    ParallelFor(slice, small ? slice : 128, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < tuples.count; ++i) apply(i, begin, end);
    });
    return;
  }
  const int64_t all = tuples.data.elements();
  ParallelFor(all, MoveGrain<float>(), [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < tuples.count; ++i) {
      if (offsets[i] >= begin && offsets[i] < end) apply(i, 0, slice);
    }
  });
}

absl::StatusOr<Kernel> MakeScatterND(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 3));
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, 0, {2}));
  ONWARD_ASSIGN_OR_RETURN(const Reduction reduction, ReadReduction(request.node));
  ONWARD_RETURN_IF_ERROR(CheckReduction(request, reduction));
  if (request.inputs[1].dtype != DType::kInt64) {
    return NodeError(request.node, "indices must be int64");
  }
  const Shape data = request.in(0);
  const Shape& indices = request.in(1);
  ONWARD_ASSIGN_OR_RETURN(const Tuples tuples, PlanTuples(request.node, data, indices, 0));
  if (request.in(2).elements() != tuples.count * tuples.slice) {
    return NodeError(request.node, absl::StrCat("updates of shape ", request.in(2).ToString(),
                                                " do not fit indices of shape ", indices.ToString(),
                                                " and data of shape ", data.ToString()));
  }
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(data));
  Kernel kernel;
  kernel.in_place = {{0, 0}};
  kernel.workspace_bytes = tuples.count * sizeof(int64_t);
  kernel.run = [slot, data, tuples, reduction,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    int64_t* offsets = static_cast<int64_t*>(call.workspace);
    ONWARD_RETURN_IF_ERROR(ResolveTuples(*node, tuples, call.inputs[1]->data<int64_t>(), offsets));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, data));
    CopyAll(*output, *call.inputs[0]);
    SliceBody body = nullptr;
    DispatchReduction(output->dtype(), reduction, [&]<typename T, Reduction kReduction>() {
      body = ScatterSlice<kReduction, T>;
    });
    ScatterSlices(tuples, output->raw(), offsets, call.inputs[2]->raw(), body);
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterScatterKernels(KernelTable& table) {
  const std::string types = "all but packed; reductions: numeric";
  table.Add("ScatterElements", {"reference", 11, MakeScatterElements, types, false, LikeInput(0)});
  table.Add("ScatterND", {"reference", 11, MakeScatterND, types, false, LikeInput(0)});
}

}  // namespace onward

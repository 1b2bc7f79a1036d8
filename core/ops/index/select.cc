// SPDX-License-Identifier: Apache-2.0
// OneHot, NonZero, Compress and ReverseSequence.
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/index/index.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

constexpr int64_t kNone = -1;

struct OneHotPlan {
  Shape shape;
  int64_t depth = 0;
};

absl::StatusOr<OneHotPlan> PlanOneHot(const Node& node, const Shape& indices, int axis,
                                      const Tensor& depth) {
  const absl::StatusOr<std::vector<double>> value = ToDoubles(depth);
  if (!value.ok()) return AtNode(node, value.status());
  if (value->size() != 1 || !((*value)[0] >= 0) || !((*value)[0] < 0x1p48)) {
    return NodeError(node, absl::StrCat("depth must be one number of at least 0, got a tensor of ",
                                        "shape ", depth.shape().ToString(),
                                        value->empty() ? "" : absl::StrCat(" with ", (*value)[0])));
  }
  OneHotPlan plan;
  plan.depth = static_cast<int64_t>((*value)[0]);
  for (int i = 0; i < axis; ++i) plan.shape.push_back(indices[i]);
  plan.shape.push_back(plan.depth);
  for (int i = axis; i < indices.rank(); ++i) plan.shape.push_back(indices[i]);
  const absl::StatusOr<int64_t> elements = CheckedElements(plan.shape.dims());
  if (!elements.ok()) return AtNode(node, elements.status());
  return plan;
}

// Where an index puts the hot element; kNone outside [-depth, depth).
template <typename T>
int64_t HotPlace(T index, int64_t depth) {
  if constexpr (std::is_unsigned_v<T>) {
    return index < static_cast<uint64_t>(depth) ? static_cast<int64_t>(index) : kNone;
  } else if constexpr (std::is_integral_v<T>) {
    return index < -depth || index >= depth ? kNone : FromFront(index, depth);
  } else {
    const double v = std::trunc(static_cast<double>(index));
    const double bound = static_cast<double>(depth);
    return v >= -bound && v < bound ? FromFront(static_cast<int64_t>(v), depth) : kNone;
  }
}

void HotPlaces(const Tensor& indices, int64_t depth, int64_t* places) {
  DispatchNumeric(indices.dtype(), [&]<typename T>() {
    const T* index = indices.data<T>();
    for (int64_t i = 0; i < indices.elements(); ++i) places[i] = HotPlace(index[i], depth);
  });
}

template <typename T>
void FillOneHot(T* out, const int64_t* places, const T* values, int64_t outer, int64_t depth,
                int64_t inner) {
  const T off = values[0], on = values[1];
  auto set = [&](int64_t o) {
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t place = places[o * inner + i];
      if (place != kNone) out[(o * depth + place) * inner + i] = on;
    }
  };
  const int64_t block = depth * inner;
  if (outer >= Threads()) {
    ParallelFor(outer, RowGrain<T>(block), [&](int64_t begin, int64_t end) {
      std::fill(out + begin * block, out + end * block, off);
      for (int64_t o = begin; o < end; ++o) set(o);
    });
    return;
  }
  ParallelFor(outer * block, MoveGrain<T>(),
              [&](int64_t begin, int64_t end) { std::fill(out + begin, out + end, off); });
  for (int64_t o = 0; o < outer; ++o) set(o);
}

absl::StatusOr<Kernel> MakeOneHot(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 3));
  const Shape indices = request.in(0);
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", -1), indices.rank() + 1);
  if (!axis.ok()) return AtNode(request.node, axis.status());
  if (request.in(2) != Shape{2} || request.inputs[2].dtype != request.outputs[0].dtype) {
    return NodeError(request.node, absl::StrCat("values must be [off, on] of the output's type, "
                                                "got shape ",
                                                request.in(2).ToString()));
  }
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[2].dtype));
  if (!DispatchNumeric(request.inputs[0].dtype, []<typename T>() {})) {
    return NodeUnimplemented(request.node,
                             absl::StrCat("no kernel for indices of type ",
                                          std::string(DTypeName(request.inputs[0].dtype))));
  }
  auto make = [node = KeepNode(request.node), indices,
               axis = *axis](absl::Span<const Tensor* const> inputs) {
    return PlanOneHot(*node, indices, axis, *inputs[1]);
  };
  auto run = [outer = indices.elements(0, *axis), inner = indices.elements(*axis, indices.rank())](
                 const OneHotPlan& plan, const KernelCall& call, Tensor& output) {
    int64_t* places = static_cast<int64_t*>(call.workspace);
    HotPlaces(*call.inputs[0], plan.depth, places);
    DispatchWidth(output.dtype(), [&]<typename T>() {
      FillOneHot(output.data<T>(), places, call.inputs[2]->data<T>(), outer, plan.depth, inner);
    });
    return absl::OkStatus();
  };
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, PlannedKernel<OneHotPlan>(request, {1}, make, run));
  kernel.workspace_bytes = indices.elements() * sizeof(int64_t);
  return kernel;
}

// Where elements of two parts have one that is not zero.
template <typename T>
void AddComplex(const T* parts, int64_t n, std::vector<int64_t>* positions) {
  for (int64_t i = 0; i < n; ++i) {
    if (parts[2 * i] != T(0) || parts[2 * i + 1] != T(0)) positions->push_back(i);
  }
}

// Flat positions of the elements that are not zero (strings: not empty).
absl::StatusOr<std::vector<int64_t>> NonZeroPositions(const Node& node, const Tensor& t) {
  std::vector<int64_t> positions;
  const int64_t n = t.elements();
  if (t.dtype() == DType::kString) {
    const std::string* s = t.data<std::string>();
    for (int64_t i = 0; i < n; ++i) {
      if (!s[i].empty()) positions.push_back(i);
    }
    return positions;
  }
  if (t.dtype() == DType::kComplex64) {
    AddComplex(t.data<float>(), n, &positions);
    return positions;
  }
  if (t.dtype() == DType::kComplex128) {
    AddComplex(t.data<double>(), n, &positions);
    return positions;
  }
  const bool known = DispatchNumeric(t.dtype(), [&]<typename T>() {
    const T* x = t.data<T>();
    for (int64_t i = 0; i < n; ++i) {
      if (static_cast<ComputeType<T>>(x[i]) != ComputeType<T>(0)) positions.push_back(i);
    }
  });
  if (known) return positions;
  return NodeUnimplemented(node, absl::StrCat("no kernel for ", std::string(DTypeName(t.dtype()))));
}

absl::StatusOr<Kernel> MakeNonZero(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Shape in = request.in(0);
  const OutputSlot slot(request, 0);
  Kernel kernel;
  kernel.run = [slot, in, node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> positions,
                            NonZeroPositions(*node, *call.inputs[0]));
    const int64_t n = static_cast<int64_t>(positions.size());
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, Shape{in.rank(), n}));
    int64_t* out = output->data<int64_t>();
    int64_t below = 1;
    for (int axis = in.rank() - 1; axis >= 0; --axis) {
      const int64_t size = in[axis];
      for (int64_t i = 0; i < n; ++i) out[axis * n + i] = positions[i] / below % size;
      below *= size;
    }
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeCompress(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  if (request.inputs[1].dtype != DType::kBool) {
    return NodeError(request.node, "condition must be bool");
  }
  // Without an axis the input counts as flat.
  Shape in = request.in(0);
  if (!request.node.Has("axis")) in = Shape{in.elements()};
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", 0), in.rank());
  if (!axis.ok()) return AtNode(request.node, axis.status());
  const OutputSlot slot(request, 0);
  Kernel kernel;
  kernel.run = [slot, in, axis = *axis,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    const absl::Span<const bool> condition = call.inputs[1]->values<bool>();
    std::vector<int64_t> positions;
    for (size_t i = 0; i < condition.size(); ++i) {
      if (condition[i]) positions.push_back(static_cast<int64_t>(i));
    }
    if (!positions.empty() && positions.back() >= in[axis]) {
      return NodeError(
          *node, absl::StrCat("condition selects element ", positions.back(), " of ", in[axis]));
    }
    const int64_t n = static_cast<int64_t>(positions.size());
    Shape out = in;
    out[axis] = n;
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, out));
    if (output->elements() == 0) return absl::OkStatus();
    DispatchWidth(output->dtype(), [&]<typename T>() {
      TakeRows(output->data<T>(), call.inputs[0]->data<T>(), positions.data(), in.elements(0, axis),
               n, in.elements(axis + 1, in.rank()), in[axis]);
    });
    return absl::OkStatus();
  };
  return kernel;
}

// The input is [d0, d1, inner]; time is axis 0 or 1, batch the other one.
template <typename T>
void ReverseLanes(T* dst, const T* src, const int64_t* lengths, const Shape& in, bool time_first) {
  const int64_t inner = in.elements(2, in.rank());
  ParallelFor(in[0] * in[1], RowGrain<T>(inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row / in[1], second = row % in[1];
      const int64_t time = time_first ? first : second;
      const int64_t length = lengths[time_first ? second : first];
      const int64_t from = time < length ? length - 1 - time : time;
      const int64_t source = time_first ? from * in[1] + second : first * in[1] + from;
      CopyRun(dst + row * inner, src + source * inner, inner);
    }
  });
}

absl::StatusOr<Kernel> MakeReverseSequence(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  const Shape in = request.in(0);
  const int64_t batch_axis = request.node.Int("batch_axis", 1);
  const int64_t time_axis = request.node.Int("time_axis", 0);
  if (in.rank() < 2 || std::min(batch_axis, time_axis) != 0 ||
      std::max(batch_axis, time_axis) != 1) {
    return NodeError(request.node, absl::StrCat("time_axis ", time_axis, " and batch_axis ",
                                                batch_axis, " must be 0 and 1 or 1 and 0, and ",
                                                "the input ", in.ToString(), " of rank 2 or more"));
  }
  if (request.inputs[1].dtype != DType::kInt64 || request.in(1) != Shape{in[batch_axis]}) {
    return NodeError(request.node,
                     absl::StrCat("sequence_lens must be int64 of shape [", in[batch_axis],
                                  "], got ", request.in(1).ToString()));
  }
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(in));
  Kernel kernel;
  kernel.run = [slot, in, time_axis,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    const absl::Span<const int64_t> lengths = call.inputs[1]->values<int64_t>();
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] < 0 || lengths[i] > in[time_axis]) {
        return NodeError(*node, absl::StrCat("sequence_lens[", i, "] is ", lengths[i],
                                             ", outside [0, ", in[time_axis], "]"));
      }
    }
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, in));
    if (output->elements() == 0) return absl::OkStatus();
    DispatchWidth(output->dtype(), [&]<typename T>() {
      ReverseLanes(output->data<T>(), call.inputs[0]->data<T>(), lengths.data(), in,
                   time_axis == 0);
    });
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterSelectKernels(KernelTable& table) {
  table.Add("OneHot", {"reference", 9, MakeOneHot, "all but packed"});
  table.Add("NonZero", {"reference", 9, MakeNonZero, "numeric, complex, bool, string"});
  table.Add("Compress", {"reference", 9, MakeCompress, "all but packed"});
  table.Add("ReverseSequence", {"reference", 10, MakeReverseSequence, "all but packed"});
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements and GatherND, and the checks of indices that the
// other kernels of the family share.
#include "core/ops/index/index.h"

#include <atomic>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/cpu/register.h"

namespace onward {
namespace {

constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

constexpr int64_t kCheckGrain = 16384;

// The first i in [0, n) for which bad(i), or kNowhere; the same whatever the
// number of threads.
template <typename Bad>
int64_t FirstBad(int64_t n, int64_t grain, const Bad& bad) {
  std::atomic<int64_t> first{kNowhere};
  ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (!bad(i)) continue;
      int64_t seen = first.load();
      while (i < seen && !first.compare_exchange_weak(seen, i)) {
      }
      return;
    }
  });
  return first.load();
}

// The first index outside [-bound, bound), or kNowhere. Looks at many at a time, and which
// one it was only then.
template <typename I>
int64_t FirstOutside(const I* index, int64_t n, int64_t bound) {
  constexpr int64_t kPiece = 512;
  // Below zero, as a signed number, where the index lies outside: one of the terms is.
  const auto sign = [&](int64_t i) {
    const auto at = static_cast<uint64_t>(static_cast<int64_t>(index[i]));
    const auto end = static_cast<uint64_t>(bound);
    return (at + end) | (end - 1 - at);
  };
  constexpr uint64_t kNegative = uint64_t{1} << 63;
  const int64_t piece = FirstBad((n + kPiece - 1) / kPiece, kCheckGrain / kPiece, [&](int64_t p) {
    const int64_t end = std::min(n, (p + 1) * kPiece);
    uint64_t any = 0;
#pragma omp simd reduction(| : any)
    for (int64_t i = p * kPiece; i < end; ++i) any |= sign(i);
    return (any & kNegative) != 0;
  });
  if (piece == kNowhere) return kNowhere;
  int64_t i = piece * kPiece;
  while ((sign(i) & kNegative) == 0) ++i;
  return i;
}

absl::Status OutOfBounds(const Node& node, int64_t index, int64_t position, int64_t bound) {
  return NodeError(node, absl::StrCat("index ", index, " at position ", position, " is outside [-",
                                      bound, ", ", bound, ")"));
}

absl::StatusOr<Shape> GatheredShape(const KernelRequest& request, int) {
  const Shape &data = request.in(0), &indices = request.in(1);
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", 0), data.rank());
  if (!axis.ok()) return AtNode(request.node, axis.status());
  Shape out;
  for (int i = 0; i < *axis; ++i) out.push_back(data[i]);
  for (int64_t d : indices) out.push_back(d);
  for (int i = *axis + 1; i < data.rank(); ++i) out.push_back(data[i]);
  return out;
}

absl::StatusOr<Kernel> MakeGather(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  ONWARD_RETURN_IF_ERROR(CheckIndexType(request, 1));
  ONWARD_ASSIGN_OR_RETURN(const Shape out, GatheredShape(request, 0));
  const Shape& data = request.in(0);
  const int axis = *NormalizeAxis(request.node.Int("axis", 0), data.rank());
  const int64_t outer = data.elements(0, axis), bound = data[axis];
  const int64_t inner = data.elements(axis + 1, data.rank());
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(out));
  Kernel kernel;
  kernel.run = [slot, out, outer, bound, inner,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    const Tensor& index = *call.inputs[1];
    ONWARD_RETURN_IF_ERROR(CheckIndices(*node, index, bound));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, out));
    if (output->elements() == 0) return absl::OkStatus();
    DispatchWidth(output->dtype(), [&]<typename T>() {
      DispatchIndex(index.dtype(), [&]<typename I>() {
        TakeRows(output->data<T>(), call.inputs[0]->data<T>(), index.data<I>(), outer,
                 index.elements(), inner, bound);
      });
    });
    return absl::OkStatus();
  };
  return kernel;
}

// out[.., i, ..] = data[.., indices[.., i, ..], ..]: a row of the result reads
// from one place in `data`, moved along the axis by each index.
struct ElementRows {
  Shape::Dims dims, out_strides, data_strides;  // the axis has data stride 0
  int64_t axis_stride = 1, bound = 0;
  bool last_axis = false;
};

// Calls use(i, place) for each element i of the result and its place in `data`.
template <typename I, typename Use>
void ForElements(const ElementRows& e, int64_t grain, const I* index, const Use& use) {
  const int outer = static_cast<int>(e.dims.size()) - 1;
  const int64_t n = e.dims[outer];
  int64_t rows = 1;
  for (int i = 0; i < outer; ++i) rows *= e.dims[i];
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    ForRows(e.dims, e.out_strides, e.data_strides, outer, begin, end, [&](int64_t d, int64_t s) {
      const int64_t step = e.last_axis ? 0 : 1;
      for (int64_t k = 0; k < n; ++k) {
        use(d + k, s + FromFront(index[d + k], e.bound) * e.axis_stride + k * step);
      }
    });
  });
}

// The places of indices that never change and are none of them wrong: then all is known but
// the values. Empty where they have to be looked at in every run.
std::vector<int32_t> FixedPlaces(const KernelRequest& request, const ElementRows& e) {
  const Tensor* index = request.inputs[1].constant;
  if (index == nullptr || request.in(0).elements() > std::numeric_limits<int32_t>::max() ||
      !CheckIndices(request.node, *index, e.bound).ok()) {
    return {};
  }
  std::vector<int32_t> places(index->elements());
  DispatchIndex(index->dtype(), [&]<typename I>() {
    ForElements(e, RowGrain<int32_t>(e.dims.back()), index->data<I>(),
                [&](int64_t i, int64_t place) { places[i] = static_cast<int32_t>(place); });
  });
  return places;
}

absl::StatusOr<Kernel> MakeGatherElements(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  ONWARD_RETURN_IF_ERROR(CheckIndexType(request, 1));
  const Shape& data = request.in(0);
  const Shape out = request.in(1);
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", 0), data.rank());
  if (!axis.ok()) return AtNode(request.node, axis.status());
  ONWARD_RETURN_IF_ERROR(CheckElementShapes(request.node, data, out, *axis));
  ElementRows e;
  e.dims.assign(out.begin(), out.end());
  e.out_strides = out.Strides();
  e.data_strides = data.Strides();
  e.axis_stride = e.data_strides[*axis];
  e.data_strides[*axis] = 0;
  e.bound = data[*axis];
  e.last_axis = *axis + 1 == data.rank();
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(out));
  Kernel kernel;
  kernel.run = [slot, out, e, places = FixedPlaces(request, e),
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    const Tensor& index = *call.inputs[1];
    if (places.empty()) ONWARD_RETURN_IF_ERROR(CheckIndices(*node, index, e.bound));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, out));
    if (output->elements() == 0) return absl::OkStatus();
    DispatchWidth(output->dtype(), [&]<typename T>() {
      T* dst = output->data<T>();
      const T* src = call.inputs[0]->data<T>();
      if (!places.empty()) {
        TakeRows(dst, src, places.data(), 1, output->elements(), 1, 0);
        return;
      }
      DispatchIndex(index.dtype(), [&]<typename I>() {
        ForElements(e, RowGrain<T>(e.dims.back()), index.data<I>(),
                    [&](int64_t i, int64_t place) { dst[i] = src[place]; });
      });
    });
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeGatherND(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  const Shape& data = request.in(0);
  const Shape& indices = request.in(1);
  const int64_t batch_dims = request.node.Int("batch_dims", 0);
  if (request.inputs[1].dtype != DType::kInt64 || batch_dims < 0 || batch_dims > data.rank()) {
    return NodeError(request.node, absl::StrCat("needs int64 indices and batch_dims in [0, ",
                                                data.rank(), "], got ", batch_dims));
  }
  ONWARD_ASSIGN_OR_RETURN(const Tuples tuples,
                          PlanTuples(request.node, data, indices, static_cast<int>(batch_dims)));
  Shape out;
  for (int i = 0; i + 1 < indices.rank(); ++i) out.push_back(indices[i]);
  for (int i = static_cast<int>(batch_dims + tuples.length); i < data.rank(); ++i) {
    out.push_back(data[i]);
  }
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(out));
  Kernel kernel;
  kernel.workspace_bytes = tuples.count * sizeof(int64_t);
  kernel.run = [slot, out, tuples,
                node = KeepNode(request.node)](const KernelCall& call) -> absl::Status {
    int64_t* offsets = static_cast<int64_t*>(call.workspace);
    ONWARD_RETURN_IF_ERROR(ResolveTuples(*node, tuples, call.inputs[1]->data<int64_t>(), offsets));
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, out));
    DispatchWidth(output->dtype(), [&]<typename T>() {
      T* dst = output->data<T>();
      const T* src = call.inputs[0]->data<T>();
      ParallelFor(tuples.count, RowGrain<T>(tuples.slice), [&](int64_t begin, int64_t end) {
        if (tuples.slice == 1) {
          for (int64_t i = begin; i < end; ++i) dst[i] = src[offsets[i]];
          return;
        }
        for (int64_t i = begin; i < end; ++i) {
          CopyRun(dst + i * tuples.slice, src + offsets[i], tuples.slice);
        }
      });
    });
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

absl::Status CheckIndexType(const KernelRequest& request, int input) {
  const DType dtype = request.inputs[input].dtype;
  if (DispatchIndex(dtype, []<typename I>() {})) return absl::OkStatus();
  return NodeUnimplemented(request.node, absl::StrCat("indices must be int32 or int64, got ",
                                                      std::string(DTypeName(dtype))));
}

absl::Status CheckElementShapes(const Node& node, const Shape& data, const Shape& indices,
                                int axis) {
  bool fits = data.rank() == indices.rank();
  for (int i = 0; fits && i < data.rank(); ++i) fits = i == axis || indices[i] <= data[i];
  if (fits) return absl::OkStatus();
  return NodeError(
      node, absl::StrCat("indices of shape ", indices.ToString(), " do not fit data of shape ",
                         data.ToString(), " outside axis ", axis));
}

absl::Status CheckIndices(const Node& node, const Tensor& indices, int64_t bound) {
  int64_t bad = kNowhere, value = 0;
  DispatchIndex(indices.dtype(), [&]<typename I>() {
    const I* index = indices.data<I>();
    bad = FirstOutside(index, indices.elements(), bound);
    if (bad != kNowhere) value = index[bad];
  });
  return bad == kNowhere ? absl::OkStatus() : OutOfBounds(node, value, bad, bound);
}

absl::StatusOr<Tuples> PlanTuples(const Node& node, const Shape& data, const Shape& indices,
                                  int batch_dims) {
  const int rank = indices.rank();
  bool fits = rank > batch_dims && data.rank() >= batch_dims;
  for (int i = 0; fits && i < batch_dims; ++i) fits = data[i] == indices[i];
  if (!fits || indices[rank - 1] > data.rank() - batch_dims) {
    return NodeError(node, absl::StrCat("indices of shape ", indices.ToString(),
                                        " do not address data of shape ", data.ToString(), " with ",
                                        batch_dims, " batch dimensions"));
  }
  Tuples tuples;
  tuples.data = data;
  tuples.batch_dims = batch_dims;
  tuples.batches = indices.elements(0, batch_dims);
  tuples.count = indices.elements(0, rank - 1);
  tuples.length = indices[rank - 1];
  tuples.slice = data.elements(batch_dims + static_cast<int>(tuples.length), data.rank());
  return tuples;
}

absl::Status ResolveTuples(const Node& node, const Tuples& tuples, const int64_t* indices,
                           int64_t* offsets) {
  if (tuples.count == 0) return absl::OkStatus();
  const Shape::Dims strides = tuples.data.Strides();
  const int64_t per_batch = tuples.count / tuples.batches;
  const int64_t batch_stride = tuples.data.elements(tuples.batch_dims, tuples.data.rank());
  const int64_t bad = FirstBad(tuples.count, kCheckGrain, [&](int64_t i) {
    int64_t offset = i / per_batch * batch_stride;
    for (int64_t k = 0; k < tuples.length; ++k) {
      const int axis = tuples.batch_dims + static_cast<int>(k);
      const int64_t bound = tuples.data[axis];
      const int64_t index = indices[i * tuples.length + k];
      if (index < -bound || index >= bound) return true;
      offset += FromFront(index, bound) * strides[axis];
    }
    offsets[i] = offset;
    return false;
  });
  if (bad == kNowhere) return absl::OkStatus();
  for (int64_t k = 0;; ++k) {
    const int64_t bound = tuples.data[tuples.batch_dims + static_cast<int>(k)];
    const int64_t index = indices[bad * tuples.length + k];
    if (index < -bound || index >= bound) {
      return OutOfBounds(node, index, bad * tuples.length + k, bound);
    }
  }
}

void RegisterIndexKernels(KernelTable& table) {
  table.Add("Gather", {"reference", 1, MakeGather, "all but packed", false, GatheredShape});
  table.Add("GatherElements",
            {"reference", 11, MakeGatherElements, "all but packed", false, LikeInput(1)});
  table.Add("GatherND", {"reference", 11, MakeGatherND, "all but packed"});
  RegisterScatterKernels(table);
  RegisterTensorScatterKernels(table);
  RegisterGatherGradKernels(table);
  RegisterSelectKernels(table);
  RegisterSortKernels(table);
}

}  // namespace onward

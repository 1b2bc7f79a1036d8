// SPDX-License-Identifier: Apache-2.0
// Launches of the index family. Indices are on the device: what lies outside its bounds is
// reported, and not read or written; an element that has nowhere to come from has all bits set
// (NaN) where it is a floating-point number, else none.
#ifndef ONWARD_CORE_CUDA_INDEX_INDEX_H_
#define ONWARD_CORE_CUDA_INDEX_INDEX_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/cuda/fault.h"
#include "core/cuda/strided.h"

namespace onward::cuda {

// int32 or int64; negative ones count from the end.
struct Indices {
  const void* data = nullptr;
  bool narrow = false;
  FaultPlace fault;
};

// result[o, i, :] = data[o, indices[i], :], where data is [outer, bound, inner].
struct GatherCall {
  int64_t outer = 1, bound = 0, inner = 1, count = 0;
  int bytes = 4;  // of an element
  bool real = true;
  const void* data = nullptr;
  Indices indices;
  void* result = nullptr;
};
cudaError_t Gather(const GatherCall& call, cudaStream_t stream);

// result[.., i, ..] = data[.., indices[.., i, ..], ..]: `grid` walks the result over the data, with
// stride 0 along the axis.
struct ElementsCall {
  StridedGrid grid;
  int64_t elements = 0, axis_stride = 1, bound = 0;
  int bytes = 4;
  bool real = true;
  const void* data = nullptr;
  Indices indices;
  void* result = nullptr;
};
cudaError_t GatherElements(const ElementsCall& call, cudaStream_t stream);

// Index tuples of int64: tuple t of batch b addresses the slice of `slice` elements at
// b * batch_stride + sum(index[k] * strides[k]).
struct Tuples {
  int64_t count = 0, per_batch = 1, slice = 1, batch_stride = 0;
  int length = 0;
  int64_t bounds[StridedGrid::kMostDims] = {};
  int64_t strides[StridedGrid::kMostDims] = {};
  FaultPlace fault;
};
cudaError_t GatherTuples(const Tuples& tuples, int bytes, bool real, const void* data,
                         const int64_t* indices, void* result, cudaStream_t stream);

// Updates that meet in one place are applied in their order. An update goes to a target, which is
// `slice` elements long.
enum class ScatterOp { kNone, kAdd, kMul, kMin, kMax };
bool ServesScatter(ScatterOp op, DType dtype);
size_t ScatterWorkspace(int64_t updates);
// result holds the data already.
cudaError_t ScatterTuples(ScatterOp op, DType dtype, const Tuples& tuples, int64_t targets,
                          const int64_t* indices, const void* updates, void* result,
                          void* workspace, cudaStream_t stream);
// As GatherElements: result[.., indices[.., i, ..], ..] is updated by updates[.., i, ..].
cudaError_t ScatterElements(ScatterOp op, DType dtype, const ElementsCall& call, int64_t targets,
                            const void* updates, void* workspace, cudaStream_t stream);

// dY is [outer, count, inner]; its rows are summed into those of the result [outer, rows, inner].
struct GatherGradCall {
  int64_t outer = 1, rows = 0, count = 0, inner = 1;
  DType dtype = DType::kFloat;
  const void* dy = nullptr;
  Indices indices;
  void* result = nullptr;
};
cudaError_t GatherGrad(const GatherGradCall& call, void* workspace, cudaStream_t stream);

// The sums of these in whatever order they come (core/cuda/index/atomic.cu).
bool HasAtomicSums(DType dtype);
cudaError_t AddRows(const GatherGradCall& call, cudaStream_t stream);
cudaError_t AddTuples(DType dtype, const Tuples& tuples, const int64_t* indices,
                      const void* updates, void* result, cudaStream_t stream);
cudaError_t AddElements(DType dtype, const ElementsCall& call, const void* updates,
                        cudaStream_t stream);

struct OneHotCall {
  int64_t outer = 1, depth = 0, inner = 1;
  DType indices_dtype = DType::kInt64;
  int bytes = 4;
  const void* indices = nullptr;
  const void* values = nullptr;  // off, on
  void* result = nullptr;
};
bool ServesOneHot(DType indices);
cudaError_t OneHot(const OneHotCall& call, cudaStream_t stream);

struct TopKCall {
  AxisRows rows;
  int64_t k = 0;
  bool largest = true;
  DType dtype = DType::kFloat;
  const void* data = nullptr;
  void* values = nullptr;
  int64_t* indices = nullptr;
};
bool ServesTopK(DType dtype, const AxisRows& rows, int64_t k);
cudaError_t TopK(const TopKCall& call, cudaStream_t stream);

// Steps of an update [batch, outer, steps, inner] into a cache [batch, outer, all, inner].
struct TensorScatterCall {
  int64_t batch = 1, outer = 1, inner = 1, all = 0, steps = 0;
  bool circular = false;
  int bytes = 4;
  const int64_t* starts = nullptr;  // null: 0
  FaultPlace fault;
  const void* update = nullptr;
  void* cache = nullptr;
};
cudaError_t TensorScatter(const TensorScatterCall& call, cudaStream_t stream);

// [time, batch, inner] or [batch, time, inner].
struct ReverseCall {
  int64_t first = 0, second = 0, inner = 1;
  bool time_first = true;
  int bytes = 4;
  const int64_t* lengths = nullptr;
  FaultPlace fault;
  const void* data = nullptr;
  void* result = nullptr;
};
cudaError_t ReverseSequence(const ReverseCall& call, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_INDEX_INDEX_H_

// SPDX-License-Identifier: Apache-2.0
// What kernels that read positions from a tensor share, and the parts of the
// index family; RegisterIndexKernels calls them.
#ifndef ONWARD_CORE_OPS_INDEX_INDEX_H_
#define ONWARD_CORE_OPS_INDEX_INDEX_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/ops/movement/movement.h"

namespace onward {

// Calls f.template operator()<I>() for int32 and int64; false for others.
template <typename F>
bool DispatchIndex(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt32: f.template operator()<int32_t>(); return true;
    case DType::kInt64: f.template operator()<int64_t>(); return true;
    default: return false;
  }
}

// Unimplemented unless the input is int32 or int64.
absl::Status CheckIndexType(const KernelRequest& request, int input);

// Fails unless indices has data's rank and, outside the axis, no larger dims.
absl::Status CheckElementShapes(const Node& node, const Shape& data, const Shape& indices,
                                int axis);

// Fails, naming the first position, if a value lies outside [-bound, bound).
absl::Status CheckIndices(const Node& node, const Tensor& indices, int64_t bound);

// An index that CheckIndices accepted, counted from the front.
template <typename I>
int64_t FromFront(I index, int64_t bound) {
  return index < 0 ? static_cast<int64_t>(index) + bound : static_cast<int64_t>(index);
}

// The positions that index tuples (the last axis of `indices`) stand for: tuple
// i of batch b addresses the slice at offsets[i], in elements of `data`.
struct Tuples {
  int64_t count = 0;  // of all batches
  int64_t batches = 1;
  int64_t length = 0;  // indices in one tuple
  int64_t slice = 1;   // elements a tuple addresses
  Shape data;
  int batch_dims = 0;
};
absl::StatusOr<Tuples> PlanTuples(const Node& node, const Shape& data, const Shape& indices,
                                  int batch_dims);
absl::Status ResolveTuples(const Node& node, const Tuples& tuples, const int64_t* indices,
                           int64_t* offsets);

// dst[o, i, :] = src[o, index[i], :] for dst [outer, n, inner] and src
// [outer, bound, inner].
template <typename T, typename I>
void TakeRows(T* dst, const T* src, const I* index, int64_t outer, int64_t n, int64_t inner,
              int64_t bound) {
  ParallelFor(outer * n, RowGrain<T>(inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end;) {
      const int64_t o = row / n;
      const int64_t stop = std::min(end, (o + 1) * n);
      const I* from = index + (row - o * n);
      const T* block = src + o * bound * inner;
      if (inner == 1) {
        for (; row < stop; ++row) dst[row] = block[FromFront(*from++, bound)];
        continue;
      }
      for (; row < stop; ++row) {
        CopyRun(dst + row * inner, block + FromFront(*from++, bound) * inner, inner);
      }
    }
  });
}

void RegisterScatterKernels(KernelTable& table);  // ScatterElements, ScatterND
void RegisterTensorScatterKernels(KernelTable& table);
void RegisterGatherGradKernels(KernelTable& table);  // GatherGrad, GatherGradRows
void RegisterSelectKernels(KernelTable& table);      // OneHot, NonZero, Compress, ReverseSequence
void RegisterSortKernels(KernelTable& table);        // TopK, Unique

}  // namespace onward

#endif  // ONWARD_CORE_OPS_INDEX_INDEX_H_

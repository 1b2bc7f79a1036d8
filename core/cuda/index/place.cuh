// SPDX-License-Identifier: Apache-2.0
// From an index to a place, for device code.
#pragma once

#include "core/cuda/fault.cuh"
#include "core/cuda/index/index.h"
#include "core/cuda/movement/width.h"
#include "core/cuda/types.cuh"

namespace onward::cuda {

// Counted from the front; -1 outside [-bound, bound).
__device__ inline int64_t PlaceOf(int64_t index, int64_t bound) {
  if (index < -bound || index >= bound) return -1;
  return index < 0 ? index + bound : index;
}
__device__ inline int64_t PlaceAt(const Indices& indices, int64_t i, int64_t bound) {
  const int64_t index = indices.narrow ? static_cast<const int32_t*>(indices.data)[i]
                                       : static_cast<const int64_t*>(indices.data)[i];
  const int64_t place = PlaceOf(index, bound);
  if (place < 0) Report(indices.fault, index, i, -bound, bound);
  return place;
}

// The offset that tuple t addresses; -1 where an index is outside.
__device__ inline int64_t TupleOffset(const Tuples& tuples, const int64_t* indices, int64_t t) {
  int64_t offset = t / tuples.per_batch * tuples.batch_stride;
  for (int k = 0; k < tuples.length; ++k) {
    const int64_t at = t * tuples.length + k, bound = tuples.bounds[k];
    const int64_t place = PlaceOf(indices[at], bound);
    if (place < 0) {
      Report(tuples.fault, indices[at], at, -bound, bound);
      return -1;
    }
    offset += place * tuples.strides[k];
  }
  return offset;
}

// What stands where nothing was found.
template <class T>
__device__ T Missing(bool real) {
  const uint32_t bits = real ? ~uint32_t{0} : 0;
  if constexpr (sizeof(T) == sizeof(uint4)) {
    return {bits, bits, bits, bits};
  } else {
    return real ? static_cast<T>(~T(0)) : T(0);
  }
}

}  // namespace onward::cuda

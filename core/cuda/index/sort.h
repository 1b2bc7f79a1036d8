// SPDX-License-Identifier: Apache-2.0
// Positions grouped by a key that each has, in order within a group.
#ifndef ONWARD_CORE_CUDA_INDEX_SORT_H_
#define ONWARD_CORE_CUDA_INDEX_SORT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace onward::cuda {

// Keys and the positions they belong to; without an order, position i has key i.
struct Grouped {
  const uint32_t* keys = nullptr;
  const uint32_t* order = nullptr;
  int64_t count = 0;
  // Equal keys need not be neighbours: whoever wants a group looks for its members.
  bool scattered = false;
};

// Groups of at most this many are searched, not sorted.
inline constexpr int64_t kFewKeys = 32;

size_t SortWorkspace(int64_t count);
// Where the keys are to be written: `count` numbers up to `largest`.
uint32_t* KeysAt(void* workspace);
cudaError_t GroupByKey(int64_t count, uint32_t largest, void* workspace, Grouped* grouped,
                       cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_INDEX_SORT_H_

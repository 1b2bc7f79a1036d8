// SPDX-License-Identifier: Apache-2.0
// What the factories of the index family share, and the parts of its registration.
#ifndef ONWARD_CORE_CUDA_INDEX_FACTORIES_H_
#define ONWARD_CORE_CUDA_INDEX_FACTORIES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/cuda/index/index.h"
#include "core/cuda/register.h"
#include "core/device/kernel.h"

namespace onward::cuda {

// Unimplemented unless the input is int32 or int64. Constant indices outside their bounds are left
// to the CPU, which tells of them.
absl::Status CheckIndices(const KernelRequest& r, int input, int64_t bound);
absl::StatusOr<int> AxisOf(const KernelRequest& r, int64_t standard, int rank);

// Of inputs data and indices, without their memory.
absl::StatusOr<ElementsCall> ElementsOf(const KernelRequest& r);
absl::StatusOr<Tuples> TuplesOf(const KernelRequest& r, int64_t batch_dims);

void RegisterScatter(const Context& context, KernelTable& table);  // scatter.cc

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_INDEX_FACTORIES_H_

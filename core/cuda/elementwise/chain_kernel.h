// SPDX-License-Identifier: Apache-2.0
// Chains of the runtime as programs of the device.
#ifndef ONWARD_CORE_CUDA_ELEMENTWISE_CHAIN_KERNEL_H_
#define ONWARD_CORE_CUDA_ELEMENTWISE_CHAIN_KERNEL_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cuda/elementwise/chain.h"
#include "core/device/kernel.h"

namespace onward::cuda {

// None for types that chains do not have.
std::optional<Type> TypeOf(DType dtype);

// One launch for all steps; Pointwise::code is an Op. Unimplemented where it takes more inputs,
// outputs, steps or dimensions than a program has, or types that it does not know. `positions`:
// which inputs of a call these are; empty where they are all.
absl::StatusOr<Kernel> ChainKernel(absl::Span<const ChainStep> steps,
                                   absl::Span<const ValueSpec> inputs, const Shape& shape,
                                   std::vector<int> positions = {});

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_ELEMENTWISE_CHAIN_KERNEL_H_

// SPDX-License-Identifier: Apache-2.0
// What kernels on values of any kind share.
#ifndef ONWARD_CORE_OPS_SEQUENCE_VALUE_KERNEL_H_
#define ONWARD_CORE_OPS_SEQUENCE_VALUE_KERNEL_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "core/device/kernel.h"

namespace onward {

using ValueKernel = absl::Status (*)(const Node& node, const ValueCall& call);

void AddOnValues(KernelTable& table, std::string_view op, ValueKernel kernel,
                 std::string_view domain = "");

inline bool HasInput(const ValueCall& call, int i) {
  return i < static_cast<int>(call.inputs.size()) && call.inputs[i] != nullptr;
}
absl::StatusOr<const Tensor*> TensorAtInput(const Node& node, const ValueCall& call, int i);
// Output i becomes `value`, if it is wanted.
absl::Status Give(const ValueCall& call, int i, Value value);

void RegisterOptionalKernels(KernelTable& table);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_SEQUENCE_VALUE_KERNEL_H_

// SPDX-License-Identifier: Apache-2.0
// Pow: the one arithmetic operator whose operands may differ in type.
#ifndef ONWARD_CORE_OPS_ELEMENTWISE_POW_H_
#define ONWARD_CORE_OPS_ELEMENTWISE_POW_H_

#include "absl/status/statusor.h"
#include "core/device/kernel.h"
#include "core/ops/cpu/type_list.h"

namespace onward {

using PowBaseTypes = FloatingTypes::With<int32_t, int64_t>;

absl::StatusOr<Kernel> MakePow(const KernelRequest& request);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_ELEMENTWISE_POW_H_

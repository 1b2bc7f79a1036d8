// SPDX-License-Identifier: Apache-2.0
// The parts of the family.
#ifndef ONWARD_CORE_OPS_QUANTIZE_QUANTIZE_H_
#define ONWARD_CORE_OPS_QUANTIZE_QUANTIZE_H_

#include "absl/status/statusor.h"
#include "core/device/kernel.h"

namespace onward {

absl::StatusOr<Kernel> MakeQuantizeLinear(const KernelRequest& request);
absl::StatusOr<Kernel> MakeDequantizeLinear(const KernelRequest& request);
absl::StatusOr<Kernel> MakeDynamicQuantizeLinear(const KernelRequest& request);
absl::StatusOr<Kernel> MakeMatMulInteger(const KernelRequest& request);
absl::StatusOr<Kernel> MakeQLinearMatMul(const KernelRequest& request);
// For requests with shapes, which MakeQLinearMatMul hands on.
absl::StatusOr<Kernel> MakeFloat8MatMul(const KernelRequest& request);
absl::StatusOr<Kernel> MakeConvInteger(const KernelRequest& request);
absl::StatusOr<Kernel> MakeQLinearConv(const KernelRequest& request);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_QUANTIZE_H_

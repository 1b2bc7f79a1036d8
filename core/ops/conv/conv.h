// SPDX-License-Identifier: Apache-2.0
// The convolution factories that live in other files than conv.cc.
#ifndef ONWARD_CORE_OPS_CONV_CONV_H_
#define ONWARD_CORE_OPS_CONV_CONV_H_

#include "absl/status/statusor.h"
#include "core/device/kernel.h"
#include "core/device/plan/window.h"

namespace onward {

// Unimplemented unless all values are floats of known, not too large shapes. (One that is there
// for its shape alone may have any type.)
absl::Status CheckFloatConv(const KernelRequest& request);

// What a convolution node states with its shapes, checked: the geometry, and
// the shape of the bias where there is one. `x` and `w` are inputs of the node.
absl::StatusOr<ConvGeometry> CheckedConv(const KernelRequest& request, int x, int w);
absl::StatusOr<ConvGeometry> CheckedConvTranspose(const KernelRequest& request);
// For the gradients, dY (input 0) has the shape of the forward output.
absl::StatusOr<ConvGeometry> CheckedConvGrad(const KernelRequest& request, int x, int w);

absl::StatusOr<Kernel> MakeDnnlConv(const KernelRequest& request);
absl::StatusOr<Kernel> MakeDnnlConvTranspose(const KernelRequest& request);
absl::StatusOr<Kernel> MakeDnnlConvInputGrad(const KernelRequest& request);
absl::StatusOr<Kernel> MakeDnnlConvWeightGrad(const KernelRequest& request);

// ConvWeightGrad for a convolution of few channels (images), for which oneDNN
// would pad X to whole blocks: X is plain, dY in blocks of 8.
absl::StatusOr<Kernel> MakeSmallConvWeightGrad(const KernelRequest& request);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CONV_CONV_H_

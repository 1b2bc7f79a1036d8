// SPDX-License-Identifier: Apache-2.0
// Direct convolutions of floats on activations in blocks of 8 channels: 1x1, depthwise 3x3, 5x5 and
// 7x7, and the forward pass of small windows at strides up to 2. Weights and
// their gradients are plain, so nothing is reordered around these kernels; what
// they rearrange is part of their work (constant weights once, at compile time).
//
// A value of C channels is stored as [batch][ceil(C/8)][pixels][8]. Lanes beyond
// C hold zeros, and stay so.
#ifndef ONWARD_CORE_OPS_CONV_CONV_DIRECT_H_
#define ONWARD_CORE_OPS_CONV_CONV_DIRECT_H_

#include <cstddef>
#include <functional>
#include <limits>

#include "absl/status/statusor.h"
#include "core/base/cpu_features.h"
#include "core/device/arrangements.h"
#include "core/device/kernel.h"
#include "core/device/plan/window.h"
#include "core/ops/conv/winograd.h"

namespace onward {

// Whether the kernels below can compute this pass of a convolution.
bool DirectServes(const ConvGeometry& geometry, ConvPass pass = ConvPass::kForward);
// Whether they are also at least as fast as oneDNN's with the reorders of its
// weights: a fixed rule, from measurements on two cores (benchmarks/conv_choice).
bool DirectPays(const ConvGeometry& geometry, ConvPass pass, bool constant_weights,
                const CpuFeatures& cpu = ThisCpu());

// Conv and ai.onward's FusedConv, ConvInputGrad and ConvWeightGrad, for the
// kernel table. Unimplemented where DirectPays says no.
absl::StatusOr<Kernel> MakeDirectConv(const KernelRequest& request);
absl::StatusOr<Kernel> MakeDirectConvInputGrad(const KernelRequest& request);
absl::StatusOr<Kernel> MakeDirectConvWeightGrad(const KernelRequest& request);

// The same wherever DirectServes, whether it pays or not. What `cpu` has changes the speed, not the
// results.
absl::StatusOr<Kernel> AnyDirectConv(const KernelRequest& request,
                                     const CpuFeatures& cpu = ThisCpu());
absl::StatusOr<Kernel> AnyDirectConvInputGrad(const KernelRequest& request,
                                              const CpuFeatures& cpu = ThisCpu());
absl::StatusOr<Kernel> AnyDirectConvWeightGrad(const KernelRequest& request);

namespace direct {

// y = min(max(conv(x, w) + bias + residual, low), high)
struct Bounds {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  bool any() const {
    return low > -std::numeric_limits<float>::infinity() ||
           high < std::numeric_limits<float>::infinity();
  }
};

struct ConvArguments {
  const float* x;
  const float* w;         // not read where it was constant
  const float* bias;      // may be null
  const float* residual;  // may be null; stored like y, and may be y unless depthwise
  float* y;
  void* workspace;
};
struct WeightGradArguments {
  const float* dy;
  const float* x;
  float* dw;
  float* db;  // may be null
  void* workspace;
};

template <typename Arguments>
struct Prepared {
  std::function<void(const Arguments&)> run;
  size_t workspace_bytes = 0;
};

// For the input gradient, x is dY and y is dX. `constant` is W, or none.
Prepared<ConvArguments> PointwiseConv(const ConvGeometry& g, const Bounds& bounds,
                                      const ConstantInput& constant, const CpuFeatures& cpu);
Prepared<ConvArguments> PointwiseInputGrad(const ConvGeometry& g, const ConstantInput& constant,
                                           const CpuFeatures& cpu);
Prepared<WeightGradArguments> PointwiseWeightGrad(const ConvGeometry& g);

Prepared<ConvArguments> WindowedConv(const ConvGeometry& g, const Bounds& bounds,
                                     const ConstantInput& constant, const CpuFeatures& cpu);

Prepared<ConvArguments> DepthwiseConv(const ConvGeometry& g, const Bounds& bounds,
                                      const ConstantInput& constant);
Prepared<ConvArguments> DepthwiseInputGrad(const ConvGeometry& g, const ConstantInput& constant);
Prepared<WeightGradArguments> DepthwiseWeightGrad(const ConvGeometry& g);

}  // namespace direct
}  // namespace onward

#endif  // ONWARD_CORE_OPS_CONV_CONV_DIRECT_H_

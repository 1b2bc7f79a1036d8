// SPDX-License-Identifier: Apache-2.0
// Winograd convolutions F(4x4, 3x3) of floats: kernels 3x3, stride 1, dilation
// 1, one group, whole blocks of 8 channels. Activations and their gradients are
// in blocks of 8 channels, weights and their gradients plain: the kernels
// transform them anyway, at every call (small constant ones once, at compile
// time).
#ifndef ONWARD_CORE_OPS_CONV_WINOGRAD_H_
#define ONWARD_CORE_OPS_CONV_WINOGRAD_H_

#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/cpu_features.h"
#include "core/device/kernel.h"
#include "core/device/plan/window.h"

namespace onward {

enum class ConvPass { kForward, kInputGrad, kWeightGrad };

// Whether the kernels below can compute this convolution.
bool WinogradServes(const ConvGeometry& geometry);
// Whether they are also faster than oneDNN's direct ones: a fixed rule, from
// measurements on two cores with AVX2 (benchmarks/conv_choice).
bool WinogradPays(const ConvGeometry& geometry, ConvPass pass);

// Unimplemented unless all values are floats of known, not too large shapes.
absl::Status CheckWinogradRequest(const KernelRequest& request);

// What happens to a convolution's output, after the bias, before it is stored:
//
//   y = min(max(y + residual, low), high)
struct WinogradEpilogue {
  int residual_input = -1;  // index (from 3 on) of the input that is added; -1: none
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

// Conv and ai.onward's ConvInputGrad and ConvWeightGrad, for the kernel table.
// Unimplemented where WinogradPays says no.
absl::StatusOr<Kernel> MakeWinogradConv(const KernelRequest& request);
absl::StatusOr<Kernel> MakeWinogradConvInputGrad(const KernelRequest& request);
absl::StatusOr<Kernel> MakeWinogradConvWeightGrad(const KernelRequest& request);

// The same wherever WinogradServes, whether it pays or not. The first serves
// fused nodes too: X, W, optional B, then what the epilogue names. What `cpu` has changes the
// speed, not the results.
absl::StatusOr<Kernel> AnyWinogradConv(const KernelRequest& request,
                                       const WinogradEpilogue& epilogue,
                                       const CpuFeatures& cpu = ThisCpu());
absl::StatusOr<Kernel> AnyWinogradConvInputGrad(const KernelRequest& request,
                                                const CpuFeatures& cpu = ThisCpu());
absl::StatusOr<Kernel> AnyWinogradConvWeightGrad(const KernelRequest& request,
                                                 const CpuFeatures& cpu = ThisCpu());

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CONV_WINOGRAD_H_

// SPDX-License-Identifier: Apache-2.0
// Which convolutions the direct kernels serve, and their factories.
#include "core/ops/conv/conv_direct.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "core/device/plan/followers.h"
#include "core/ops/conv/conv.h"
#include "core/ops/conv/conv_direct_work.h"
#include "core/ops/cpu/onednn.h"

namespace onward {
namespace {

using direct::ConvArguments;
using direct::kLane;
using direct::Prepared;
using direct::WeightGradArguments;

constexpr int64_t kFewestPixels = 4;
// What windows may cover: they are copied with their padding.
constexpr int64_t kMaxTaps = 64, kMaxExtent = 64, kMaxStride = 2;
// Pixels of a row that keep the registers of a CPU with AVX-512 busy.
constexpr int64_t kFewestInRow = 6;

bool IsPointwise(const ConvGeometry& g) {
  const Window& w = g.window;
  if (g.groups != 1) return false;
  for (int i = 0; i < w.rank(); ++i) {
    if (w.kernel[i] != 1 || w.strides[i] != 1 || w.out[i] != w.in[i]) return false;
  }
  return true;
}

bool IsDepthwise(const ConvGeometry& g) {
  const Window& w = g.window;
  if (w.rank() != 2 || g.groups != g.in_channels || g.groups != g.out_channels) return false;
  for (int i = 0; i < 2; ++i) {
    if (w.kernel[i] != w.kernel[0] || w.strides[i] != w.strides[0] || w.dilations[i] != 1 ||
        w.strides[i] > 2 || (w.kernel[i] != 3 && w.kernel[i] != 5 && w.kernel[i] != 7)) {
      return false;
    }
  }
  return true;
}

// Several taps, all within reach.
bool IsWindowed(const ConvGeometry& g) {
  const Window& w = g.window;
  if (g.groups != 1 || w.rank() > 2 || w.kernel_elements() > kMaxTaps) return false;
  for (int i = 0; i < w.rank(); ++i) {
    if (w.strides[i] > kMaxStride || w.extent(i) > kMaxExtent) return false;
  }
  return !IsPointwise(g);
}

Prepared<ConvArguments> Prepare(const ConvGeometry& g, const direct::Bounds& bounds,
                                const ConstantInput& constant, const CpuFeatures& cpu) {
  if (IsDepthwise(g)) return direct::DepthwiseConv(g, bounds, constant);
  if (IsPointwise(g)) return direct::PointwiseConv(g, bounds, constant, cpu);
  return direct::WindowedConv(g, bounds, constant, cpu);
}

absl::Status NotServed(const KernelRequest& r) {
  return NodeUnimplemented(r.node, "not a convolution for the direct kernels");
}

Layout Blocked(const Shape& shape) { return LayoutOf(BlockedDesc(shape, kLane)); }

// A kernel that reads activations from input 0 and weights from input 1.
Kernel KernelOf(Prepared<ConvArguments> prepared, bool bias, bool residual) {
  Kernel kernel;
  kernel.infallible = true;
  kernel.workspace_bytes = prepared.workspace_bytes;
  kernel.run = [run = std::move(prepared.run), bias, residual](const KernelCall& call) {
    run({.x = call.inputs[0]->data<float>(),
         .w = call.inputs[1]->data<float>(),
         .bias = bias ? call.inputs[2]->data<float>() : nullptr,
         .residual = residual ? call.inputs[kResidual]->data<float>() : nullptr,
         .y = call.outputs[0]->data<float>(),
         .workspace = call.workspace});
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> IfPays(const KernelRequest& r, ConvPass pass, int x, int w,
                              absl::FunctionRef<absl::StatusOr<Kernel>()> make) {
  ONWARD_RETURN_IF_ERROR(CheckFloatConv(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, pass == ConvPass::kForward
                                                    ? CheckedConv(r, x, w)
                                                    : CheckedConvGrad(r, x, w));
  const bool constant = pass != ConvPass::kWeightGrad && r.inputs[1].constant != nullptr;
  return DirectPays(g, pass, constant) ? make() : NotServed(r);
}

}  // namespace

bool DirectServes(const ConvGeometry& g, ConvPass pass) {
  return IsPointwise(g) || IsDepthwise(g) || (pass == ConvPass::kForward && IsWindowed(g));
}

bool DirectPays(const ConvGeometry& g, ConvPass pass, bool constant_weights,
                const CpuFeatures& cpu) {
  if (!DirectServes(g, pass)) return false;
  // Fewer channels are left plain by what surrounds them.
  if (std::min(g.in_channels, g.out_channels) < kLane) return false;
  if (IsDepthwise(g)) return true;
  if (IsWindowed(g)) return cpu.avx512f && g.window.out.back() >= kFewestInRow;
  // By the table of benchmarks/conv_choice, 1x1 kernels are level with oneDNN's and
  // the reorders of its weights, and ahead in a whole step, where those weights are
  // not in a cache; but behind for tiny images, which leave registers unused, and
  // where weights are constant and oneDNN has them reordered once. oneDNN is held to AVX2
  // (DnnlEngine), they are not.
  if (constant_weights && !cpu.avx512f) return false;
  return pass == ConvPass::kWeightGrad || g.window.in_elements() >= kFewestPixels;
}

absl::StatusOr<Kernel> AnyDirectConv(const KernelRequest& r, const CpuFeatures& cpu) {
  ONWARD_RETURN_IF_ERROR(CheckFloatConv(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConv(r, 0, 1));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.y()));
  const bool residual = r.HasInput(kResidual);
  if (!DirectServes(g) || (residual && r.in(kResidual) != g.y())) return NotServed(r);
  direct::Bounds bounds;
  if (const auto activation = ReadActivation(r.node)) bounds = {activation->low, activation->high};
  const ConstantInput constant = r.ConstantAt(1);
  Kernel kernel = KernelOf(Prepare(g, bounds, constant, cpu), r.HasInput(2), residual);
  const Layout y = Blocked(g.y());
  kernel.input_layouts = {Blocked(g.x()), nullptr, nullptr, residual ? y : nullptr};
  // Depthwise kernels may compute a pixel twice.
  if (residual && !IsDepthwise(g)) kernel.in_place = {{0, kResidual}};
  kernel.output_layouts = {y};
  return kernel;
}

absl::StatusOr<Kernel> AnyDirectConvInputGrad(const KernelRequest& r, const CpuFeatures& cpu) {
  ONWARD_RETURN_IF_ERROR(CheckFloatConv(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 2, 1));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.x()));
  if (!DirectServes(g, ConvPass::kInputGrad)) return NotServed(r);
  const ConstantInput constant = r.ConstantAt(1);
  Kernel kernel = KernelOf(IsDepthwise(g) ? direct::DepthwiseInputGrad(g, constant)
                                          : direct::PointwiseInputGrad(g, constant, cpu),
                           false, false);
  // X serves for its shape alone: whatever layout it has is fine.
  kernel.input_layouts = {Blocked(g.y()), nullptr, r.inputs[2].layout};
  kernel.output_layouts = {Blocked(g.x())};
  return kernel;
}

absl::StatusOr<Kernel> AnyDirectConvWeightGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckFloatConv(r));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedConvGrad(r, 1, 2));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 0, g.w()));
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(r, 1, Shape{g.out_channels}));
  if (!DirectServes(g, ConvPass::kWeightGrad) || !r.HasOutput(0)) return NotServed(r);
  Prepared<WeightGradArguments> prepared =
      IsDepthwise(g) ? direct::DepthwiseWeightGrad(g) : direct::PointwiseWeightGrad(g);
  Kernel kernel;
  kernel.infallible = true;
  kernel.workspace_bytes = prepared.workspace_bytes;
  // W serves for its shape alone.
  kernel.input_layouts = {Blocked(g.y()), Blocked(g.x()), r.inputs[2].layout};
  kernel.run = [run = std::move(prepared.run)](const KernelCall& call) {
    const bool bias = call.outputs.size() > 1 && call.outputs[1] != nullptr;
    run({.dy = call.inputs[0]->data<float>(),
         .x = call.inputs[1]->data<float>(),
         .dw = call.outputs[0]->data<float>(),
         .db = bias ? call.outputs[1]->data<float>() : nullptr,
         .workspace = call.workspace});
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeDirectConv(const KernelRequest& r) {
  return IfPays(r, ConvPass::kForward, 0, 1, [&] { return AnyDirectConv(r); });
}

absl::StatusOr<Kernel> MakeDirectConvInputGrad(const KernelRequest& r) {
  return IfPays(r, ConvPass::kInputGrad, 2, 1, [&] { return AnyDirectConvInputGrad(r); });
}

absl::StatusOr<Kernel> MakeDirectConvWeightGrad(const KernelRequest& r) {
  return IfPays(r, ConvPass::kWeightGrad, 1, 2, [&] { return AnyDirectConvWeightGrad(r); });
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Conv, ConvTranspose, ConvInputGrad and ConvWeightGrad: by cuDNN, or by own kernels (direct.h).
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/conv/direct.h"
#include "core/cuda/conv/dnn.h"
#include "core/cuda/libraries.h"
#include "core/cuda/register.h"
#include "core/cuda/request.h"
#include "core/device/plan/window.h"

namespace onward::cuda {
namespace {

constexpr char kTypes[] = "float, double, float16, bfloat16";

absl::Status CheckOperands(const KernelRequest& r, int inputs) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, inputs));
  for (const ValueSpec& input : r.inputs) {
    if (input.present() && (!IsReal(input.dtype) || input.dtype != r.inputs[0].dtype)) {
      return Unserved(r);
    }
  }
  return absl::OkStatus();
}

// Nothing where a size does not fit the kernels' ints.
std::optional<DirectConv> DirectForm(const ConvGeometry& g) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  DirectConv direct = {g.batch, g.groups, g.in_channels / g.groups, g.out_channels / g.groups, {}};
  const Window& w = g.window;
  for (int i = 0; i < w.rank(); ++i) {
    const int64_t sizes[] = {w.in[i],      w.out[i],       w.kernel[i],
                             w.strides[i], w.dilations[i], w.pads_begin[i]};
    if (*std::max_element(std::begin(sizes), std::end(sizes)) > kMost) return std::nullopt;
    direct.axes[3 - w.rank() + i] = {
        static_cast<int>(w.in[i]),        static_cast<int>(w.out[i]),
        static_cast<int>(w.kernel[i]),    static_cast<int>(w.strides[i]),
        static_cast<int>(w.dilations[i]), static_cast<int>(w.pads_begin[i])};
  }
  return direct;
}

// Own kernels are the better ones where every output has one input channel.
bool IsDepthwise(const ConvGeometry& g) { return g.groups > 1 && g.groups == g.in_channels; }

// One pass of a convolution, prepared.
struct Convolution {
  std::shared_ptr<Libraries> libraries;
  ConvGeometry geometry;
  DType dtype;
  std::shared_ptr<const DnnConv> dnn;  // null: direct
  DirectConv direct;

  // See DnnConv::Run; `bias` (of the result's channels, may be null) is put in place first, so
  // that the sum is rounded once.
  absl::Status Run(ConvPass pass, const KernelCall& call, const void* first, const void* second,
                   const void* bias, void* result) const {
    const cudaStream_t stream = StreamOf(call);
    if (dnn == nullptr) {
      return StatusOf(RunDirect(pass, first, second, bias, result, stream), "a convolution");
    }
    if (bias != nullptr) {
      const Shape shape = pass == ConvPass::kForward ? geometry.y() : geometry.x();
      ONWARD_RETURN_IF_ERROR(StatusOf(FillChannels(dtype, bias, shape[0], shape[1],
                                                   shape.elements(2, shape.rank()), result, stream),
                                      "a bias"));
    }
    return libraries->WithDnn(stream, [&](cudnnHandle_t handle) {
      return dnn->Run(handle, first, second, result, bias != nullptr, call.workspace);
    });
  }

  cudaError_t RunDirect(ConvPass pass, const void* first, const void* second, const void* bias,
                        void* result, cudaStream_t stream) const {
    switch (pass) {
      case ConvPass::kForward:
        return ConvForward(dtype, direct, first, second, bias, result, stream);
      case ConvPass::kData: return ConvData(dtype, direct, first, second, bias, result, stream);
      case ConvPass::kWeights: return ConvWeights(dtype, direct, second, first, result, stream);
    }
    return cudaErrorInvalidValue;
  }
};

absl::StatusOr<std::shared_ptr<const Convolution>> Prepare(const Context& context,
                                                           const KernelRequest& r,
                                                           const ConvGeometry& g, ConvPass pass) {
  const std::optional<DirectConv> direct = DirectForm(g);
  if (!direct.has_value()) return Unserved(r);
  auto conv = std::make_shared<Convolution>(
      Convolution{context.libraries, g, r.inputs[0].dtype, nullptr, *direct});
  if (IsDepthwise(g)) return conv;
  auto dnn = DnnConv::Make(*context.libraries, pass, conv->dtype, g, context.options.allow_tf32);
  if (dnn.ok()) {
    conv->dnn = *std::move(dnn);
  } else if (!absl::IsUnimplemented(dnn.status())) {
    return dnn.status();
  }
  return conv;
}

size_t WorkspaceOf(const Convolution& conv) {
  return conv.dnn == nullptr ? 0 : conv.dnn->workspace_bytes();
}

// (first, second, bias) -> result, for a pass whose result has `channels` channels.
absl::StatusOr<Kernel> MakePass(const Context& context, const KernelRequest& r,
                                const ConvGeometry& g, ConvPass pass, int bias) {
  const Shape shape = pass == ConvPass::kForward ? g.y() : g.x();
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, shape));
  const bool has_bias = bias >= 0 && r.HasInput(bias);
  if (has_bias && r.in(bias) != Shape{shape[1]}) return Unserved(r);
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const Convolution> conv, Prepare(context, r, g, pass));
  Kernel kernel;
  kernel.workspace_bytes = WorkspaceOf(*conv);
  kernel.run = [conv, pass, bias, has_bias](const KernelCall& call) {
    return conv->Run(pass, call, In(call, 0), In(call, 1), has_bias ? In(call, bias) : nullptr,
                     Out(call, 0));
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeConv(const Context& context, const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckOperands(r, 2));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, GeometryOfConv(r.node, r.in(0), r.in(1)));
  return MakePass(context, r, g, ConvPass::kForward, 2);
}

absl::StatusOr<Kernel> MakeConvTranspose(const Context& context, const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckOperands(r, 2));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, GeometryOfConvTranspose(r.node, r.in(0), r.in(1)));
  return MakePass(context, r, g, ConvPass::kData, 2);
}

// (dY, W, X for its shape) -> dX
absl::StatusOr<Kernel> MakeConvInputGrad(const Context& context, const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckOperands(r, 3));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, GeometryOfConv(r.node, r.in(2), r.in(1)));
  if (r.in(0) != g.y()) return Unserved(r);
  return MakePass(context, r, g, ConvPass::kData, -1);
}

// (dY, X, W for its shape) -> dW, dB; either may be omitted.
absl::StatusOr<Kernel> MakeConvWeightGrad(const Context& context, const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckOperands(r, 3));
  ONWARD_ASSIGN_OR_RETURN(const ConvGeometry g, GeometryOfConv(r.node, r.in(1), r.in(2)));
  if (r.in(0) != g.y()) return Unserved(r);
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 0, g.w()));
  ONWARD_RETURN_IF_ERROR(CheckOutput(r, 1, Shape{g.out_channels}));
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const Convolution> conv,
                          Prepare(context, r, g, ConvPass::kWeights));
  Kernel kernel;
  kernel.workspace_bytes = WorkspaceOf(*conv);
  kernel.run = [conv](const KernelCall& call) -> absl::Status {
    if (void* dw = Out(call, 0)) {
      ONWARD_RETURN_IF_ERROR(
          conv->Run(ConvPass::kWeights, call, In(call, 1), In(call, 0), nullptr, dw));
    }
    void* db = Out(call, 1);
    if (db == nullptr) return absl::OkStatus();
    const ConvGeometry& g = conv->geometry;
    return StatusOf(SumChannels(conv->dtype, In(call, 0), g.batch, g.out_channels,
                                g.window.out_elements(), db, StreamOf(call)),
                    "the gradient of a bias");
  };
  return kernel;
}

}  // namespace

void RegisterConv(const Context& context, KernelTable& table) {
  const auto entry = [&](auto make) -> KernelTable::Entry {
    return {"cudnn", 1, [context, make](const KernelRequest& r) { return make(context, r); },
            kTypes};
  };
  table.Add("Conv", entry(MakeConv));
  table.Add("ConvTranspose", entry(MakeConvTranspose));
  table.Add("ConvInputGrad", entry(MakeConvInputGrad), kOnwardDomain);
  table.Add("ConvWeightGrad", entry(MakeConvWeightGrad), kOnwardDomain);
}

}  // namespace onward::cuda

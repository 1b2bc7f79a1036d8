// SPDX-License-Identifier: Apache-2.0
// ConvInteger and QLinearConv: what they demand of their inputs, and what becomes of the sums.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/device/plan/window.h"
#include "core/ops/cpu/adapt.h"
#include "core/ops/movement/movement.h"
#include "core/ops/quantize/byte_operand.h"
#include "core/ops/quantize/granularity.h"
#include "core/ops/quantize/integer_convolution.h"
#include "core/ops/quantize/quantize.h"
#include "core/ops/quantize/requantize.h"

namespace onward {
namespace {

bool IsByte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUint8; }

struct Inputs {
  int x, w, x_zero, w_zero;
};

// Runs the convolution of a call and hands its sums on.
using RunConvolution = std::function<void(const KernelCall& call, const ReceiveSums& receive)>;

struct Prepared {
  ConvGeometry geometry;
  size_t workspace_bytes = 0;
  RunConvolution run;
};

absl::Status CheckCount(const KernelRequest& request, int input, int64_t channels) {
  if (!request.HasInput(input)) return absl::OkStatus();
  const Shape& shape = request.in(input);
  if (shape.elements() == 1 || (shape.rank() == 1 && shape[0] == channels && channels > 0)) {
    return absl::OkStatus();
  }
  return NodeError(request.node,
                   absl::StrCat("input ", input, " has shape ", shape.ToString(),
                                ", expected one element", channels > 1 ? " or " : "",
                                channels > 1 ? absl::StrCat(channels, ", one per channel") : ""));
}

absl::StatusOr<Prepared> Prepare(const KernelRequest& request, const Inputs& at) {
  for (int i : {at.x, at.w}) {
    if (!request.HasInput(i)) return NodeError(request.node, absl::StrCat("needs input ", i));
    if (!IsByte(request.inputs[i].dtype)) {
      return NodeError(request.node, absl::StrCat("input ", i, " must be int8 or uint8"));
    }
  }
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, at.x, {at.x_zero}));
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, at.w, {at.w_zero}));
  Prepared prepared;
  ONWARD_ASSIGN_OR_RETURN(prepared.geometry,
                          GeometryOfConv(request.node, request.in(at.x), request.in(at.w)));
  const ConvGeometry& g = prepared.geometry;
  ONWARD_RETURN_IF_ERROR(CheckCount(request, at.x_zero, 1));
  ONWARD_RETURN_IF_ERROR(CheckCount(request, at.w_zero, g.out_channels));
  const ByteOperand x{request.inputs[at.x].dtype == DType::kInt8, false};
  const ByteOperand w{request.inputs[at.w].dtype == DType::kInt8, true};
  std::optional<BytePlanes> planes = BytePlanes::Of(g);
  if (!planes.has_value() || planes->offsets().empty()) {
    prepared.run = [g, at, x, w](const KernelCall& call, const ReceiveSums& receive) {
      RunByDefinition(g, *call.inputs[at.x], *call.inputs[at.w], InputAt(call.inputs, at.x_zero),
                      InputAt(call.inputs, at.w_zero), x, w, receive);
    };
    return prepared;
  }
  auto convolution = std::make_shared<IntegerConvolution>(g, *std::move(planes), x, w);
  if (request.inputs[at.w].constant != nullptr) {
    convolution->PackBeforehand(*request.inputs[at.w].constant);
  } else {
    convolution->PackAtRuns();
  }
  prepared.workspace_bytes = convolution->workspace_bytes();
  prepared.run = [convolution, at](const KernelCall& call, const ReceiveSums& receive) {
    convolution->Run(call, *call.inputs[at.x], *call.inputs[at.w], InputAt(call.inputs, at.x_zero),
                     InputAt(call.inputs, at.w_zero), receive);
  };
  return prepared;
}

absl::StatusOr<Kernel> MakeInteger(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(Prepared prepared, Prepare(request, {0, 1, 2, 3}));
  if (request.outputs[0].dtype != DType::kInt32) return NodeError(request.node, "y must be int32");
  Kernel kernel;
  kernel.workspace_bytes = prepared.workspace_bytes;
  kernel.run = [prepared](const KernelCall& call) {
    const ConvGeometry& g = prepared.geometry;
    int32_t* y = call.outputs[0]->data<int32_t>();
    if (call.outputs[0]->elements() == 0) return absl::OkStatus();
    prepared.run(call, [&](int64_t image, int64_t channel, const int32_t* sums,
                           absl::Span<const Segment> segments) {
      int32_t* plane = y + (image * g.out_channels + channel) * g.window.out_elements();
      for (const Segment& s : segments) std::copy_n(sums + s.at, s.n, plane + s.output);
    });
    return absl::OkStatus();
  };
  return kernel;
}

// y = saturate(round((sum + bias) * x_scale * w_scale / y_scale) + y_zero)
template <typename T>
void RunQLinear(const Prepared& prepared, const KernelCall& call) {
  const ConvGeometry& g = prepared.geometry;
  const std::vector<float> w_scales = FloatsOf(*call.inputs[4]);
  const float x_scale = FloatsOf(*call.inputs[1])[0], y_scale = FloatsOf(*call.inputs[6])[0];
  std::vector<float> scales(g.out_channels);
  for (size_t m = 0; m < scales.size(); ++m) {
    scales[m] = x_scale * w_scales[m % w_scales.size()] / y_scale;
  }
  const float zero = static_cast<float>(*call.inputs[7]->data<T>());
  const Tensor* bias = InputAt(call.inputs, 8);
  T* y = call.outputs[0]->data<T>();
  if (call.outputs[0]->elements() == 0) return;
  const RequantizeFunction<T> requantize = RequantizeFor<T>();
  prepared.run(call, [&](int64_t image, int64_t channel, const int32_t* sums,
                         absl::Span<const Segment> segments) {
    const int32_t add = bias == nullptr ? 0 : bias->data<int32_t>()[channel];
    T* plane = y + (image * g.out_channels + channel) * g.window.out_elements();
    T few[kMostColumns];
    if (segments.size() == 1) {
      const Segment& s = segments[0];
      for (int64_t at = 0; at < s.n; at += kPanelColumns) {
        const bool fits = std::max(s.n, s.room) - at >= kPanelColumns;
        T* to = plane + s.output + at;
        requantize(sums + s.at + at, add, &scales[channel], true, zero, fits ? to : few);
        if (!fits) std::copy_n(few, s.n - at, to);
      }
      return;
    }
    for (int64_t at = 0; at < segments.back().at + segments.back().n; at += kPanelColumns) {
      requantize(sums + at, add, &scales[channel], true, zero, few + at);
    }
    for (const Segment& s : segments) std::copy_n(few + s.at, s.n, plane + s.output);
  });
}

absl::StatusOr<Kernel> MakeQLinear(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 8));
  ONWARD_ASSIGN_OR_RETURN(Prepared prepared, Prepare(request, {0, 3, 2, 5}));
  const int64_t channels = prepared.geometry.out_channels;
  for (int i : {1, 6, 7}) ONWARD_RETURN_IF_ERROR(CheckCount(request, i, 1));
  ONWARD_RETURN_IF_ERROR(CheckCount(request, 4, channels));
  const DType dtype = request.outputs[0].dtype;
  if (!IsByte(dtype) || request.inputs[7].dtype != dtype) {
    return NodeError(request.node, "y and y_zero_point must be int8 or uint8, both the same");
  }
  for (int i : {1, 4, 6}) {
    if (!IsFloating(request.inputs[i].dtype)) return NodeError(request.node, "scales are floats");
  }
  if (request.HasInput(8) &&
      (request.inputs[8].dtype != DType::kInt32 || request.in(8) != Shape{channels})) {
    return NodeError(request.node, absl::StrCat("B must be int32 with ", channels, " elements"));
  }
  Kernel kernel;
  kernel.workspace_bytes = prepared.workspace_bytes;
  kernel.run = [prepared, dtype](const KernelCall& call) {
    if (dtype == DType::kInt8) {
      RunQLinear<int8_t>(prepared, call);
    } else {
      RunQLinear<uint8_t>(prepared, call);
    }
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> WithShapes(const KernelRequest& request, int x, int w,
                                  const KernelFactory& factory) {
  const ShapeRule rule = [x, w](const KernelRequest& r, int) {
    return GeometryOfConv(r.node, r.in(x), r.in(w))->y();
  };
  return Adapt(factory, rule)(request);
}

}  // namespace

absl::StatusOr<Kernel> MakeConvInteger(const KernelRequest& request) {
  return WithShapes(request, 0, 1, MakeInteger);
}

absl::StatusOr<Kernel> MakeQLinearConv(const KernelRequest& request) {
  return WithShapes(request, 0, 3, MakeQLinear);
}

}  // namespace onward

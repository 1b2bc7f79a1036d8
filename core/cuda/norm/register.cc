// SPDX-License-Identifier: Apache-2.0
// The norm family but BatchNormalization: softmax along an axis, normalisation of rows and groups.
#include "core/cuda/register.h"

#include "core/base/status.h"
#include "core/cuda/norm/factories.h"
#include "core/cuda/norm/norm.h"
#include "core/cuda/request.h"

namespace onward::cuda {
namespace {

bool SameShapeAndType(const KernelRequest& r, int a, int b) {
  return r.in(a) == r.in(b) && r.inputs[a].dtype == r.inputs[b].dtype;
}

// [outer, n, inner] of input 0 along the attribute `axis`.
absl::StatusOr<AxisRows> RowsOf(const KernelRequest& r) {
  const Shape& shape = r.in(0);
  if (!IsReal(r.inputs[0].dtype)) return Unserved(r);
  if (shape.rank() == 0) return AxisRows{};
  const absl::StatusOr<int> axis = NormalizeAxis(r.node.Int("axis", -1), shape.rank());
  if (!axis.ok()) return Unserved(r);
  return AxisRows{shape.elements(0, *axis), shape[*axis], shape.elements(*axis + 1, shape.rank())};
}

absl::StatusOr<Kernel> MakeSoftmax(const KernelRequest& r, SoftmaxKind kind) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 1));
  ONWARD_ASSIGN_OR_RETURN(const AxisRows rows, RowsOf(r));
  Kernel kernel = QueuedKernel(r, [kind, rows, dtype = r.inputs[0].dtype](const KernelCall& call) {
    return Softmax(kind, dtype, rows, In(call, 0), Out(call, 0), StreamOf(call));
  });
  kernel.infallible = true;
  kernel.in_place = {{0, 0}};
  return kernel;
}

absl::StatusOr<Kernel> MakeSoftmaxGrad(const KernelRequest& r, bool log) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  ONWARD_ASSIGN_OR_RETURN(const AxisRows rows, RowsOf(r));
  if (!SameShapeAndType(r, 0, 1)) return Unserved(r);
  Kernel kernel = QueuedKernel(r, [log, rows, dtype = r.inputs[0].dtype](const KernelCall& call) {
    return SoftmaxGrad(log, dtype, rows, In(call, 0), In(call, 1), Out(call, 0), StreamOf(call));
  });
  kernel.infallible = true;
  kernel.in_place = {{0, 0}, {0, 1}};
  return kernel;
}

absl::StatusOr<Kernel> MakeLpNorm(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 1));
  ONWARD_ASSIGN_OR_RETURN(const AxisRows rows, RowsOf(r));
  const int64_t p = r.node.Int("p", 2);
  if (r.in(0).rank() == 0 || (p != 1 && p != 2)) return Unserved(r);
  Kernel kernel = QueuedKernel(
      r, [p = static_cast<int>(p), rows, dtype = r.inputs[0].dtype](const KernelCall& call) {
        return LpNorm(p, dtype, rows, In(call, 0), Out(call, 0), StreamOf(call));
      });
  kernel.infallible = true;
  kernel.in_place = {{0, 0}};
  return kernel;
}

// How a scale or bias is broadcast to X, whose rows begin at `axis`.
absl::StatusOr<RowParameter> ParameterOf(const KernelRequest& r, int input, int axis) {
  const Shape &x = r.in(0), &given = r.in(input);
  RowParameter p;
  if (r.inputs[input].dtype != r.inputs[0].dtype) return Unserved(r);
  if (given == Shape(x.dims().subspan(axis))) return p;
  const int missing = x.rank() - given.rank();
  if (missing < 0 || x.rank() > StridedGrid::kMostDims) return Unserved(r);
  const Shape::Dims strides = given.Strides();
  p.per_element = false;
  p.grid.rank = x.rank();
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t dim = i < missing ? 1 : given[i - missing];
    if (dim != 1 && dim != x[i]) return Unserved(r);
    p.grid.dims[i] = x[i];
    p.grid.strides[i] = dim == 1 ? 0 : strides[i - missing];
  }
  return p;
}

absl::StatusOr<Kernel> MakeLayerNorm(const KernelRequest& r, bool rms) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  const Shape& x = r.in(0);
  const absl::StatusOr<int> axis = NormalizeAxis(r.node.Int("axis", -1), x.rank());
  if (!axis.ok() || !IsReal(r.inputs[0].dtype)) return Unserved(r);
  LayerNormCall state;
  state.rms = rms;
  state.rows = x.elements(0, *axis);
  state.length = x.elements(*axis, x.rank());
  state.epsilon = r.node.Float("epsilon", 1e-5f);
  state.dtype = r.inputs[0].dtype;
  ONWARD_ASSIGN_OR_RETURN(state.scale, ParameterOf(r, 1, *axis));
  if (!rms && r.HasInput(2)) {
    ONWARD_ASSIGN_OR_RETURN(state.bias, ParameterOf(r, 2, *axis));
  }
  for (int i : {1, 2}) {
    if (!r.HasOutput(i)) continue;
    state.stats_dtype = r.outputs[i].dtype;
    if (!IsReal(state.stats_dtype) || r.out(i).elements() != state.rows) return Unserved(r);
  }
  if (r.HasOutput(1) && r.HasOutput(2) && r.outputs[1].dtype != r.outputs[2].dtype) {
    return Unserved(r);
  }
  Kernel kernel = QueuedKernel(r, [state](const KernelCall& call) {
    LayerNormCall now = state;
    now.x = In(call, 0);
    now.scale.data = In(call, 1);
    now.bias.data = now.rms ? nullptr : In(call, 2);
    now.y = Out(call, 0);
    now.mean = Out(call, 1);
    now.inverse_deviation = Out(call, 2);
    return LayerNorm(now, StreamOf(call));
  });
  kernel.infallible = true;
  kernel.in_place = {{0, 0}};
  return kernel;
}

absl::StatusOr<Kernel> MakeLayerNormGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  const Shape& x = r.in(1);
  const absl::StatusOr<int> axis = NormalizeAxis(r.node.Int("axis", -1), x.rank());
  if (!axis.ok() || !SameShapeAndType(r, 0, 1) || !IsReal(r.inputs[1].dtype)) return Unserved(r);
  if (r.in(2) != Shape(x.dims().subspan(*axis)) || r.inputs[2].dtype != r.inputs[1].dtype) {
    return Unserved(r);
  }
  LayerNormGradCall state;
  state.rows = x.elements(0, *axis);
  state.length = x.elements(*axis, x.rank());
  state.epsilon = r.node.Float("epsilon", 1e-5f);
  state.dtype = r.inputs[1].dtype;
  Kernel kernel = QueuedKernel(r, [state](const KernelCall& call) {
    LayerNormGradCall now = state;
    now.dy = In(call, 0);
    now.x = In(call, 1);
    now.scale = In(call, 2);
    now.dx = Out(call, 0);
    now.dscale = Out(call, 1);
    now.dbias = Out(call, 2);
    return LayerNormGrad(now, call.workspace, StreamOf(call));
  });
  kernel.infallible = true;
  kernel.in_place = {{0, 0}, {0, 1}};
  kernel.workspace_bytes = LayerNormGradWorkspace(state.rows, state.length);
  return kernel;
}

absl::StatusOr<Kernel> MakeGroupNorm(const KernelRequest& r, bool instance) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  const Shape& x = r.in(0);
  if (x.rank() < 2 || !IsReal(r.inputs[0].dtype)) return Unserved(r);
  const int64_t channels = x[1], groups = instance ? channels : r.node.Int("num_groups", 0);
  if (groups < 1 || channels % groups != 0) return Unserved(r);
  for (int i : {1, 2}) {
    if (r.in(i) != Shape{channels} || r.inputs[i].dtype != r.inputs[0].dtype) return Unserved(r);
  }
  GroupNormCall state;
  state.instances = x[0];
  state.groups = groups;
  state.group_channels = channels / groups;
  state.plane = x.elements(2, x.rank());
  state.epsilon = r.node.Float("epsilon", 1e-5f);
  state.dtype = r.inputs[0].dtype;
  Kernel kernel = QueuedKernel(r, [state](const KernelCall& call) {
    GroupNormCall now = state;
    now.x = In(call, 0);
    now.scale = In(call, 1);
    now.bias = In(call, 2);
    now.y = Out(call, 0);
    return GroupNorm(now, StreamOf(call));
  });
  kernel.infallible = true;
  kernel.in_place = {{0, 0}};
  return kernel;
}

absl::StatusOr<Kernel> MakeLrn(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 1));
  const Shape& x = r.in(0);
  LrnCall state;
  state.size = r.node.Int("size", 0);
  if (x.rank() < 2 || state.size < 1 || !IsReal(r.inputs[0].dtype)) return Unserved(r);
  state.batch = x[0];
  state.channels = x[1];
  state.plane = x.elements(2, x.rank());
  state.alpha = r.node.Float("alpha", 1e-4f);
  state.beta = r.node.Float("beta", 0.75f);
  state.bias = r.node.Float("bias", 1.0f);
  state.dtype = r.inputs[0].dtype;
  Kernel kernel = QueuedKernel(r, [state](const KernelCall& call) {
    LrnCall now = state;
    now.x = In(call, 0);
    now.y = Out(call, 0);
    return Lrn(now, StreamOf(call));
  });
  kernel.infallible = true;
  return kernel;
}

}  // namespace

void RegisterNorm(const Context&, KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  const auto softmax = [](SoftmaxKind kind) {
    return [kind](const KernelRequest& r) { return MakeSoftmax(r, kind); };
  };
  table.Add("Softmax", {"cuda", 13, softmax(SoftmaxKind::kSoftmax), types});
  table.Add("LogSoftmax", {"cuda", 13, softmax(SoftmaxKind::kLogSoftmax), types});
  table.Add("Hardmax", {"cuda", 13, softmax(SoftmaxKind::kHardmax), types});
  const auto softmax_grad = [](const KernelRequest& r) { return MakeSoftmaxGrad(r, false); };
  const auto log_softmax_grad = [](const KernelRequest& r) { return MakeSoftmaxGrad(r, true); };
  table.Add("SoftmaxGrad", {"cuda", 1, softmax_grad, types}, kOnwardDomain);
  table.Add("LogSoftmaxGrad", {"cuda", 1, log_softmax_grad, types}, kOnwardDomain);
  table.Add("LpNormalization", {"cuda", 1, MakeLpNorm, types});
  const auto layer = [](const KernelRequest& r) { return MakeLayerNorm(r, false); };
  const auto rms = [](const KernelRequest& r) { return MakeLayerNorm(r, true); };
  table.Add("LayerNormalization", {"cuda", 17, layer, types});
  table.Add("RMSNormalization", {"cuda", 23, rms, types});
  table.Add("LayerNormalizationGrad", {"cuda", 1, MakeLayerNormGrad, types}, kOnwardDomain);
  const auto instance = [](const KernelRequest& r) { return MakeGroupNorm(r, true); };
  const auto group = [](const KernelRequest& r) { return MakeGroupNorm(r, false); };
  table.Add("InstanceNormalization", {"cuda", 6, instance, types});
  table.Add("GroupNormalization", {"cuda", 21, group, types});
  table.Add("LRN", {"cuda", 1, MakeLrn, types});
  RegisterBatchNorm(table);
}

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// BatchNormalization, FusedBatchNormalization and their gradients.
#include <limits>
#include <optional>

#include "core/base/status.h"
#include "core/cuda/norm/factories.h"
#include "core/cuda/norm/norm.h"
#include "core/cuda/request.h"
#include "core/device/plan/followers.h"

namespace onward::cuda {
namespace {

// A 1-D tensor has one channel.
absl::StatusOr<ChannelWork> WorkOf(const KernelRequest& r, const Shape& x) {
  if (x.rank() == 0) return Unserved(r);
  ChannelWork work;
  work.outer = x[0];
  work.channels = x.rank() == 1 ? 1 : x[1];
  work.inner = x.rank() == 1 ? 1 : x.elements(2, x.rank());
  work.DealOut();
  return work;
}

absl::Status CheckVector(const KernelRequest& r, int input, int64_t channels) {
  const bool fits = r.in(input) == Shape{channels} && IsReal(r.inputs[input].dtype);
  return fits ? absl::OkStatus() : Unserved(r);
}

absl::StatusOr<Kernel> MakeBatchNorm(const KernelRequest& r) {
  constexpr int kZ = 5, kTable = 3;  // input and output of the fused form
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 5));
  BatchNormCall state;
  ONWARD_ASSIGN_OR_RETURN(state.work, WorkOf(r, r.in(0)));
  state.training = r.node.Int("training_mode", 0) != 0;
  state.epsilon = r.node.Float("epsilon", 1e-5f);
  state.momentum = r.node.Float("momentum", 0.9f);
  state.dtype = r.inputs[0].dtype;
  if (!IsReal(state.dtype)) return Unserved(r);
  for (int i = 1; i <= 4; ++i) ONWARD_RETURN_IF_ERROR(CheckVector(r, i, state.work.channels));
  for (int i = 1; i <= 3; ++i) {
    if (!state.training && r.HasOutput(i)) return Unserved(r);
  }
  for (int i : {1, 2}) {
    if (r.HasOutput(i) && r.outputs[i].dtype != r.inputs[2 + i].dtype) return Unserved(r);
  }
  state.scale.dtype = r.inputs[1].dtype;
  state.bias.dtype = r.inputs[2].dtype;
  state.mean.dtype = r.inputs[3].dtype;
  state.var.dtype = r.inputs[4].dtype;
  const bool fused = r.node.op_type == "FusedBatchNormalization";
  if (fused) {
    const ActivationBounds bounds = ReadActivation(r.node).value_or(ActivationBounds::None());
    state.bounded = true;
    state.low = bounds.low;
    state.high = bounds.high;
    if (r.HasInput(kZ) && (r.in(kZ) != r.in(0) || r.inputs[kZ].dtype != state.dtype)) {
      return Unserved(r);
    }
  }
  Kernel kernel = QueuedKernel(r, [state, fused](const KernelCall& call) {
    BatchNormCall now = state;
    now.x = In(call, 0);
    now.scale.data = In(call, 1);
    now.bias.data = In(call, 2);
    now.mean.data = In(call, 3);
    now.var.data = In(call, 4);
    now.y = Out(call, 0);
    now.running_mean = Out(call, 1);
    now.running_var = Out(call, 2);
    if (fused) now.z = In(call, kZ);
    if (fused) now.table = Out(call, kTable);
    return BatchNorm(now, call.workspace, StreamOf(call));
  });
  kernel.infallible = true;
  kernel.in_place = {{0, 0}};
  if (fused && r.HasInput(kZ)) kernel.in_place.push_back({0, kZ});
  kernel.workspace_bytes = BatchNormWorkspace(state.work);
  return kernel;
}

absl::StatusOr<Kernel> MakeBatchNormGrad(const KernelRequest& r) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  BatchNormGradCall state;
  ONWARD_ASSIGN_OR_RETURN(state.work, WorkOf(r, r.in(1)));
  const int64_t channels = state.work.channels;
  state.epsilon = r.node.Float("epsilon", 1e-5f);
  state.dtype = r.inputs[1].dtype;
  const bool alike = r.in(0) == r.in(1) && r.inputs[0].dtype == state.dtype;
  if (!alike || !IsReal(state.dtype)) return Unserved(r);
  ONWARD_RETURN_IF_ERROR(CheckVector(r, 2, channels));
  state.scale.dtype = r.inputs[2].dtype;
  if (r.HasOutput(1)) state.dscale_dtype = r.outputs[1].dtype;
  if (r.HasOutput(2)) state.dbias_dtype = r.outputs[2].dtype;
  if (r.node.op_type == "FusedBatchNormalizationGrad") {
    const std::optional<ActivationBounds> bounds = ReadActivation(r.node);
    if (bounds.has_value()) {
      if (!r.HasInput(3) || r.in(3) != Shape{3, channels} || r.inputs[3].dtype != state.dtype) {
        return Unserved(r);
      }
      state.bounded = true;
      state.low = bounds->low;
      state.high = bounds->high;
      // Relu lets through what is above zero: no less than the smallest number.
      if (bounds->is_relu) {
        state.low = state.dtype == DType::kDouble ? std::numeric_limits<double>::denorm_min()
                                                  : std::numeric_limits<float>::denorm_min();
      }
    }
  }
  Kernel kernel = QueuedKernel(r, [state](const KernelCall& call) {
    BatchNormGradCall now = state;
    now.dy = In(call, 0);
    now.x = In(call, 1);
    now.scale.data = In(call, 2);
    if (now.bounded) now.table = In(call, 3);
    now.dx = Out(call, 0);
    now.dscale = Out(call, 1);
    now.dbias = Out(call, 2);
    return BatchNormGrad(now, call.workspace, StreamOf(call));
  });
  kernel.infallible = true;
  kernel.in_place = {{0, 0}, {0, 1}};
  kernel.workspace_bytes = BatchNormWorkspace(state.work);
  return kernel;
}

}  // namespace

void RegisterBatchNorm(KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  table.Add("BatchNormalization", {"cuda", 14, MakeBatchNorm, types});
  table.Add("BatchNormalizationGrad", {"cuda", 1, MakeBatchNormGrad, types}, kOnwardDomain);
  // The table of the fused form is in the type of X: exact enough in float and double only.
  const auto wide = [](KernelFactory make) {
    return [make](const KernelRequest& r) -> absl::StatusOr<Kernel> {
      const int x = r.node.op_type == "FusedBatchNormalization" ? 0 : 1;
      if (!r.HasInput(x) || BytesOf(r.inputs[x].dtype) < 4) return Unserved(r);
      return make(r);
    };
  };
  const char* wide_types = "float, double";
  table.Add("FusedBatchNormalization", {"cuda", 1, wide(MakeBatchNorm), wide_types}, kOnwardDomain);
  table.Add("FusedBatchNormalizationGrad", {"cuda", 1, wide(MakeBatchNormGrad), wide_types},
            kOnwardDomain);
}

}  // namespace onward::cuda

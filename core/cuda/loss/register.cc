// SPDX-License-Identifier: Apache-2.0
// The loss family. Labels are on the device: one that is no class is reported when it is met.
#include "core/cuda/register.h"

#include <string>

#include "core/base/status.h"
#include "core/cuda/loss/loss.h"
#include "core/cuda/request.h"

namespace onward::cuda {
namespace {

// Input `first` holds the scores, then come the labels and the optional weights.
absl::StatusOr<LossShape> ShapeOf(const KernelRequest& r, int first, bool softmax) {
  const Shape &x = r.in(first), &labels = r.in(first + 1);
  LossShape shape;
  shape.softmax = softmax;
  shape.dtype = r.inputs[first].dtype;
  if (x.rank() < 2 || !IsReal(shape.dtype)) return Unserved(r);
  Shape expected{x[0]};
  for (int i = 2; i < x.rank(); ++i) expected.push_back(x[i]);
  const DType label_type = r.inputs[first + 1].dtype;
  shape.narrow_labels = label_type == DType::kInt32;
  if (labels != expected || (!shape.narrow_labels && label_type != DType::kInt64)) {
    return Unserved(r);
  }
  if (r.HasInput(first + 2) &&
      (r.in(first + 2) != Shape{x[1]} || r.inputs[first + 2].dtype != shape.dtype)) {
    return Unserved(r);
  }
  shape.batch = x[0];
  shape.classes = x[1];
  shape.inner = x.elements(2, x.rank());
  shape.ignores = r.node.Has("ignore_index");
  shape.ignore_index = r.node.Int("ignore_index", 0);
  const std::string reduction = r.node.String("reduction", "mean");
  if (reduction == "none") {
    shape.reduction = LossReduction::kNone;
  } else if (reduction == "sum") {
    shape.reduction = LossReduction::kSum;
  } else if (reduction != "mean") {
    return Unserved(r);
  }
  return shape;
}

absl::StatusOr<Kernel> MakeLoss(const KernelRequest& r, bool softmax) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 2));
  ONWARD_ASSIGN_OR_RETURN(const LossShape shape, ShapeOf(r, 0, softmax));
  Kernel kernel = FaultingKernel(r, "label", [shape](const KernelCall& call) {
    void* log_prob = shape.softmax ? Out(call, 1) : nullptr;
    return Loss(shape, {In(call, 0), In(call, 1), In(call, 2), FaultOf(call)}, Out(call, 0),
                log_prob, call.workspace, StreamOf(call));
  });
  kernel.workspace_bytes = LossWorkspace(shape);
  return kernel;
}

absl::StatusOr<Kernel> MakeLossGrad(const KernelRequest& r, bool softmax) {
  ONWARD_RETURN_IF_ERROR(CheckRequest(r, 3));
  ONWARD_ASSIGN_OR_RETURN(const LossShape shape, ShapeOf(r, 1, softmax));
  const bool per_position = shape.reduction == LossReduction::kNone;
  const bool fits = per_position ? r.in(0) == r.in(2) : r.in(0).elements() == 1;
  if (!fits || r.inputs[0].dtype != shape.dtype) return Unserved(r);
  Kernel kernel = FaultingKernel(r, "label", [shape](const KernelCall& call) {
    // Without softmax only the shape of the scores counts.
    const void* scores = shape.softmax ? In(call, 1) : nullptr;
    return LossGrad(shape, {scores, In(call, 2), In(call, 3), FaultOf(call)}, In(call, 0),
                    Out(call, 0), call.workspace, StreamOf(call));
  });
  if (softmax) kernel.in_place = {{0, 1}};
  kernel.workspace_bytes = LossWorkspace(shape);
  return kernel;
}

}  // namespace

void RegisterLoss(const Context&, KernelTable& table) {
  const char* types = "float, double, float16, bfloat16";
  const auto loss = [](bool softmax) {
    return [softmax](const KernelRequest& r) { return MakeLoss(r, softmax); };
  };
  const auto grad = [](bool softmax) {
    return [softmax](const KernelRequest& r) { return MakeLossGrad(r, softmax); };
  };
  table.Add("SoftmaxCrossEntropyLoss", {"cuda", 12, loss(true), types});
  table.Add("NegativeLogLikelihoodLoss", {"cuda", 12, loss(false), types});
  table.Add("SoftmaxCrossEntropyLossGrad", {"cuda", 1, grad(true), types}, kOnwardDomain);
  table.Add("NegativeLogLikelihoodLossGrad", {"cuda", 1, grad(false), types}, kOnwardDomain);
}

}  // namespace onward::cuda

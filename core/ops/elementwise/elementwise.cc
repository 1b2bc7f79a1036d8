// SPDX-License-Identifier: Apache-2.0
// The broadcasting kernel behind all element-wise operators: shapes, layouts and
// threads, independent of what is computed.
#include "core/ops/elementwise/elementwise.h"

#include <cstring>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/device/plan/broadcast.h"
#include "core/ops/cpu/register.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

// What a prepared kernel needs; shared by copies of its std::function.
struct BroadcastCall {
  BroadcastPlan plan;
  std::shared_ptr<const Pointwise> op;
  std::vector<int64_t> input_bytes;  // per element
  int64_t output_bytes;
  OutputSlot output;

  absl::Status Run(const KernelCall& call) const;
};

absl::Status BroadcastCall::Run(const KernelCall& call) const {
  ONWARD_ASSIGN_OR_RETURN(Tensor * result, output.Get(call, plan.shape));
  const int count = static_cast<int>(op->inputs.size());
  absl::InlinedVector<const char*, 4> bases;
  for (int input : op->inputs) bases.push_back(static_cast<const char*>(call.inputs[input]->raw()));
  char* const out = static_cast<char*>(result->raw());
  ParallelFor(plan.elements, op->grain, [&](int64_t begin, int64_t end) {
    absl::InlinedVector<Operand, 4> operands(count);
    for (int k = 0; k < count; ++k) operands[k].repeats = plan.repeats[k] != 0;
    plan.Walk(begin, end, [&](const int64_t* offsets, int64_t position, int64_t n) {
      for (int k = 0; k < count; ++k) operands[k].data = bases[k] + offsets[k] * input_bytes[k];
      op->body(operands, out + position * output_bytes, n);
    });
  });
  return absl::OkStatus();
}

bool IsWhole(const ValueSpec& input, const Shape& shape) { return *input.shape == shape; }

// The opaque layout in which all whole operands can be walked as flat arrays
// along with the output; null for plain. Operands of one element do not mind.
Layout SharedLayout(const KernelRequest& request, absl::Span<const int> inputs,
                    const Shape& shape) {
  Layout shared;
  bool any_plain = false;
  for (int i : inputs) {
    const ValueSpec& input = request.inputs[i];
    if (!IsWhole(input, shape)) {
      if (input.shape->elements() != 1) return nullptr;
      continue;
    }
    if (input.dtype != request.outputs[0].dtype) return nullptr;
    any_plain |= input.layout == nullptr;
    if (input.layout == nullptr) continue;
    if (!input.layout->dense()) return nullptr;
    if (shared != nullptr && !SameLayout(shared, input.layout)) return nullptr;
    shared = input.layout;
  }
  // A permuted operand among plain ones becomes plain, not the others permuted.
  if (any_plain && shared != nullptr && shared->permuted()) return nullptr;
  return shared;
}

}  // namespace

int64_t ElementBytes(DType dtype) {
  return dtype == DType::kString ? sizeof(std::string) : DTypeBits(dtype) / 8;
}

absl::Status UnservedType(const KernelRequest& request) {
  std::string types;
  for (const ValueSpec& input : request.inputs) {
    absl::StrAppend(&types, types.empty() ? "" : ", ", std::string(DTypeName(input.dtype)));
  }
  return NodeUnimplemented(request.node, absl::StrCat("no kernel for inputs of type ", types));
}

absl::StatusOr<Kernel> BroadcastKernel(const KernelRequest& request, std::vector<int> inputs,
                                       RunBody body, int64_t grain) {
  std::vector<Shape> shapes;
  std::vector<int64_t> input_bytes;
  for (int i : inputs) {
    shapes.push_back(request.in(i));
    input_bytes.push_back(ElementBytes(request.inputs[i].dtype));
  }
  absl::StatusOr<BroadcastPlan> plan = PlanBroadcast(shapes);
  if (!plan.ok()) return AtNode(request.node, plan.status());
  const Shape shape = plan->shape;
  const DType dtype = request.outputs[0].dtype;
  OutputSlot output(request, 0);
  ONWARD_RETURN_IF_ERROR(output.Accepts(shape));

  Kernel kernel;
  const Layout layout = output.planned() ? SharedLayout(request, inputs, shape) : nullptr;
  if (layout != nullptr) {
    kernel.input_layouts.resize(request.inputs.size());
    for (int i : inputs) {
      if (IsWhole(request.inputs[i], shape)) kernel.input_layouts[i] = layout;
    }
    kernel.output_layouts = {layout};
  }
  for (int i : inputs) {
    if (IsWhole(request.inputs[i], shape) && request.inputs[i].dtype == dtype) {
      kernel.in_place.emplace_back(0, i);
    }
  }
  kernel.infallible = output.planned();
  const bool planned = output.planned();
  auto op = std::make_shared<const Pointwise>(Pointwise{std::move(body), std::move(inputs), grain});
  if (planned) kernel.pointwise = op;
  auto prepared = std::make_shared<const BroadcastCall>(
      BroadcastCall{*std::move(plan), std::move(op), std::move(input_bytes), ElementBytes(dtype),
                    std::move(output)});
  kernel.run = [prepared](const KernelCall& call) { return prepared->Run(call); };
  return kernel;
}

absl::StatusOr<Kernel> IdentityKernel(const KernelRequest& request) {
  if (!request.HasInput(0)) return NodeError(request.node, "input 0 is missing");
  return IdentityKernel(request, request.in(0));
}

absl::StatusOr<Kernel> IdentityKernel(const KernelRequest& request, const Shape& shape) {
  if (request.outputs[0].dtype != request.inputs[0].dtype) return UnservedType(request);
  const OutputSlot output(request, 0);
  ONWARD_RETURN_IF_ERROR(output.Accepts(shape));
  const Layout layout = shape == request.in(0) ? request.inputs[0].layout : nullptr;
  Kernel kernel;
  kernel.is_view = output.planned();
  kernel.infallible = output.planned();
  kernel.in_place = {{0, 0}};
  if (layout != nullptr) {
    kernel.input_layouts = {layout};
    kernel.output_layouts = {layout};
  }
  kernel.run = [output, layout, shape](const KernelCall& call) -> absl::Status {
    const Tensor& input = *call.inputs[0];
    ONWARD_ASSIGN_OR_RETURN(Tensor * result, output.Get(call, shape));
    if (layout == nullptr) {
      CopyAll(*result, input);
    } else if (result->raw() != input.raw()) {
      std::memcpy(result->raw(), input.raw(), layout->bytes());
    }
    return absl::OkStatus();
  };
  return kernel;
}

void RegisterElementwiseKernels(KernelTable& table) {
  RegisterUnaryMathKernels(table);
  RegisterArithmeticKernels(table);
  RegisterLogicalKernels(table);
  RegisterCastKernels(table);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Operators whose elements follow from where they are.
#include "core/cuda/movement/fill.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/cuda/call.h"
#include "core/cuda/movement/movement.h"

namespace onward::cuda {
namespace {

Element ElementOf(const Tensor& scalar) {
  Element element;
  std::memcpy(&element, scalar.raw(), std::min(scalar.bytes(), sizeof(element)));
  return element;
}

// The shape is the output's, wherever it came from.
absl::StatusOr<Kernel> MakeConstantOfShape(const KernelRequest& request) {
  const Tensor* const attribute = request.node.TensorAttribute("value");
  const Tensor value = attribute != nullptr ? *attribute : Tensor::Scalar<float>(0.0f);
  if (!IsWhole(request, 1) || value.elements() != 1 || value.dtype() != request.outputs[0].dtype ||
      MovableBytes(value.dtype()) == 0) {
    return Declined(request);
  }
  Kernel kernel;
  kernel.infallible = true;
  kernel.run = [element = ElementOf(value), bytes = MovableBytes(value.dtype()),
                n = request.out(0).elements()](const KernelCall& call) {
    return StatusOf(LaunchFill(n, bytes, element, call.outputs[0]->raw(), StreamOf(call)),
                    "cannot fill a tensor");
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeEyeLike(const KernelRequest& request) {
  if (!IsWhole(request, 1) || request.in(0).rank() != 2 || request.out(0) != request.in(0)) {
    return Declined(request);
  }
  const DType dtype = request.outputs[0].dtype;
  const bool known = IsFloating(dtype) || IsInteger(dtype) || dtype == DType::kBool;
  const int bytes = MovableBytes(dtype);
  if (!known || bytes == 0) return Declined(request);
  const Shape shape = request.out(0);
  Kernel kernel;
  kernel.infallible = true;
  kernel.run = [shape, bytes, element = ElementOf(ScalarOf(dtype, 1.0)),
                k = request.node.Int("k", 0)](const KernelCall& call) {
    return StatusOf(
        LaunchEye(shape[0], shape[1], k, bytes, element, call.outputs[0]->raw(), StreamOf(call)),
        "cannot make a diagonal");
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeTrilu(const KernelRequest& request) {
  if (!IsWhole(request, 1) || request.in(0).rank() < 2 || request.in(0) != request.out(0)) {
    return Declined(request);
  }
  const int bytes = MovableBytes(request);
  const bool reads_k = request.HasInput(1);
  if (bytes == 0 ||
      (reads_k && (request.inputs[1].dtype != DType::kInt64 ||
                   !request.inputs[1].shape.has_value() || request.in(1).elements() != 1))) {
    return Declined(request);
  }
  const Shape shape = request.in(0);
  const Triangle triangle{
      shape.elements(), shape[shape.rank() - 2],          shape[shape.rank() - 1], 0,
      nullptr,          request.node.Int("upper", 1) != 0};
  Kernel kernel;
  kernel.in_place = {{0, 0}};
  kernel.run = [triangle, bytes, reads_k](const KernelCall& call) {
    Triangle bound = triangle;
    if (reads_k) bound.k_at = call.inputs[1]->data<int64_t>();
    return StatusOf(
        LaunchTriangle(bound, bytes, call.inputs[0]->raw(), call.outputs[0]->raw(), StreamOf(call)),
        "cannot take a triangle");
  };
  return kernel;
}

std::optional<RangeType> RangeTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat: return RangeType::kFloat;
    case DType::kDouble: return RangeType::kDouble;
    case DType::kFloat16: return RangeType::kHalf;
    case DType::kBFloat16: return RangeType::kBFloat16;
    case DType::kInt16: return RangeType::kInt16;
    case DType::kInt32: return RangeType::kInt32;
    case DType::kInt64: return RangeType::kInt64;
    default: return std::nullopt;
  }
}

absl::StatusOr<Kernel> MakeRange(const KernelRequest& request) {
  if (!IsWhole(request, 3) || request.out(0).rank() != 1) return Declined(request);
  const DType dtype = request.outputs[0].dtype;
  const std::optional<RangeType> type = RangeTypeOf(dtype);
  if (!type.has_value() || request.node.Int("stash_type", 1) != 1) return Declined(request);
  Range range{request.out(0)[0], *type, 0, 0, 0, 0};
  for (int i : {0, 2}) {
    const Tensor* const t = request.inputs[i].constant;
    if (t == nullptr || t->elements() != 1 || t->dtype() != dtype) return Declined(request);
    const auto reals = ToDoubles(*t);
    if (!reals.ok()) return Declined(request);
    (i == 0 ? range.start : range.delta) = (*reals)[0];
    if (IsFloating(dtype)) continue;
    const auto integers = ToInts(*t);
    if (!integers.ok()) return Declined(request);
    (i == 0 ? range.integer_start : range.integer_delta) = (*integers)[0];
  }
  Kernel kernel;
  kernel.infallible = true;
  kernel.run = [range](const KernelCall& call) {
    return StatusOf(LaunchRange(range, call.outputs[0]->raw(), StreamOf(call)),
                    "cannot make a range");
  };
  return kernel;
}

}  // namespace

void RegisterFills(KernelTable& table) {
  table.Add("ConstantOfShape", MovementEntry(9, MakeConstantOfShape));
  table.Add("EyeLike", MovementEntry(9, MakeEyeLike));
  table.Add("Trilu", MovementEntry(14, MakeTrilu));
  table.Add("Range", MovementEntry(11, MakeRange));
}

}  // namespace onward::cuda

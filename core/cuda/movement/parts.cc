// SPDX-License-Identifier: Apache-2.0
// Concat and Split: a copy of rows per part.
#include <vector>

#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/copy.h"
#include "core/cuda/movement/movement.h"

namespace onward::cuda {
namespace {

// A whole of rows, each of which is the parts' rows one after another, in bytes.
struct Parts {
  int64_t rows = 1;
  int64_t row = 0;
  std::vector<int64_t> lengths;
};

// None unless the parts are as large as the whole but for the axis, along which they add up.
std::optional<Parts> PartsOf(const Shape& whole, absl::Span<const ValueSpec> parts, int axis,
                             DType dtype) {
  const int bytes = MovableBytes(dtype);
  if (bytes == 0) return std::nullopt;
  const int64_t inner = whole.elements(axis + 1, whole.rank()) * bytes;
  Parts result;
  result.rows = whole.elements(0, axis);
  result.row = whole[axis] * inner;
  int64_t rest = whole[axis];
  for (const ValueSpec& part : parts) {
    if (!part.present() || !part.shape.has_value() || part.dtype != dtype ||
        part.shape->rank() != whole.rank()) {
      return std::nullopt;
    }
    Shape like = whole;
    like[axis] = (*part.shape)[axis];
    if (like != *part.shape) return std::nullopt;
    rest -= like[axis];
    result.lengths.push_back(like[axis] * inner);
  }
  if (rest != 0) return std::nullopt;
  return result;
}

// The widest access that serves both sides.
cudaError_t CopyPart(const Parts& parts, int64_t length, const char* from, int64_t from_step,
                     char* to, int64_t to_step, cudaStream_t stream) {
  const auto divides = [&](int64_t width) {
    return length % width == 0 && from_step % width == 0 && to_step % width == 0 &&
           reinterpret_cast<uintptr_t>(from) % width == 0 &&
           reinterpret_cast<uintptr_t>(to) % width == 0;
  };
  int width = 16;
  while (width > 1 && !divides(width)) width /= 2;
  return LaunchCopyRows({parts.rows, length / width, from_step / width, to_step / width}, width,
                        from, to, stream);
}

absl::StatusOr<Kernel> MakeConcat(const KernelRequest& request) {
  if (!IsWhole(request, static_cast<int>(request.inputs.size())) || request.inputs.empty()) {
    return Declined(request);
  }
  const Shape& whole = request.out(0);
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", 0), whole.rank());
  if (!axis.ok()) return Declined(request);
  const auto parts = PartsOf(whole, request.inputs, *axis, request.outputs[0].dtype);
  if (!parts.has_value()) return Declined(request);
  if (request.inputs.size() == 1) {
    Kernel kernel = CopyKernel(TensorBytes(request.outputs[0].dtype, whole));
    kernel.is_view = true;
    return kernel;
  }
  Kernel kernel;
  kernel.infallible = true;
  kernel.run = [parts = *parts](const KernelCall& call) {
    char* to = call.outputs[0]->data<char>();
    for (size_t i = 0; i < parts.lengths.size(); ++i) {
      ONWARD_RETURN_IF_ERROR(
          StatusOf(CopyPart(parts, parts.lengths[i], call.inputs[i]->data<char>(), parts.lengths[i],
                            to, parts.row, StreamOf(call)),
                   "cannot join tensors"));
      to += parts.lengths[i];
    }
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeSplit(const KernelRequest& request) {
  if (!request.HasInput(0) || !request.inputs[0].shape.has_value() || request.outputs.empty()) {
    return Declined(request);
  }
  const Shape& whole = request.in(0);
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", 0), whole.rank());
  if (!axis.ok()) return Declined(request);
  const auto parts = PartsOf(whole, request.outputs, *axis, request.inputs[0].dtype);
  if (!parts.has_value()) return Declined(request);
  Kernel kernel;
  kernel.infallible = true;
  kernel.run = [parts = *parts](const KernelCall& call) {
    const char* from = call.inputs[0]->data<char>();
    for (size_t i = 0; i < parts.lengths.size(); ++i) {
      ONWARD_RETURN_IF_ERROR(
          StatusOf(CopyPart(parts, parts.lengths[i], from, parts.row, call.outputs[i]->data<char>(),
                            parts.lengths[i], StreamOf(call)),
                   "cannot split a tensor"));
      from += parts.lengths[i];
    }
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterParts(KernelTable& table) {
  table.Add("Concat", MovementEntry(4, MakeConcat));
  table.Add("Split", MovementEntry(13, MakeSplit));
}

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/movement/movement.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/cuda/call.h"
#include "core/cuda/copy.h"
#include "core/cuda/register.h"

namespace onward::cuda {
namespace {

constexpr int kWidest = 16;  // bytes that one access moves

struct StridedPlan {
  StridedView view;
  int element_bytes;
};

// Without dims of 1, and with neighbours that can be one dim joined.
std::optional<StridedView> Merged(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides,
                                  int64_t offset) {
  std::vector<std::pair<int64_t, int64_t>> joined;  // (dim, stride), outermost first
  StridedView view;
  view.offset = offset;
  view.elements = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    view.elements *= dims[i];
    if (dims[i] == 1) continue;
    if (!joined.empty() && joined.back().second == strides[i] * dims[i]) {
      joined.back() = {joined.back().first * dims[i], strides[i]};
    } else {
      joined.emplace_back(dims[i], strides[i]);
    }
  }
  if (joined.size() > kMaxCopyRank) return std::nullopt;
  view.rank = static_cast<int>(joined.size());
  for (int d = 0; d < view.rank; ++d) {
    view.dims[d] = joined[d].first;
    view.strides[d] = joined[d].second;
  }
  return view;
}

// Several elements as one, where rows are contiguous and begin at multiples of them.
StridedPlan Widened(const StridedPlan& plan) {
  const StridedView& view = plan.view;
  const int last = view.rank - 1;
  if (view.elements == 0 || view.rank == 0 || view.strides[last] != 1) return plan;
  int factor = kWidest / plan.element_bytes;
  const auto divides = [&](int64_t n) { return n % factor == 0; };
  const auto fits = [&] {
    return divides(view.dims[last]) && divides(view.offset) &&
           std::all_of(view.strides, view.strides + last, divides);
  };
  while (factor > 1 && !fits()) factor /= 2;
  StridedPlan wide = plan;
  wide.element_bytes *= factor;
  wide.view.elements /= factor;
  wide.view.offset /= factor;
  wide.view.dims[last] /= factor;
  for (int d = 0; d < last; ++d) wide.view.strides[d] /= factor;
  return wide;
}

bool IsAligned(const void* p, int bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; }

bool IsIdentity(const StridedView& view, int64_t source_elements) {
  return view.offset == 0 && view.elements == source_elements &&
         (view.rank == 0 || (view.rank == 1 && view.strides[0] == 1));
}

}  // namespace

bool IsWhole(const KernelRequest& request, int inputs) {
  for (int i = 0; i < inputs; ++i) {
    if (!request.HasInput(i) || !request.inputs[i].shape.has_value()) return false;
  }
  return request.HasOutput(0) && request.outputs[0].shape.has_value();
}

int MovableBytes(DType dtype) {
  const int bits = DTypeBits(dtype);
  return bits % 8 == 0 ? bits / 8 : 0;
}

int MovableBytes(const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;
  return request.outputs[0].dtype == dtype ? MovableBytes(dtype) : 0;
}

std::optional<std::vector<int64_t>> ConstantInts(const KernelRequest& request, int input,
                                                 std::vector<int64_t> otherwise) {
  if (!request.HasInput(input)) return otherwise;
  if (request.inputs[input].constant == nullptr) return std::nullopt;
  absl::StatusOr<std::vector<int64_t>> values = ToInts(*request.inputs[input].constant);
  if (!values.ok()) return std::nullopt;
  return *std::move(values);
}

absl::StatusOr<Kernel> StridedKernel(const KernelRequest& request, absl::Span<const int64_t> dims,
                                     absl::Span<const int64_t> strides, int64_t offset) {
  const int bytes = MovableBytes(request);
  const std::optional<StridedView> view = Merged(dims, strides, offset);
  if (bytes == 0 || !view.has_value() || view->elements != request.out(0).elements()) {
    return Declined(request);
  }
  if (IsIdentity(*view, request.in(0).elements())) {
    Kernel kernel = CopyKernel(TensorBytes(request.inputs[0].dtype, request.in(0)));
    kernel.is_view = true;
    return kernel;
  }
  const StridedPlan narrow{*view, bytes}, wide = Widened(narrow);
  Kernel kernel;
  kernel.infallible = true;
  kernel.run = [narrow, wide](const KernelCall& call) {
    const void* const from = call.inputs[0]->raw();
    void* const to = call.outputs[0]->raw();
    const bool aligned = IsAligned(from, wide.element_bytes) && IsAligned(to, wide.element_bytes);
    const StridedPlan& plan = aligned ? wide : narrow;
    return StatusOf(LaunchStridedCopy(plan.view, plan.element_bytes, from, to, StreamOf(call)),
                    "cannot move elements");
  };
  return kernel;
}

void RegisterMovement(const Context&, KernelTable& table) {
  RegisterViews(table);
  RegisterCopies(table);
  RegisterParts(table);
  RegisterPad(table);
  RegisterFills(table);
}

}  // namespace onward::cuda

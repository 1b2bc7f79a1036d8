// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/movement/pad.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/cuda/call.h"
#include "core/cuda/movement/movement.h"

namespace onward::cuda {
namespace {

std::optional<PadMode> ModeOf(const Node& node) {
  const std::string name = node.String("mode", "constant");
  if (name == "constant") return PadMode::kConstant;
  if (name == "reflect") return PadMode::kReflect;
  if (name == "edge") return PadMode::kEdge;
  if (name == "wrap") return PadMode::kWrap;
  return std::nullopt;
}

// What comes before each axis; none unless the output's shape agrees.
std::optional<std::vector<int64_t>> PadsBefore(const KernelRequest& request) {
  const Shape &in = request.in(0), &out = request.out(0);
  std::vector<int64_t> all(in.rank());
  std::iota(all.begin(), all.end(), 0);
  const auto given = ConstantInts(request, 1), axes = ConstantInts(request, 3, all);
  if (!given.has_value() || !axes.has_value() || given->size() != 2 * axes->size() ||
      out.rank() != in.rank()) {
    return std::nullopt;
  }
  std::vector<int64_t> before(in.rank(), 0);
  Shape padded = in;
  std::vector<bool> seen(in.rank(), false);
  for (size_t i = 0; i < axes->size(); ++i) {
    const absl::StatusOr<int> axis = NormalizeAxis((*axes)[i], in.rank());
    constexpr int64_t kLimit = int64_t{1} << 40;
    const int64_t low = (*given)[i], high = (*given)[axes->size() + i];
    if (!axis.ok() || seen[*axis] || std::max(std::abs(low), std::abs(high)) > kLimit) {
      return std::nullopt;
    }
    seen[*axis] = true;
    before[*axis] = low;
    padded[*axis] += low + high;
  }
  if (padded != out) return std::nullopt;
  return before;
}

// Axes that are as they were join with such neighbours.
std::optional<PadPlan> PlanOf(const KernelRequest& request, PadMode mode,
                              absl::Span<const int64_t> before) {
  const Shape &in = request.in(0), &out = request.out(0);
  const Shape::Dims strides = in.Strides();
  PadPlan plan;
  plan.mode = mode;
  plan.elements = out.elements();
  bool was_whole = false;
  for (int d = 0; d < in.rank(); ++d) {
    const int64_t crop = std::max<int64_t>(0, -before[d]), low = std::max<int64_t>(0, before[d]);
    const int64_t kept = std::min(in[d] - crop, out[d] - low);
    if (kept < 0 || (kept == 0 && out[d] > 0 && mode != PadMode::kConstant)) return std::nullopt;
    const bool whole = before[d] == 0 && in[d] == out[d];
    if (whole && was_whole) {
      const int last = plan.rank - 1;
      plan.dims[last] *= out[d];
      plan.kept[last] *= kept;
      plan.strides[last] = strides[d];
      continue;
    }
    was_whole = whole;
    if (plan.rank == kMaxPadRank) return std::nullopt;
    plan.dims[plan.rank] = out[d];
    plan.strides[plan.rank] = strides[d];
    plan.low[plan.rank] = low;
    plan.kept[plan.rank] = kept;
    plan.crop[plan.rank] = crop;
    ++plan.rank;
  }
  return plan;
}

absl::StatusOr<Kernel> MakePad(const KernelRequest& request) {
  const std::optional<PadMode> mode = ModeOf(request.node);
  if (!IsWhole(request, 2) || !mode.has_value()) return Declined(request);
  const int bytes = MovableBytes(request);
  const auto before = PadsBefore(request);
  const bool has_value =
      request.HasInput(2) && request.inputs[2].shape.has_value() && request.in(2).elements() > 0;
  if (bytes == 0 || !before.has_value() ||
      (request.HasInput(2) && request.inputs[2].dtype != request.inputs[0].dtype)) {
    return Declined(request);
  }
  const std::optional<PadPlan> plan = PlanOf(request, *mode, *before);
  if (!plan.has_value()) return Declined(request);
  Kernel kernel;
  kernel.infallible = true;
  kernel.run = [plan = *plan, bytes, has_value](const KernelCall& call) {
    return StatusOf(
        LaunchPad(plan, bytes, call.inputs[0]->raw(), has_value ? call.inputs[2]->raw() : nullptr,
                  call.outputs[0]->raw(), StreamOf(call)),
        "cannot pad");
  };
  return kernel;
}

}  // namespace

void RegisterPad(KernelTable& table) { table.Add("Pad", MovementEntry(11, MakePad)); }

}  // namespace onward::cuda

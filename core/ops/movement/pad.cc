// SPDX-License-Identifier: Apache-2.0
// Pad: every output position along an axis is either a source position or, in
// constant mode, none; negative pads crop first.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/movement/movement.h"
#include "core/ops/movement/shape.h"
#include "core/ops/movement/through_bytes.h"

namespace onward {
namespace {

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

constexpr int64_t kNone = -1;

// One axis. After cropping, `kept` source positions from `crop` on are output
// positions [low, low + kept); the mode decides the others.
struct PadLevel {
  int64_t size = 1, source_size = 1;
  int64_t low = 0, kept = 1, crop = 0;
  int64_t dst_stride = 1, src_stride = 1;
};

struct PadPlan {
  Shape shape;
  PadMode mode = PadMode::kConstant;
  std::vector<PadLevel> levels;
  int64_t block = 1;  // elements after the last padded axis
};

// Where position p of an axis of n comes from, p outside [0, n) too.
int64_t Source(PadMode mode, int64_t p, int64_t n) {
  if (p >= 0 && p < n) return p;
  switch (mode) {
    case PadMode::kConstant: return kNone;
    case PadMode::kEdge: return p < 0 ? 0 : n - 1;
    case PadMode::kWrap: return (p % n + n) % n;
    case PadMode::kReflect: {
      if (n == 1) return 0;
      const int64_t period = 2 * (n - 1);
      const int64_t q = (p % period + period) % period;
      return q < n ? q : period - q;
    }
  }
  return kNone;
}

absl::StatusOr<PadLevel> PlanAxis(const Node& node, PadMode mode, int axis, int64_t size,
                                  int64_t before, int64_t after) {
  PadLevel level;
  level.source_size = size;
  level.size = size + before + after;
  level.low = std::max<int64_t>(0, before);
  level.crop = std::max<int64_t>(0, -before);
  level.kept = size - level.crop - std::max<int64_t>(0, -after);
  if (level.kept < 0) {
    return NodeError(node, absl::StrCat("pads ", before, " and ", after, " remove more than the ",
                                        size, " elements of axis ", axis));
  }
  if (level.kept == 0 && level.size > 0 && mode != PadMode::kConstant) {
    return NodeError(node, absl::StrCat("axis ", axis, " has no element to pad with"));
  }
  return level;
}

// Pads per axis: begins in [0, rank), ends in [rank, 2 * rank).
absl::StatusOr<std::vector<int64_t>> ReadPads(const Node& node, const Shape& in,
                                              absl::Span<const Tensor* const> inputs) {
  const int rank = in.rank();
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> given, IntsOf(node, *inputs[1], "pads"));
  std::vector<int64_t> axes(rank);
  for (int i = 0; i < rank; ++i) axes[i] = i;
  if (const Tensor* t = InputAt(inputs, 3); t != nullptr) {
    ONWARD_ASSIGN_OR_RETURN(axes, IntsOf(node, *t, "axes"));
  }
  const size_t count = axes.size();
  if (given.size() != 2 * count) {
    return NodeError(node, absl::StrCat("pads has ", given.size(), " elements, expected two for ",
                                        "each of ", count, " axes"));
  }
  std::vector<int64_t> pads(2 * rank, 0);
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; i < count; ++i) {
    const absl::StatusOr<int> axis = NormalizeAxis(axes[i], rank);
    if (!axis.ok()) return AtNode(node, axis.status());
    if (seen[*axis]) return NodeError(node, absl::StrCat("axis ", axes[i], " is given twice"));
    seen[*axis] = true;
    constexpr int64_t kLimit = int64_t{1} << 40;
    for (int64_t pad : {given[i], given[count + i]}) {
      if (pad < -kLimit || pad > kLimit) {
        return absl::ResourceExhaustedError(
            absl::StrCat(node.Describe(), ": pad ", pad, " on axis ", axes[i], " is too large"));
      }
    }
    pads[*axis] = given[i];
    pads[rank + *axis] = given[count + i];
  }
  return pads;
}

absl::StatusOr<PadPlan> PlanPad(const Node& node, PadMode mode, const Shape& in,
                                absl::Span<const Tensor* const> inputs) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, ReadPads(node, in, inputs));
  const int rank = in.rank();
  PadPlan plan;
  plan.mode = mode;
  // Axes before the first padded one are one level, those after the last one a
  // block.
  int first = rank, end = 0;
  for (int i = 0; i < rank; ++i) {
    if (pads[i] == 0 && pads[rank + i] == 0) continue;
    first = std::min(first, i);
    end = i + 1;
  }
  end = std::max(first, end);
  PadLevel lead;
  lead.size = lead.source_size = lead.kept = in.elements(0, first);
  plan.levels.push_back(lead);
  for (int i = first; i < end; ++i) {
    ONWARD_ASSIGN_OR_RETURN(const PadLevel level,
                            PlanAxis(node, mode, i, in[i], pads[i], pads[rank + i]));
    plan.levels.push_back(level);
  }
  for (int i = 0; i < rank; ++i) plan.shape.push_back(in[i] + pads[i] + pads[rank + i]);
  const absl::StatusOr<int64_t> elements = CheckedElements(plan.shape.dims());
  if (!elements.ok()) return AtNode(node, elements.status());
  if (first == 0 && plan.levels.size() > 1) plan.levels.erase(plan.levels.begin());
  plan.block = in.elements(end, rank);
  int64_t dst = plan.block, src = plan.block;
  for (size_t i = plan.levels.size(); i-- > 0 && *elements > 0;) {
    plan.levels[i].dst_stride = dst;
    plan.levels[i].src_stride = src;
    dst *= plan.levels[i].size;
    src *= plan.levels[i].source_size;
  }
  return plan;
}

// Output positions [begin, end) of the innermost level that lie outside the
// kept ones.
template <typename T>
void PadEdge(PadMode mode, const PadLevel& level, T* dst, const T* src, const T& constant,
             int64_t begin, int64_t end) {
  const int64_t block = level.dst_stride;
  if (mode == PadMode::kConstant) {
    for (int64_t i = begin * block; i < end * block; ++i) dst[i] = constant;
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = Source(mode, i - level.low, level.kept) + level.crop;
    if (block == 1) {
      dst[i] = src[from];
    } else {
      CopyRun(dst + i * block, src + from * block, block);
    }
  }
}

// Fills output positions [begin, end) of one level.
template <typename T>
void PadRange(const PadPlan& plan, size_t depth, T* dst, const T* src, const T& constant,
              int64_t begin, int64_t end) {
  const PadLevel& level = plan.levels[depth];
  const int64_t high = level.low + level.kept;
  if (depth + 1 == plan.levels.size()) {
    const int64_t from = std::clamp(level.low, begin, end), to = std::clamp(high, begin, end);
    PadEdge(plan.mode, level, dst, src, constant, begin, from);
    CopyRun(dst + from * plan.block, src + (from - level.low + level.crop) * plan.block,
            (to - from) * plan.block);
    PadEdge(plan.mode, level, dst, src, constant, to, end);
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    T* out = dst + i * level.dst_stride;
    const int64_t from = Source(plan.mode, i - level.low, level.kept);
    if (from == kNone) {
      std::fill(out, out + level.dst_stride, constant);
    } else {
      PadRange(plan, depth + 1, out, src + (from + level.crop) * level.src_stride, constant, 0,
               plan.levels[depth + 1].size);
    }
  }
}

absl::Status RunPad(const PadPlan& plan, const KernelCall& call, Tensor& output) {
  if (output.elements() == 0) return absl::OkStatus();
  const Tensor* value = InputAt(call.inputs, 2);
  DispatchWidth(output.dtype(), [&]<typename T>() {
    const T constant = value != nullptr && value->elements() > 0 ? *value->data<T>() : T{};
    const PadLevel& top = plan.levels[0];
    ParallelFor(top.size, RowGrain<T>(top.dst_stride), [&](int64_t begin, int64_t end) {
      PadRange(plan, 0, output.data<T>(), call.inputs[0]->data<T>(), constant, begin, end);
    });
  });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakePad(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckSameType(request, 0, {2}));
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  const std::string name = request.node.String("mode", "constant");
  PadMode mode = PadMode::kConstant;
  if (name == "reflect") {
    mode = PadMode::kReflect;
  } else if (name == "edge") {
    mode = PadMode::kEdge;
  } else if (name == "wrap") {
    mode = PadMode::kWrap;
  } else if (name != "constant") {
    return NodeError(request.node, absl::StrCat("unknown mode ", name));
  }
  auto make = [node = KeepNode(request.node), mode,
               in = request.in(0)](absl::Span<const Tensor* const> inputs) {
    return PlanPad(*node, mode, in, inputs);
  };
  return PlannedKernel<PadPlan>(request, {1, 3}, make, RunPad);
}

}  // namespace

void RegisterPadKernels(KernelTable& table) {
  table.Add("Pad", {"reference", 11, ThroughBytes(MakePad), "all"});
}

}  // namespace onward

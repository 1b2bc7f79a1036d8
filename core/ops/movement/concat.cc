// SPDX-License-Identifier: Apache-2.0
// Concat and Split: the same walk over rows, in the two directions.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/movement/movement.h"
#include "core/ops/movement/shape.h"

namespace onward {
namespace {

// A tensor whole seen as `rows` rows of `row` elements, each of which is the
// parts' rows one after another.
struct Parts {
  int64_t rows = 1;
  int64_t row = 0;
  std::vector<int64_t> lengths;  // of each part's row
};

// Calls copy(part, row, offset in the whole row, offset in the part's row, n)
// so that all elements are covered, each on one thread.
template <typename T, typename Copy>
void ForParts(const Parts& parts, const Copy& copy) {
  if (parts.rows >= Threads()) {
    ParallelFor(parts.rows, RowGrain<T>(parts.row), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t at = 0;
        for (size_t i = 0; i < parts.lengths.size(); ++i) {
          copy(i, r, at, int64_t{0}, parts.lengths[i]);
          at += parts.lengths[i];
        }
      }
    });
    return;
  }
  for (int64_t r = 0; r < parts.rows; ++r) {
    int64_t at = 0;
    for (size_t i = 0; i < parts.lengths.size(); ++i) {
      ParallelFor(parts.lengths[i], MoveGrain<T>(),
                  [&](int64_t begin, int64_t end) { copy(i, r, at + begin, begin, end - begin); });
      at += parts.lengths[i];
    }
  }
}

template <typename T>
void ConcatRows(const Parts& parts, const KernelCall& call, Tensor& output) {
  T* whole = output.data<T>();
  ForParts<T>(parts, [&](size_t i, int64_t r, int64_t at, int64_t from, int64_t n) {
    CopyRun(whole + r * parts.row + at, call.inputs[i]->data<T>() + r * parts.lengths[i] + from, n);
  });
}

absl::StatusOr<int> AxisOf(const KernelRequest& request) {
  const absl::StatusOr<int> axis = NormalizeAxis(request.node.Int("axis", 0), request.in(0).rank());
  return axis.ok() ? axis : AtNode(request.node, axis.status());
}

absl::StatusOr<Shape> JoinedShape(const KernelRequest& request, int) {
  const int count = static_cast<int>(request.inputs.size());
  ONWARD_RETURN_IF_ERROR(CheckArity(request, std::max(count, 1)));
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(request));
  Shape out = request.in(0);
  out[axis] = 0;
  for (int i = 0; i < count; ++i) {
    ONWARD_RETURN_IF_ERROR(CheckSameType(request, 0, {i}));
    Shape rest = request.in(i);
    if (rest.rank() == out.rank()) rest[axis] = out[axis];
    if (rest != out) {
      return NodeError(
          request.node,
          absl::StrCat("input ", i, " has shape ", request.in(i).ToString(), ", input 0 has ",
                       request.in(0).ToString(), ": they differ outside axis ", axis));
    }
    out[axis] += request.in(i)[axis];
  }
  return out;
}

absl::StatusOr<Kernel> MakeConcat(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(const Shape out, JoinedShape(request, 0));
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(request));
  const int count = static_cast<int>(request.inputs.size());
  const int64_t inner = out.elements(axis + 1, out.rank());
  Parts parts;
  parts.rows = out.elements(0, axis);
  parts.row = out[axis] * inner;
  for (int i = 0; i < count; ++i) parts.lengths.push_back(request.in(i)[axis] * inner);
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(out));
  Kernel kernel;
  kernel.infallible = slot.planned();
  kernel.run = [slot, parts, out](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, out));
    DispatchWidth(output->dtype(), [&]<typename T>() { ConcatRows<T>(parts, call, *output); });
    return absl::OkStatus();
  };
  if (count == 1) SetView(request, kernel);
  return kernel;
}

// Lengths along the axis, as the input `split` or as equal as they can be: all
// but the last are the quotient rounded up.
absl::StatusOr<std::vector<int64_t>> SplitLengths(const Node& node, const Tensor* split,
                                                  int64_t size, int64_t count) {
  std::vector<int64_t> lengths;
  if (split == nullptr) {
    const int64_t each = (size + count - 1) / count;
    lengths.assign(count, each);
    lengths.back() = size - each * (count - 1);
  } else {
    ONWARD_ASSIGN_OR_RETURN(lengths, IntsOf(node, *split, "split"));
  }
  int64_t rest = size;
  bool valid = static_cast<int64_t>(lengths.size()) == count;
  for (int64_t length : lengths) {
    valid = valid && length >= 0 && length <= rest;
    rest -= valid ? length : 0;
  }
  if (!valid || rest != 0) {
    return NodeError(node, absl::StrCat("cannot split an axis of ", size, " into ", count,
                                        " parts of lengths ", Shape(lengths).ToString()));
  }
  return lengths;
}

struct SplitPlan {
  Parts parts;
  std::vector<Shape> shapes;
};

absl::StatusOr<SplitPlan> PlanSplit(const Node& node, const Shape& in, int axis,
                                    const Tensor* split) {
  const int64_t count = static_cast<int64_t>(node.outputs.size());
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths,
                          SplitLengths(node, split, in[axis], count));
  const int64_t inner = in.elements(axis + 1, in.rank());
  SplitPlan plan;
  plan.parts.rows = in.elements(0, axis);
  plan.parts.row = in[axis] * inner;
  for (int64_t length : lengths) {
    plan.parts.lengths.push_back(length * inner);
    plan.shapes.push_back(in);
    plan.shapes.back()[axis] = length;
  }
  return plan;
}

absl::Status RunSplit(const SplitPlan& plan, const std::vector<OutputSlot>& slots,
                      const KernelCall& call) {
  std::vector<Tensor*> outputs(slots.size(), nullptr);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].wanted()) continue;
    ONWARD_ASSIGN_OR_RETURN(outputs[i], slots[i].Get(call, plan.shapes[i]));
  }
  DispatchWidth(call.inputs[0]->dtype(), [&]<typename T>() {
    const T* whole = call.inputs[0]->data<T>();
    ForParts<T>(plan.parts, [&](size_t i, int64_t r, int64_t at, int64_t from, int64_t n) {
      if (outputs[i] == nullptr) return;
      CopyRun(outputs[i]->data<T>() + r * plan.parts.lengths[i] + from,
              whole + r * plan.parts.row + at, n);
    });
  });
  return absl::OkStatus();
}

absl::StatusOr<Shape> SplitShape(const KernelRequest& request, int output) {
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(request));
  if (!AllConstant(request, {1})) return NodeError(request.node, "has a shape known later");
  ONWARD_ASSIGN_OR_RETURN(const SplitPlan plan, PlanSplit(request.node, request.in(0), axis,
                                                          InputAt(Constants(request), 1)));
  return plan.shapes[output];
}

absl::StatusOr<Kernel> MakeSplit(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1, 0));
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  const Shape in = request.in(0);
  ONWARD_ASSIGN_OR_RETURN(const int axis, AxisOf(request));
  const int64_t count = static_cast<int64_t>(request.outputs.size());
  const int64_t declared = request.node.Int("num_outputs", count);
  if (declared != count || count != static_cast<int64_t>(request.node.outputs.size()) ||
      count == 0) {
    return NodeError(request.node, absl::StrCat("num_outputs is ", declared, ", but the node has ",
                                                count, " outputs"));
  }
  std::vector<OutputSlot> slots;
  bool planned = true;
  for (int i = 0; i < count; ++i) {
    slots.emplace_back(request, i);
    planned = planned && (!slots[i].wanted() || slots[i].planned());
  }
  auto make = [node = KeepNode(request.node), in, axis](const Tensor* split) {
    return PlanSplit(*node, in, axis, split);
  };
  std::shared_ptr<const SplitPlan> fixed;
  if (AllConstant(request, {1})) {
    ONWARD_ASSIGN_OR_RETURN(SplitPlan plan, make(InputAt(Constants(request), 1)));
    for (int i = 0; i < count; ++i) ONWARD_RETURN_IF_ERROR(slots[i].Accepts(plan.shapes[i]));
    fixed = std::make_shared<const SplitPlan>(std::move(plan));
  }
  Kernel kernel;
  kernel.infallible = fixed != nullptr && planned;
  kernel.run = [slots, fixed, make](const KernelCall& call) -> absl::Status {
    if (fixed != nullptr) return RunSplit(*fixed, slots, call);
    ONWARD_ASSIGN_OR_RETURN(const SplitPlan plan, make(InputAt(call.inputs, 1)));
    return RunSplit(plan, slots, call);
  };
  return kernel;
}

}  // namespace

void RegisterConcatKernels(KernelTable& table) {
  table.Add("Concat", {"reference", 4, MakeConcat, "all but packed", false, JoinedShape});
  table.Add("Split", {"reference", 13, MakeSplit, "all but packed", false, SplitShape});
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Slice, Expand and Tile: each reads its input with other strides.
#include "core/device/plan/slice.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/cpu/strided_copy.h"
#include "core/ops/movement/movement.h"
#include "core/ops/movement/shape.h"

namespace onward {
namespace {

struct CopyPlan {
  Shape shape;
  StridedCopy copy;
};

absl::Status RunCopy(const CopyPlan& plan, const KernelCall& call, Tensor& output) {
  plan.copy.Run(output.raw(), call.inputs[0]->raw());
  return absl::OkStatus();
}

// A kernel that copies input 0 as make(inputs) plans it; a view where that
// changes nothing.
template <typename Make>
absl::StatusOr<Kernel> CopyKernel(const KernelRequest& request, std::vector<int> deciding,
                                  const Make& make) {
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  const bool constant = AllConstant(request, deciding);
  bool same = false;
  if (constant) {
    ONWARD_ASSIGN_OR_RETURN(const CopyPlan plan, make(Constants(request)));
    same = plan.copy.identity() && plan.shape.elements() == request.in(0).elements();
  }
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel,
                          PlannedKernel<CopyPlan>(request, std::move(deciding), make, RunCopy));
  if (same) SetView(request, kernel);
  return kernel;
}

// Dimensions as far as a shape can have them, so that products can be formed.
absl::Status CheckSize(const Node& node, const Shape& shape) {
  const absl::StatusOr<int64_t> elements = CheckedElements(shape.dims());
  return elements.ok() ? absl::OkStatus() : AtNode(node, elements.status());
}

absl::StatusOr<CopyPlan> PlanSlice(const Node& node, DType dtype, const Shape& in,
                                   absl::Span<const Tensor* const> inputs) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, IntsOf(node, *inputs[1], "starts"));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> ends, IntsOf(node, *inputs[2], "ends"));
  const size_t count = starts.size();
  std::vector<int64_t> axes(count), steps(count, 1);
  for (size_t i = 0; i < count; ++i) axes[i] = static_cast<int64_t>(i);
  if (const Tensor* t = InputAt(inputs, 3); t != nullptr) {
    ONWARD_ASSIGN_OR_RETURN(axes, IntsOf(node, *t, "axes"));
  }
  if (const Tensor* t = InputAt(inputs, 4); t != nullptr) {
    ONWARD_ASSIGN_OR_RETURN(steps, IntsOf(node, *t, "steps"));
  }
  if (ends.size() != count || axes.size() != count || steps.size() != count) {
    return NodeError(
        node, absl::StrCat("starts, ends, axes and steps have ", count, ", ", ends.size(), ", ",
                           axes.size(), " and ", steps.size(), " elements"));
  }
  Shape out = in;
  Shape::Dims strides = in.Strides();
  int64_t offset = 0;
  std::vector<bool> seen(in.rank(), false);
  for (size_t i = 0; i < count; ++i) {
    const absl::StatusOr<int> axis = NormalizeAxis(axes[i], in.rank());
    if (!axis.ok()) return AtNode(node, axis.status());
    if (seen[*axis]) return NodeError(node, absl::StrCat("axis ", axes[i], " is given twice"));
    seen[*axis] = true;
    if (steps[i] == 0) return NodeError(node, absl::StrCat("step 0 on axis ", axes[i]));
    const AxisRange range = ClampRange(in[*axis], starts[i], ends[i], steps[i]);
    out[*axis] = range.count;
    offset += range.start * strides[*axis];
    strides[*axis] *= range.step;
  }
  return CopyPlan{out, StridedCopy(dtype, out.dims(), strides, offset)};
}

absl::StatusOr<Shape> SlicedShape(const KernelRequest& r, int) {
  return PlannedShape(r, {1, 2, 3, 4}, [&](absl::Span<const Tensor* const> inputs) {
    return PlanSlice(r.node, r.inputs[0].dtype, r.in(0), inputs);
  });
}

absl::StatusOr<Kernel> MakeSlice(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 3));
  auto make = [node = KeepNode(request.node), dtype = request.inputs[0].dtype,
               in = request.in(0)](absl::Span<const Tensor* const> inputs) {
    return PlanSlice(*node, dtype, in, inputs);
  };
  return CopyKernel(request, {1, 2, 3, 4}, make);
}

absl::StatusOr<CopyPlan> PlanExpand(const Node& node, DType dtype, const Shape& in,
                                    const Tensor& shape) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, IntsOf(node, shape, "shape"));
  ONWARD_RETURN_IF_ERROR(CheckSize(node, Shape(wanted)));
  const absl::StatusOr<Shape> out = BroadcastShapes(in, Shape(wanted));
  if (!out.ok()) return AtNode(node, out.status());
  ONWARD_RETURN_IF_ERROR(CheckSize(node, *out));
  const Shape::Dims dense = in.Strides();
  Shape::Dims strides(out->rank(), 0);
  const int shift = out->rank() - in.rank();
  for (int i = 0; i < in.rank(); ++i) strides[i + shift] = in[i] == 1 ? 0 : dense[i];
  return CopyPlan{*out, StridedCopy(dtype, out->dims(), strides)};
}

absl::StatusOr<Shape> ExpandedShape(const KernelRequest& r, int) {
  return PlannedShape(r, {1}, [&](absl::Span<const Tensor* const> inputs) {
    return PlanExpand(r.node, r.inputs[0].dtype, r.in(0), *inputs[1]);
  });
}

absl::StatusOr<Kernel> MakeExpand(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  auto make = [node = KeepNode(request.node), dtype = request.inputs[0].dtype,
               in = request.in(0)](absl::Span<const Tensor* const> inputs) {
    return PlanExpand(*node, dtype, in, *inputs[1]);
  };
  return CopyKernel(request, {1}, make);
}

absl::StatusOr<CopyPlan> PlanTile(const Node& node, DType dtype, const Shape& in,
                                  const Tensor& repeats) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> times, IntsOf(node, repeats, "repeats"));
  if (static_cast<int>(times.size()) != in.rank()) {
    return NodeError(node, absl::StrCat("repeats has ", times.size(),
                                        " elements, the input has shape ", in.ToString()));
  }
  const Shape::Dims dense = in.Strides();
  Shape out, dims;
  Shape::Dims strides;
  for (int i = 0; i < in.rank(); ++i) {
    ONWARD_RETURN_IF_ERROR(CheckSize(node, Shape{times[i], in[i]}));
    out.push_back(times[i] * in[i]);
    for (int64_t d : {times[i], in[i]}) dims.push_back(d);
    for (int64_t s : {int64_t{0}, dense[i]}) strides.push_back(s);
  }
  ONWARD_RETURN_IF_ERROR(CheckSize(node, out));
  return CopyPlan{out, StridedCopy(dtype, dims.dims(), strides)};
}

absl::StatusOr<Shape> TiledShape(const KernelRequest& r, int) {
  return PlannedShape(r, {1}, [&](absl::Span<const Tensor* const> inputs) {
    return PlanTile(r.node, r.inputs[0].dtype, r.in(0), *inputs[1]);
  });
}

absl::StatusOr<Kernel> MakeTile(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  auto make = [node = KeepNode(request.node), dtype = request.inputs[0].dtype,
               in = request.in(0)](absl::Span<const Tensor* const> inputs) {
    return PlanTile(*node, dtype, in, *inputs[1]);
  };
  return CopyKernel(request, {1}, make);
}

}  // namespace

void RegisterSliceKernels(KernelTable& table) {
  table.Add("Slice", {"reference", 10, MakeSlice, "all but packed", false, SlicedShape});
  table.Add("Expand", {"reference", 8, MakeExpand, "all but packed", false, ExpandedShape});
  table.Add("Tile", {"reference", 6, MakeTile, "all but packed", false, TiledShape});
}

}  // namespace onward

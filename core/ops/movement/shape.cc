// SPDX-License-Identifier: Apache-2.0
// Kernels that read or change a shape and leave the elements as they are.
#include "core/ops/movement/shape.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/cpu/register.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

struct ViewPlan {
  Shape shape;
};

absl::Status CopyView(const ViewPlan&, const KernelCall& call, Tensor& output) {
  CopyAll(output, *call.inputs[0]);
  return absl::OkStatus();
}

absl::StatusOr<ViewPlan> PlanReshape(const Node& node, const Shape& in, const Tensor& shape) {
  ONWARD_ASSIGN_OR_RETURN(std::vector<int64_t> wanted, IntsOf(node, shape, "shape"));
  const bool allow_zero = node.Int("allowzero", 0) != 0;
  int unknown = -1;
  for (int i = 0; i < static_cast<int>(wanted.size()); ++i) {
    if (wanted[i] == 0 && !allow_zero) {
      if (i >= in.rank()) {
        return NodeError(node, absl::StrCat("dimension ", i,
                                            " of the wanted shape is 0 (copy), "
                                            "but the input has shape ",
                                            in.ToString()));
      }
      wanted[i] = in[i];
    } else if (wanted[i] == -1) {
      if (unknown >= 0) return NodeError(node, "the wanted shape has more than one -1");
      unknown = i;
    }
  }
  const int64_t elements = in.elements();
  if (unknown >= 0) {
    wanted[unknown] = 1;
    const absl::StatusOr<int64_t> known = CheckedElements(wanted);
    if (!known.ok()) return AtNode(node, known.status());
    if (*known == 0 || elements % *known != 0) {
      return NodeError(node, absl::StrCat("cannot infer -1: ", elements, " elements of shape ",
                                          in.ToString(), " do not divide by ", *known));
    }
    wanted[unknown] = elements / *known;
  }
  const absl::StatusOr<int64_t> got = CheckedElements(wanted);
  if (!got.ok()) return AtNode(node, got.status());
  if (*got != elements) {
    return NodeError(
        node, absl::StrCat("cannot reshape ", in.ToString(), " to ", Shape(wanted).ToString()));
  }
  return ViewPlan{Shape(wanted)};
}

absl::StatusOr<Kernel> MakeReshape(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  auto make = [node = KeepNode(request.node),
               in = request.in(0)](absl::Span<const Tensor* const> inputs) {
    return PlanReshape(*node, in, *inputs[1]);
  };
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, PlannedKernel<ViewPlan>(request, {1}, make, CopyView));
  SetView(request, kernel);
  return kernel;
}

absl::StatusOr<Shape> ReshapedShape(const KernelRequest& r, int) {
  return PlannedShape(r, {1}, [&](absl::Span<const Tensor* const> inputs) {
    return PlanReshape(r.node, r.in(0), *inputs[1]);
  });
}

absl::StatusOr<Shape> FlattenedShape(const KernelRequest& request, int) {
  const Shape& in = request.in(0);
  int64_t axis = request.node.Int("axis", 1);
  if (axis < -in.rank() || axis > in.rank()) {
    return NodeError(request.node, absl::StrCat("axis ", axis, " is outside [-", in.rank(), ", ",
                                                in.rank(), "]"));
  }
  if (axis < 0) axis += in.rank();
  return Shape{in.elements(0, axis), in.elements(axis, in.rank())};
}

absl::StatusOr<Kernel> MakeFlatten(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  ONWARD_ASSIGN_OR_RETURN(const Shape out, FlattenedShape(request, 0));
  auto make = [out](absl::Span<const Tensor* const>) -> absl::StatusOr<ViewPlan> {
    return ViewPlan{out};
  };
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, PlannedKernel<ViewPlan>(request, {}, make, CopyView));
  SetView(request, kernel);
  return kernel;
}

// Marks the axes, each in [-rank, rank) and named once.
absl::StatusOr<std::vector<bool>> MarkAxes(const Node& node, const Tensor& axes, int rank) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntsOf(node, axes, "axes"));
  std::vector<bool> marked(rank, false);
  for (int64_t value : values) {
    const absl::StatusOr<int> axis = NormalizeAxis(value, rank);
    if (!axis.ok()) return AtNode(node, axis.status());
    if (marked[*axis]) return NodeError(node, absl::StrCat("axis ", value, " is given twice"));
    marked[*axis] = true;
  }
  return marked;
}

absl::StatusOr<ViewPlan> PlanSqueeze(const Node& node, const Shape& in, const Tensor* axes) {
  std::vector<bool> drop(in.rank());
  for (int i = 0; i < in.rank(); ++i) drop[i] = in[i] == 1;
  if (axes != nullptr) {
    ONWARD_ASSIGN_OR_RETURN(drop, MarkAxes(node, *axes, in.rank()));
  }
  ViewPlan plan;
  for (int i = 0; i < in.rank(); ++i) {
    if (!drop[i]) {
      plan.shape.push_back(in[i]);
    } else if (in[i] != 1) {
      return NodeError(node, absl::StrCat("cannot squeeze axis ", i, " of shape ", in.ToString()));
    }
  }
  return plan;
}

absl::StatusOr<Shape> SqueezedShape(const KernelRequest& r, int) {
  return PlannedShape(r, {1}, [&](absl::Span<const Tensor* const> inputs) {
    return PlanSqueeze(r.node, r.in(0), InputAt(inputs, 1));
  });
}

absl::StatusOr<Kernel> MakeSqueeze(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  auto make = [node = KeepNode(request.node),
               in = request.in(0)](absl::Span<const Tensor* const> inputs) {
    return PlanSqueeze(*node, in, InputAt(inputs, 1));
  };
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, PlannedKernel<ViewPlan>(request, {1}, make, CopyView));
  SetView(request, kernel);
  return kernel;
}

absl::StatusOr<ViewPlan> PlanUnsqueeze(const Node& node, const Shape& in, const Tensor& axes) {
  const int64_t rank = in.rank() + axes.elements();
  if (rank > 32) return NodeError(node, absl::StrCat("the result would have rank ", rank));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<bool> added,
                          MarkAxes(node, axes, static_cast<int>(rank)));
  ViewPlan plan;
  int from = 0;
  for (bool add : added) plan.shape.push_back(add ? 1 : in[from++]);
  return plan;
}

absl::StatusOr<Shape> UnsqueezedShape(const KernelRequest& r, int) {
  return PlannedShape(r, {1}, [&](absl::Span<const Tensor* const> inputs) {
    return PlanUnsqueeze(r.node, r.in(0), *inputs[1]);
  });
}

absl::StatusOr<Kernel> MakeUnsqueeze(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  auto make = [node = KeepNode(request.node),
               in = request.in(0)](absl::Span<const Tensor* const> inputs) {
    return PlanUnsqueeze(*node, in, *inputs[1]);
  };
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, PlannedKernel<ViewPlan>(request, {1}, make, CopyView));
  SetView(request, kernel);
  return kernel;
}

// An int64 output known at compile time; the input is taken in any layout,
// since its elements are not read.
absl::StatusOr<Kernel> GiveInts(const KernelRequest& request, const Shape& shape,
                                std::vector<int64_t> values) {
  const OutputSlot slot(request, 0);
  ONWARD_RETURN_IF_ERROR(slot.Accepts(shape));
  Kernel kernel;
  kernel.input_layouts = {request.inputs[0].layout};
  kernel.infallible = slot.planned();
  kernel.run = [slot, shape, values](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, shape));
    std::copy(values.begin(), values.end(), output->data<int64_t>());
    return absl::OkStatus();
  };
  return kernel;
}

absl::StatusOr<Kernel> MakeShape(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Shape& in = request.in(0);
  const int64_t rank = in.rank();
  auto clamp = [rank](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const int64_t start = clamp(request.node.Int("start", 0));
  const int64_t end = clamp(request.node.Int("end", std::numeric_limits<int64_t>::max()));
  std::vector<int64_t> dims;
  for (int64_t i = start; i < end; ++i) dims.push_back(in[static_cast<int>(i)]);
  const Shape shape{static_cast<int64_t>(dims.size())};
  return GiveInts(request, shape, std::move(dims));
}

absl::StatusOr<Kernel> MakeSize(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  return GiveInts(request, {}, {request.in(0).elements()});
}

}  // namespace

void RegisterShapeKernels(KernelTable& table) {
  const std::string any = "all";
  table.Add("Reshape", {"reference", 5, MakeReshape, any, false, ReshapedShape});
  table.Add("Flatten", {"reference", 1, MakeFlatten, any, false, FlattenedShape});
  table.Add("Squeeze", {"reference", 13, MakeSqueeze, any, false, SqueezedShape});
  table.Add("Unsqueeze", {"reference", 13, MakeUnsqueeze, any, false, UnsqueezedShape});
  table.Add("Shape", {"reference", 1, MakeShape, any});
  table.Add("Size", {"reference", 1, MakeSize, any});
  RegisterFillKernels(table);
  RegisterTransposeKernels(table);
  RegisterConcatKernels(table);
  RegisterSliceKernels(table);
  RegisterPadKernels(table);
}

}  // namespace onward

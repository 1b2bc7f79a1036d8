// SPDX-License-Identifier: Apache-2.0
// Resize, and ResizeGrad (dY, X, roi, scales, sizes), its transpose.
#include "core/ops/image/resize.h"

#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/ops/cpu/type_list.h"
#include "core/ops/image/image.h"
#include "core/ops/image/resample.h"
#include "core/ops/image/resize_nearest.h"
#include "core/ops/movement/movement.h"
#include "core/tensor/dispatch.h"

namespace onward {

NearestPlan::NearestPlan(const Shape& in, const ResizePlan& plan) : shape(plan.shape) {
  const int rank = in.rank();
  const int first = plan.maps.empty() ? rank : plan.maps.front().axis;
  const int end = plan.maps.empty() ? rank : plan.maps.back().axis + 1;
  block = in.elements(end, rank);
  if (const int64_t lead = in.elements(0, first); lead != 1 || first == end) {
    levels.push_back({.size = lead, .from = {}});
  }
  size_t next = 0;
  for (int axis = first; axis < end; ++axis) {
    Level level{.size = shape[axis], .from = {}};
    if (const AxisMap& map = plan.maps[next]; map.axis == axis) {
      ++next;
      level.from.assign(map.out, -1);
      for (int64_t o = 0; o < map.out; ++o) {
        if (map.starts[o] < map.starts[o + 1]) level.from[o] = map.index[map.starts[o]];
      }
      level.repeat = map.out % map.in == 0 ? map.out / map.in : 0;
      for (int64_t o = 0; o < map.out && level.repeat > 0; ++o) {
        if (level.from[o] != o / level.repeat) level.repeat = 0;
      }
    }
    levels.push_back(std::move(level));
  }
  int64_t dst = block, src = block;
  for (size_t i = levels.size(); i-- > 0;) {
    levels[i].dst_stride = dst;
    levels[i].src_stride = src;
    const int axis = first + static_cast<int>(i) - static_cast<int>(levels.size()) + (end - first);
    dst *= levels[i].size;
    src *= axis >= first ? in[axis] : levels[i].size;
  }
}

namespace {

ResizeInputs InputsAt(absl::Span<const Tensor* const> inputs, int first) {
  return {InputAt(inputs, first), InputAt(inputs, first + 1), InputAt(inputs, first + 2)};
}

absl::StatusOr<Kernel> MakeNearest(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  auto make = [node = KeepNode(request.node), in = request.in(0)](
                  absl::Span<const Tensor* const> inputs) -> absl::StatusOr<NearestPlan> {
    ONWARD_ASSIGN_OR_RETURN(const ResizePlan plan, PlanResize(*node, in, InputsAt(inputs, 1)));
    return NearestPlan(in, plan);
  };
  // Numbers that the element type can hold; others have no extrapolation value.
  Tensor outside = Tensor::Zeros(request.inputs[0].dtype, {});
  if (const double value = request.node.Float("extrapolation_value", 0); value != 0) {
    DispatchNumeric(outside.dtype(),
                    [&]<typename T>() { outside.data<T>()[0] = FromDouble<T>(value); });
  }
  auto run = [outside](const NearestPlan& plan, const KernelCall& call, Tensor& output) {
    if (output.elements() == 0) return absl::OkStatus();
    DispatchWidth(output.dtype(), [&]<typename T>() {
      const NearestPlan::Level& top = plan.levels[0];
      ParallelFor(top.size, RowGrain<T>(top.dst_stride), [&](int64_t begin, int64_t end) {
        CopyNearest(plan, 0, call.inputs[0]->data<T>(), output.data<T>(), *outside.data<T>(), begin,
                    end);
      });
    });
    return absl::OkStatus();
  };
  return PlannedKernel<NearestPlan>(request, {1, 2, 3}, make, run);
}

template <typename A>
struct LinearPlan {
  Shape shape;
  Resampler<A> resampler;
  // Where the extrapolation value goes: positions of each axis.
  struct Outside {
    int axis;
    std::vector<int64_t> positions;
  };
  std::vector<Outside> outside;
};

template <typename A, typename T>
void FillOutside(const LinearPlan<A>& plan, T value, Tensor& output) {
  T* y = output.data<T>();
  const Shape& shape = plan.shape;
  for (const auto& [axis, positions] : plan.outside) {
    const int64_t outer = shape.elements(0, axis), inner = shape.elements(axis + 1, shape.rank());
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t p : positions) std::fill_n(y + (o * shape[axis] + p) * inner, inner, value);
    }
  }
}

template <typename T, typename A>
absl::StatusOr<Kernel> MakeInterpolation(const KernelRequest& request) {
  auto make = [node = KeepNode(request.node), in = request.in(0)](
                  absl::Span<const Tensor* const> inputs) -> absl::StatusOr<LinearPlan<A>> {
    ONWARD_ASSIGN_OR_RETURN(const ResizePlan plan, PlanResize(*node, in, InputsAt(inputs, 1)));
    // onnxruntime and onnx's reference round integers where pixels are smoothed.
    const bool rounds = node->Int("antialias", 0) != 0;
    LinearPlan<A> made{plan.shape, Resampler<A>(in, plan.shape, plan.maps, rounds), {}};
    for (const AxisMap& map : plan.maps) {
      if (!map.outside.empty()) made.outside.push_back({map.axis, map.outside});
    }
    return made;
  };
  auto run = [value = request.node.Float("extrapolation_value", 0)](
                 const LinearPlan<A>& plan, const KernelCall& call, Tensor& output) {
    plan.resampler.Run(call.inputs[0]->data<T>(), output.data<T>());
    FillOutside(plan, FromDouble<T>(value), output);
    return absl::OkStatus();
  };
  return PlannedKernel<LinearPlan<A>>(request, {1, 2, 3}, make, run);
}

using InterpolatedTypes = NumericTypes;

// Integers are interpolated in double: the nearest integer is well defined then.
template <typename T>
using Arithmetic = std::conditional_t<std::is_integral_v<T>, double, ComputeType<T>>;

absl::StatusOr<Kernel> MakeResize(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  if (request.node.String("mode", "nearest") == "nearest") return MakeNearest(request);
  absl::StatusOr<Kernel> kernel = NodeUnimplemented(
      request.node, absl::StrCat("no interpolation of ", DTypeName(request.inputs[0].dtype)));
  InterpolatedTypes::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    kernel = MakeInterpolation<T, Arithmetic<T>>(request);
  });
  return kernel;
}

template <typename T, typename A>
absl::StatusOr<Kernel> MakeTransposed(const KernelRequest& request) {
  auto make = [node = KeepNode(request.node), dy = request.in(0), in = request.in(1)](
                  absl::Span<const Tensor* const> inputs) -> absl::StatusOr<LinearPlan<A>> {
    ONWARD_ASSIGN_OR_RETURN(const ResizePlan plan, PlanResize(*node, in, InputsAt(inputs, 2)));
    if (plan.shape != dy) {
      return NodeError(*node, absl::StrCat("dY has shape ", dy.ToString(), ", expected ",
                                           plan.shape.ToString()));
    }
    std::vector<AxisMap> maps;
    for (const AxisMap& map : plan.maps) maps.push_back(Transposed(map));
    return LinearPlan<A>{in, Resampler<A>(dy, in, maps), {}};
  };
  auto run = [empty = request.in(0).elements() == 0](const LinearPlan<A>& plan,
                                                     const KernelCall& call, Tensor& output) {
    T* dx = output.data<T>();
    if (empty) {
      std::fill_n(dx, output.elements(), FromDouble<T>(0));
    } else {
      plan.resampler.Run(call.inputs[0]->data<T>(), dx);
    }
    return absl::OkStatus();
  };
  return PlannedKernel<LinearPlan<A>>(request, {2, 3, 4}, make, run);
}

absl::StatusOr<Kernel> MakeResizeGrad(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  absl::StatusOr<Kernel> kernel = NodeUnimplemented(
      request.node, absl::StrCat("no kernel for ", DTypeName(request.inputs[0].dtype)));
  FloatingTypes::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    kernel = MakeTransposed<T, ComputeType<T>>(request);
  });
  return kernel;
}

}  // namespace

void RegisterResizeKernels(KernelTable& table) {
  table.Add("Resize", {"reference", 11, MakeResize, "all but packed"});
  table.Add("ResizeGrad", {"reference", 1, MakeResizeGrad, FloatingTypes::Names()}, kOnwardDomain);
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// Col2Im and MaxUnpool: elements go back to where windows took them from.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/device/plan/window.h"
#include "core/ops/cpu/type_list.h"
#include "core/ops/image/image.h"
#include "core/ops/movement/movement.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

struct FoldPlan {
  Shape shape;
  Window window;
  int64_t planes = 0;
};

absl::StatusOr<FoldPlan> PlanFold(const Node& node, const Shape& columns,
                                  absl::Span<const Tensor* const> inputs) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> image,
                          IntsOf(node, *inputs[1], "image_shape"));
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> block,
                          IntsOf(node, *inputs[2], "block_shape"));
  int64_t taps = 1;
  for (int64_t b : block) {
    if (b < 1 || b > (int64_t{1} << 24) || taps > (int64_t{1} << 24)) {
      return NodeError(node, absl::StrCat("block_shape holds ", b));
    }
    taps *= b;
  }
  if (image.empty() || image.size() != block.size() || columns[1] % taps != 0) {
    return NodeError(node, absl::StrCat("an input of shape ", columns.ToString(),
                                        " does not consist of blocks of ", taps, " elements on ",
                                        image.size(), " axes"));
  }
  FoldPlan plan;
  plan.shape = Shape{columns[0], columns[1] / taps};
  for (int64_t size : image) plan.shape.push_back(size);
  const absl::StatusOr<int64_t> elements = CheckedElements(plan.shape.dims());
  if (!elements.ok()) return AtNode(node, elements.status());
  plan.planes = plan.shape[0] * plan.shape[1];
  // The windows of a pool over the image.
  Node pool = node;
  pool.attributes["kernel_shape"] = block;
  ONWARD_ASSIGN_OR_RETURN(plan.window, GeometryOfPool(pool, plan.shape));
  if (plan.window.out_elements() != columns[2]) {
    return NodeError(
        node, absl::StrCat("an input of shape ", columns.ToString(), " has ", columns[2],
                           " blocks, but the image has room for ", plan.window.out_elements()));
  }
  return plan;
}

// Adds the elements of one tap, a row of windows after the other. `tap` counts the taps along
// each axis.
template <typename T>
void AddTap(const Window& w, const Window::Dims& tap, const T* __restrict__ columns,
            T* __restrict__ image) {
  const int last = w.rank() - 1;
  const int64_t shift = tap[last] * w.dilations[last] - w.pads_begin[last];
  const int64_t stride = w.strides[last], width = w.in[last];
  // Windows with 0 <= o * stride + shift < width.
  const int64_t begin = shift >= 0 ? 0 : std::min((-shift + stride - 1) / stride, w.out[last]);
  const int64_t end =
      shift >= width ? begin
                     : std::max(begin, std::min((width - shift - 1) / stride + 1, w.out[last]));
  Window::Dims at(last, 0);
  const int64_t rows = w.out_elements() / std::max<int64_t>(w.out[last], 1);
  for (int64_t row = 0; row < rows; ++row, columns += w.out[last]) {
    int64_t offset = 0;
    bool inside = true;
    for (int i = 0; i < last; ++i) {
      const int64_t p = at[i] * w.strides[i] + tap[i] * w.dilations[i] - w.pads_begin[i];
      inside = inside && p >= 0 && p < w.in[i];
      offset = offset * w.in[i] + p;
    }
    if (inside) {
      T* to = image + offset * width;
      if (stride == 1) {
        for (int64_t o = begin; o < end; ++o) to[o + shift] += columns[o];
      } else {
        for (int64_t o = begin; o < end; ++o) to[o * stride + shift] += columns[o];
      }
    }
    for (int i = last - 1; i >= 0 && ++at[i] == w.out[i]; --i) at[i] = 0;
  }
}

template <typename T>
void Fold(const FoldPlan& plan, const T* columns, T* image) {
  const Window& w = plan.window;
  const int64_t taps = w.kernel_elements(), windows = w.out_elements();
  const int64_t size = w.in_elements();
  ParallelFor(plan.planes, (1 << 14) / std::max<int64_t>(taps * windows, 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t plane = begin; plane < end; ++plane) {
                  T* to = image + plane * size;
                  std::fill_n(to, size, T(0));
                  Window::Dims tap(w.rank(), 0);
                  for (int64_t t = 0; t < taps; ++t) {
                    AddTap(w, tap, columns + (plane * taps + t) * windows, to);
                    for (int i = w.rank() - 1; i >= 0 && ++tap[i] == w.kernel[i]; --i) tap[i] = 0;
                  }
                }
              });
}

absl::StatusOr<Kernel> MakeCol2Im(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 3));
  if (request.in(0).rank() != 3) {
    return NodeError(request.node, absl::StrCat("input of shape ", request.in(0).ToString(),
                                                ": expected [N, C * block, L]"));
  }
  const auto make = [node = KeepNode(request.node),
                     columns = request.in(0)](absl::Span<const Tensor* const> inputs) {
    return PlanFold(*node, columns, inputs);
  };
  absl::StatusOr<Kernel> kernel = NodeUnimplemented(
      request.node, absl::StrCat("no kernel for ", DTypeName(request.inputs[0].dtype)));
  NumericTypes::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    using A = ComputeType<T>;
    auto run = [](const FoldPlan& plan, const KernelCall& call, Tensor& output) {
      const T* columns = call.inputs[0]->data<T>();
      if constexpr (std::is_same_v<T, A>) {
        Fold(plan, columns, output.data<T>());
      } else {  // sums of 16-bit numbers in float
        const std::vector<A> wide(columns, columns + call.inputs[0]->elements());
        std::vector<A> image(output.elements());
        Fold(plan, wide.data(), image.data());
        for (size_t i = 0; i < image.size(); ++i) output.data<T>()[i] = T(image[i]);
      }
      return absl::OkStatus();
    };
    kernel = PlannedKernel<FoldPlan>(request, {1, 2}, make, run);
  });
  return kernel;
}

// --- MaxUnpool

struct UnpoolPlan {
  Shape shape;
  Shape counted;  // what the indices count through: the beginning of every axis of `shape`
};

absl::StatusOr<UnpoolPlan> PlanUnpool(const Node& node, const Shape& x, const Tensor* wanted) {
  const int axes = x.rank() - 2;
  const std::vector<int64_t> kernel = node.Ints("kernel_shape");
  const std::vector<int64_t> strides = node.Ints("strides", std::vector<int64_t>(axes, 1));
  const std::vector<int64_t> pads = node.Ints("pads", std::vector<int64_t>(2 * axes, 0));
  if (static_cast<int>(kernel.size()) != axes || static_cast<int>(strides.size()) != axes ||
      static_cast<int>(pads.size()) != 2 * axes) {
    return NodeError(
        node, absl::StrCat("kernel_shape, strides and pads do not fit X of shape ", x.ToString()));
  }
  UnpoolPlan plan;
  plan.counted = Shape{x[0], x[1]};
  for (int i = 0; i < axes; ++i) {
    constexpr int64_t kMost = int64_t{1} << 24;
    for (int64_t v : {kernel[i], strides[i], pads[i], pads[axes + i]}) {
      if (v < 0 || v > kMost) return NodeError(node, absl::StrCat("an attribute holds ", v));
    }
    if (x[i + 2] > (int64_t{1} << 36)) return NodeError(node, "X is too large");
    plan.counted.push_back((x[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[axes + i]);
  }
  plan.shape = plan.counted;
  if (wanted != nullptr) {
    ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                            IntsOf(node, *wanted, "output_shape"));
    plan.shape = Shape(sizes);
  }
  for (const Shape& shape : {plan.counted, plan.shape}) {
    const absl::StatusOr<int64_t> elements = CheckedElements(shape.dims());
    if (!elements.ok()) return AtNode(node, elements.status());
  }
  bool fits = plan.shape.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = plan.counted[i] <= plan.shape[i];
  if (!fits) {
    return NodeError(node, absl::StrCat("output_shape ", plan.shape.ToString(), " has no room for ",
                                        plan.counted.ToString()));
  }
  return plan;
}

// Where an element of `counted` lies in the larger `shape`.
int64_t Placed(const UnpoolPlan& plan, int64_t index) {
  int64_t place = 0, stride = 1;
  for (int i = plan.shape.rank() - 1; i >= 0; --i) {
    place += index % plan.counted[i] * stride;
    index /= plan.counted[i];
    stride *= plan.shape[i];
  }
  return place;
}

template <typename T>
absl::Status Unpool(const Node& node, const UnpoolPlan& plan, const KernelCall& call,
                    Tensor& output) {
  const T* x = call.inputs[0]->data<T>();
  const int64_t* index = call.inputs[1]->data<int64_t>();
  const int64_t n = call.inputs[0]->elements(), bound = plan.counted.elements();
  T* y = output.data<T>();
  ParallelFor(output.elements(), MoveGrain<T>(),
              [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, T{}); });
  const bool same = plan.counted == plan.shape;
  for (int64_t i = 0; i < n; ++i) {
    if (index[i] < 0 || index[i] >= bound) {
      return NodeError(node, absl::StrCat("index ", index[i], " lies outside of the ", bound,
                                          " elements of ", plan.counted.ToString()));
    }
    y[same ? index[i] : Placed(plan, index[i])] = x[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMaxUnpool(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  const Shape x = request.in(0);
  if (x.rank() < 3 || request.in(1) != x || request.inputs[1].dtype != DType::kInt64) {
    return NodeError(request.node, absl::StrCat("X of shape ", x.ToString(), " and indices of ",
                                                request.in(1).ToString(),
                                                ": expected int64 indices, one for each element "
                                                "of X [N, C, ...]"));
  }
  if (!IsFloating(request.inputs[0].dtype)) {
    return NodeUnimplemented(request.node, "X must be floating-point numbers");
  }
  const NodeRef node = KeepNode(request.node);
  const auto make = [node, x](absl::Span<const Tensor* const> inputs) {
    return PlanUnpool(*node, x, InputAt(inputs, 2));
  };
  const auto run = [node](const UnpoolPlan& plan, const KernelCall& call, Tensor& output) {
    absl::Status status;
    DispatchWidth(output.dtype(),
                  [&]<typename T>() { status = Unpool<T>(*node, plan, call, output); });
    return status;
  };
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, PlannedKernel<UnpoolPlan>(request, {2}, make, run));
  kernel.infallible = false;  // indices may lie outside
  return kernel;
}

}  // namespace

void RegisterFoldKernels(KernelTable& table) {
  table.Add("Col2Im", {"reference", 18, MakeCol2Im, NumericTypes::Names()});
  table.Add("MaxUnpool", {"reference", 9, MakeMaxUnpool, FloatingTypes::Names()});
}

}  // namespace onward

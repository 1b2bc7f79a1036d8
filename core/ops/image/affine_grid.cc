// SPDX-License-Identifier: Apache-2.0
// AffineGrid: where the pixels of a picture come from under a linear map.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/ops/cpu/type_list.h"
#include "core/ops/image/image.h"
#include "core/ops/movement/movement.h"
#include "core/tensor/dispatch.h"

namespace onward {
namespace {

struct AffinePlan {
  Shape shape;                 // [N, sizes..., axes]
  std::vector<int64_t> sizes;  // of the picture's axes
};

absl::StatusOr<AffinePlan> PlanAffine(const Node& node, const Shape& theta, const Tensor& size) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, IntsOf(node, size, "size"));
  const int64_t axes = static_cast<int64_t>(sizes.size()) - 2;
  if (axes < 1 || theta != Shape{sizes[0], axes, axes + 1}) {
    return NodeError(node, absl::StrCat("theta of shape ", theta.ToString(), " and ", sizes.size(),
                                        " sizes: expected [N, 2, 3] and (N, C, H, W), or "
                                        "[N, 3, 4] and (N, C, D, H, W)"));
  }
  AffinePlan plan;
  plan.sizes.assign(sizes.begin() + 2, sizes.end());
  plan.shape = Shape{sizes[0]};
  for (int64_t n : plan.sizes) plan.shape.push_back(n);
  plan.shape.push_back(axes);
  const absl::StatusOr<int64_t> elements = CheckedElements(plan.shape.dims());
  if (!elements.ok()) return AtNode(node, elements.status());
  return plan;
}

// The middle of pixel i of n, in [-1, 1]; with corners aligned that of the first is -1.
template <typename A>
A Place(int64_t i, int64_t n, bool align_corners) {
  if (!align_corners) return static_cast<A>(2 * i + 1) / static_cast<A>(n) - 1;
  return n == 1 ? A(-1) : static_cast<A>(2 * i) / static_cast<A>(n - 1) - 1;
}

template <typename T>
void Fill(const AffinePlan& plan, bool align_corners, const T* theta, T* y) {
  using A = ComputeType<T>;
  const int64_t axes = static_cast<int64_t>(plan.sizes.size()), width = plan.sizes.back();
  const int64_t rows = plan.shape.elements(1, static_cast<int>(axes));
  ParallelFor(plan.shape[0] * rows, 4096 / std::max<int64_t>(width * axes, 1) + 1,
              [&](int64_t begin, int64_t end) {
                std::vector<A> at(axes + 1, A(1));  // x, y, ..., 1
                for (int64_t i = begin; i < end; ++i) {
                  const T* map = theta + i / rows * axes * (axes + 1);
                  for (int64_t a = axes - 2, rest = i % rows; a >= 0; rest /= plan.sizes[a--]) {
                    at[axes - 1 - a] = Place<A>(rest % plan.sizes[a], plan.sizes[a], align_corners);
                  }
                  T* out = y + i * width * axes;
                  for (int64_t x = 0; x < width; ++x) {
                    at[0] = Place<A>(x, width, align_corners);
                    for (int64_t k = 0; k < axes; ++k) {
                      A sum = 0;
                      for (int64_t j = 0; j <= axes; ++j) {
                        sum += static_cast<A>(map[k * (axes + 1) + j]) * at[j];
                      }
                      *out++ = T(sum);
                    }
                  }
                }
              });
}

absl::StatusOr<Kernel> MakeAffineGrid(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  const auto make = [node = KeepNode(request.node),
                     theta = request.in(0)](absl::Span<const Tensor* const> inputs) {
    return PlanAffine(*node, theta, *inputs[1]);
  };
  const bool align_corners = request.node.Int("align_corners", 0) != 0;
  absl::StatusOr<Kernel> kernel = NodeUnimplemented(
      request.node, absl::StrCat("no kernel for ", DTypeName(request.inputs[0].dtype)));
  FloatingTypes::Dispatch(request.inputs[0].dtype, [&]<typename T>() {
    const auto run = [align_corners](const AffinePlan& plan, const KernelCall& call,
                                     Tensor& output) {
      if (output.elements() > 0) {
        Fill(plan, align_corners, call.inputs[0]->data<T>(), output.data<T>());
      }
      return absl::OkStatus();
    };
    kernel = PlannedKernel<AffinePlan>(request, {1}, make, run);
  });
  return kernel;
}

}  // namespace

void RegisterAffineGridKernels(KernelTable& table) {
  table.Add("AffineGrid", {"reference", 20, MakeAffineGrid, FloatingTypes::Names()});
}

}  // namespace onward

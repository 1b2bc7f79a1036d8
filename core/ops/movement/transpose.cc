// SPDX-License-Identifier: Apache-2.0
// Transpose and the two operators that are one with reshapes around it.
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/strided_copy.h"
#include "core/ops/movement/movement.h"
#include "core/ops/movement/shape.h"
#include "core/ops/movement/through_bytes.h"

namespace onward {
namespace {

struct CopyPlan {
  Shape shape;
  StridedCopy copy;
};

// Reads `in` with its axes in the order of perm and calls the result `out`.
absl::StatusOr<Kernel> Permute(const KernelRequest& request, const Shape& in,
                               absl::Span<const int64_t> perm, const Shape& out) {
  ONWARD_RETURN_IF_ERROR(CheckMovable(request.node, request.inputs[0].dtype));
  const Shape::Dims strides = in.Strides();
  Shape::Dims dims, src;
  for (int64_t axis : perm) {
    dims.push_back(in[static_cast<int>(axis)]);
    src.push_back(strides[axis]);
  }
  const CopyPlan plan{out, StridedCopy(request.inputs[0].dtype, dims, src)};
  auto make = [plan](absl::Span<const Tensor* const>) -> absl::StatusOr<CopyPlan> { return plan; };
  auto run = [](const CopyPlan& p, const KernelCall& call, Tensor& output) {
    p.copy.Run(output.raw(), call.inputs[0]->raw());
    return absl::OkStatus();
  };
  ONWARD_ASSIGN_OR_RETURN(Kernel kernel, PlannedKernel<CopyPlan>(request, {}, make, run));
  if (plan.copy.identity()) SetView(request, kernel);
  return kernel;
}

// The same bytes in a permuted layout. Matrix products read those as they are;
// other readers have the value reordered, which is then the transpose.
absl::StatusOr<Kernel> PermutedView(const KernelRequest& request, absl::Span<const int64_t> perm,
                                    const Shape& out) {
  const ValueSpec& input = request.inputs[0];
  if (input.dtype != DType::kFloat || !FitsDnnl(*input.shape) || perm.empty() ||
      perm.size() > DNNL_MAX_NDIMS || !request.outputs[0].shape.has_value()) {
    return NodeUnimplemented(request.node, "no permuted layout");
  }
  ONWARD_RETURN_IF_ERROR(CheckOutputShape(request, 0, out));
  return TryDnnl(request.node, [&]() -> absl::StatusOr<Kernel> {
    const bool strided = !StridedDescOf(*input.shape, input.layout).is_zero();
    const Layout from = strided ? input.layout : nullptr;
    Kernel kernel;
    kernel.is_view = true;
    kernel.infallible = true;
    kernel.input_layouts = {from};
    kernel.output_layouts = {PermutedLayout(*input.shape, from, perm)};
    kernel.run = [bytes = TensorBytes(input.dtype, out)](const KernelCall& call) {
      std::memcpy(call.outputs[0]->raw(), call.inputs[0]->raw(), bytes);
      return absl::OkStatus();
    };
    return kernel;
  });
}

absl::StatusOr<std::vector<int64_t>> PermOf(const KernelRequest& request) {
  const Shape& in = request.in(0);
  std::vector<int64_t> reversed(in.rank());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  std::vector<int64_t> perm = request.node.Ints("perm", reversed);
  if (IsPermutation(perm, in.rank())) return perm;
  return NodeError(request.node,
                   absl::StrCat("perm [", absl::StrJoin(perm, ", "),
                                "] is no permutation of the axes of ", in.ToString()));
}

absl::StatusOr<Shape> TransposedShape(const KernelRequest& request, int) {
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, PermOf(request));
  Shape out;
  for (int64_t axis : perm) out.push_back(request.in(0)[static_cast<int>(axis)]);
  return out;
}

absl::StatusOr<Kernel> MakeTranspose(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Shape& in = request.in(0);
  ONWARD_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, PermOf(request));
  ONWARD_ASSIGN_OR_RETURN(const Shape out, TransposedShape(request, 0));
  if (absl::StatusOr<Kernel> view = PermutedView(request, perm, out); view.ok()) return view;
  return Permute(request, in, perm, out);
}

// Shape, blocksize and mode of DepthToSpace and SpaceToDepth.
struct Blocks {
  int64_t n, c, h, w, size;
  bool depth_first;  // DCR
};

absl::StatusOr<Blocks> ReadBlocks(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Shape& in = request.in(0);
  if (in.rank() != 4) {
    return NodeError(request.node, absl::StrCat("input must have rank 4, got ", in.ToString()));
  }
  const int64_t size = request.node.Int("blocksize", 0);
  if (size < 1 || size > (int64_t{1} << 24)) {
    return NodeError(request.node, absl::StrCat("blocksize ", size, " is not usable"));
  }
  const std::string mode = request.node.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    return NodeError(request.node, absl::StrCat("mode must be DCR or CRD, got ", mode));
  }
  return Blocks{in[0], in[1], in[2], in[3], size, mode == "DCR"};
}

absl::StatusOr<Kernel> MakeDepthToSpace(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(const Blocks b, ReadBlocks(request));
  const int64_t s = b.size;
  if (b.c % (s * s) != 0) {
    return NodeError(request.node,
                     absl::StrCat(b.c, " channels do not divide by blocksize^2 = ", s * s));
  }
  const int64_t c = b.c / (s * s);
  const Shape out{b.n, c, b.h * s, b.w * s};
  if (b.depth_first) return Permute(request, {b.n, s, s, c, b.h, b.w}, {0, 3, 4, 1, 5, 2}, out);
  return Permute(request, {b.n, c, s, s, b.h, b.w}, {0, 1, 4, 2, 5, 3}, out);
}

absl::StatusOr<Kernel> MakeSpaceToDepth(const KernelRequest& request) {
  ONWARD_ASSIGN_OR_RETURN(const Blocks b, ReadBlocks(request));
  const int64_t s = b.size;
  if (b.h % s != 0 || b.w % s != 0) {
    return NodeError(request.node, absl::StrCat("height ", b.h, " and width ", b.w,
                                                " do not divide by blocksize ", s));
  }
  const Shape in{b.n, b.c, b.h / s, s, b.w / s, s};
  const Shape out{b.n, b.c * s * s, b.h / s, b.w / s};
  if (b.depth_first) return Permute(request, in, {0, 3, 5, 1, 2, 4}, out);
  return Permute(request, in, {0, 1, 3, 5, 2, 4}, out);
}

}  // namespace

void RegisterTransposeKernels(KernelTable& table) {
  table.Add("Transpose",
            {"reference", 1, ThroughBytes(MakeTranspose), "all", false, TransposedShape});
  table.Add("DepthToSpace", {"reference", 1, MakeDepthToSpace, "all but packed"});
  table.Add("SpaceToDepth", {"reference", 1, MakeSpaceToDepth, "all but packed"});
}

}  // namespace onward

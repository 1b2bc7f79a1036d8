// SPDX-License-Identifier: Apache-2.0
// Operators that read their input under another shape or with other strides. The output's shape is
// known, so that little of what decides it has to be read again.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/cuda/copy.h"
#include "core/cuda/movement/movement.h"
#include "core/device/plan/slice.h"

namespace onward::cuda {
namespace {

// The same bytes under another shape.
absl::StatusOr<Kernel> MakeView(const KernelRequest& request) {
  if (!IsWhole(request, 1) || request.inputs[0].dtype != request.outputs[0].dtype ||
      DTypeBits(request.inputs[0].dtype) == 0 ||
      request.in(0).elements() != request.out(0).elements()) {
    return Declined(request);
  }
  Kernel kernel = CopyKernel(TensorBytes(request.inputs[0].dtype, request.in(0)));
  kernel.is_view = true;
  return kernel;
}

// The same bytes as another type. A bool has to be 0 or 1, which other bytes need not be.
absl::StatusOr<Kernel> MakeBitCast(const KernelRequest& request) {
  if (!IsWhole(request, 1) || request.in(0) != request.out(0) ||
      DTypeBits(request.inputs[0].dtype) == 0 ||
      DTypeBits(request.inputs[0].dtype) != DTypeBits(request.outputs[0].dtype) ||
      request.outputs[0].dtype == DType::kBool ||
      request.node.Int("to", 0) != static_cast<int64_t>(request.outputs[0].dtype)) {
    return Declined(request);
  }
  Kernel kernel = CopyKernel(TensorBytes(request.inputs[0].dtype, request.in(0)));
  kernel.is_view = true;
  return kernel;
}

// `in` with its axes in the order of perm.
absl::StatusOr<Kernel> Permuted(const KernelRequest& request, const Shape& in,
                                absl::Span<const int64_t> perm) {
  const Shape::Dims strides = in.Strides();
  std::vector<int64_t> dims, reads;
  for (int64_t axis : perm) {
    dims.push_back(in[static_cast<int>(axis)]);
    reads.push_back(strides[axis]);
  }
  return StridedKernel(request, dims, reads);
}

absl::StatusOr<Kernel> MakeTranspose(const KernelRequest& request) {
  if (!IsWhole(request, 1)) return Declined(request);
  const Shape& in = request.in(0);
  std::vector<int64_t> reversed(in.rank());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const std::vector<int64_t> perm = request.node.Ints("perm", reversed);
  if (!IsPermutation(perm, in.rank()) || request.out(0).rank() != in.rank()) {
    return Declined(request);
  }
  for (int i = 0; i < in.rank(); ++i) {
    if (request.out(0)[i] != in[static_cast<int>(perm[i])]) return Declined(request);
  }
  return Permuted(request, in, perm);
}

// Whether DepthToSpace and SpaceToDepth can be had, and the size of their blocks.
struct Blocks {
  int64_t size;
  bool depth_first;  // DCR
};

std::optional<Blocks> BlocksOf(const KernelRequest& request) {
  const int64_t size = request.node.Int("blocksize", 0);
  const std::string mode = request.node.String("mode", "DCR");
  const bool known = mode == "DCR" || mode == "CRD";
  if (!IsWhole(request, 1) || request.in(0).rank() != 4 || !known || size < 1 ||
      size > (int64_t{1} << 24)) {
    return std::nullopt;
  }
  return Blocks{size, mode == "DCR"};
}

absl::StatusOr<Kernel> MakeDepthToSpace(const KernelRequest& request) {
  const std::optional<Blocks> blocks = BlocksOf(request);
  if (!blocks.has_value()) return Declined(request);
  const Shape& in = request.in(0);
  const int64_t s = blocks->size;
  if (in[1] % (s * s) != 0 ||
      request.out(0) != Shape{in[0], in[1] / (s * s), in[2] * s, in[3] * s}) {
    return Declined(request);
  }
  const int64_t c = in[1] / (s * s);
  if (blocks->depth_first) {
    return Permuted(request, {in[0], s, s, c, in[2], in[3]}, {0, 3, 4, 1, 5, 2});
  }
  return Permuted(request, {in[0], c, s, s, in[2], in[3]}, {0, 1, 4, 2, 5, 3});
}

absl::StatusOr<Kernel> MakeSpaceToDepth(const KernelRequest& request) {
  const std::optional<Blocks> blocks = BlocksOf(request);
  if (!blocks.has_value()) return Declined(request);
  const Shape& in = request.in(0);
  const int64_t s = blocks->size;
  if (in[2] % s != 0 || in[3] % s != 0 ||
      request.out(0) != Shape{in[0], in[1] * s * s, in[2] / s, in[3] / s}) {
    return Declined(request);
  }
  const Shape cut{in[0], in[1], in[2] / s, s, in[3] / s, s};
  if (blocks->depth_first) return Permuted(request, cut, {0, 3, 5, 1, 2, 4});
  return Permuted(request, cut, {0, 1, 3, 5, 2, 4});
}

absl::StatusOr<Kernel> MakeSlice(const KernelRequest& request) {
  if (!IsWhole(request, 3) || request.in(0).rank() != request.out(0).rank()) {
    return Declined(request);
  }
  const Shape &in = request.in(0), &out = request.out(0);
  const auto starts = ConstantInts(request, 1), ends = ConstantInts(request, 2);
  if (!starts.has_value() || !ends.has_value()) return Declined(request);
  std::vector<int64_t> all(starts->size());
  std::iota(all.begin(), all.end(), 0);
  const auto axes = ConstantInts(request, 3, all);
  const auto steps = ConstantInts(request, 4, std::vector<int64_t>(starts->size(), 1));
  if (!axes.has_value() || !steps.has_value() || axes->size() != starts->size() ||
      steps->size() != starts->size() || ends->size() != starts->size()) {
    return Declined(request);
  }
  Shape::Dims strides = in.Strides();
  int64_t offset = 0;
  std::vector<bool> seen(in.rank(), false);
  for (size_t i = 0; i < starts->size(); ++i) {
    const absl::StatusOr<int> axis = NormalizeAxis((*axes)[i], in.rank());
    if (!axis.ok() || seen[*axis] || (*steps)[i] == 0) return Declined(request);
    seen[*axis] = true;
    const AxisRange range = ClampRange(in[*axis], (*starts)[i], (*ends)[i], (*steps)[i]);
    if (range.count != out[*axis]) return Declined(request);
    offset += range.start * strides[*axis];
    strides[*axis] *= range.step;
  }
  for (int d = 0; d < in.rank(); ++d) {
    if (!seen[d] && in[d] != out[d]) return Declined(request);
  }
  return StridedKernel(request, out.dims(), strides, out.elements() == 0 ? 0 : offset);
}

absl::StatusOr<Kernel> MakeExpand(const KernelRequest& request) {
  if (!IsWhole(request, 1)) return Declined(request);
  const Shape &in = request.in(0), &out = request.out(0);
  const absl::StatusOr<Shape> both = BroadcastShapes(in, out);
  if (!both.ok() || *both != out) return Declined(request);
  const Shape::Dims dense = in.Strides();
  std::vector<int64_t> strides(out.rank(), 0);
  const int shift = out.rank() - in.rank();
  for (int d = 0; d < in.rank(); ++d) strides[d + shift] = in[d] == 1 ? 0 : dense[d];
  return StridedKernel(request, out.dims(), strides);
}

// Each axis as (times, size): the first one is not moved along.
absl::StatusOr<Kernel> MakeTile(const KernelRequest& request) {
  if (!IsWhole(request, 2) || request.in(0).rank() != request.out(0).rank()) {
    return Declined(request);
  }
  const Shape &in = request.in(0), &out = request.out(0);
  const Shape::Dims dense = in.Strides();
  std::vector<int64_t> dims, strides;
  for (int d = 0; d < in.rank(); ++d) {
    if (in[d] == 0 ? out[d] != 0 : out[d] % in[d] != 0) return Declined(request);
    dims.insert(dims.end(), {in[d] == 0 ? 0 : out[d] / in[d], in[d]});
    strides.insert(strides.end(), {0, dense[d]});
  }
  return StridedKernel(request, dims, strides);
}

}  // namespace

void RegisterViews(KernelTable& table) {
  table.Add("Reshape", MovementEntry(5, MakeView));
  table.Add("Flatten", MovementEntry(1, MakeView));
  table.Add("Squeeze", MovementEntry(13, MakeView));
  table.Add("Unsqueeze", MovementEntry(13, MakeView));
  table.Add("BitCast", MovementEntry(26, MakeBitCast));
}

void RegisterCopies(KernelTable& table) {
  table.Add("Transpose", MovementEntry(1, MakeTranspose));
  table.Add("DepthToSpace", MovementEntry(1, MakeDepthToSpace));
  table.Add("SpaceToDepth", MovementEntry(1, MakeSpaceToDepth));
  table.Add("Slice", MovementEntry(10, MakeSlice));
  table.Add("Expand", MovementEntry(8, MakeExpand));
  table.Add("Tile", MovementEntry(6, MakeTile));
}

}  // namespace onward::cuda

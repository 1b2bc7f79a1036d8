// SPDX-License-Identifier: Apache-2.0
// What the factories of movement share, and the parts of the family. What a factory does not take
// is declined: the CPU's kernel serves it, or says what is wrong.
#ifndef ONWARD_CORE_CUDA_MOVEMENT_MOVEMENT_H_
#define ONWARD_CORE_CUDA_MOVEMENT_MOVEMENT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda/movement/strided.h"
#include "core/device/kernel.h"

namespace onward::cuda {

inline absl::Status Declined(const KernelRequest& request) {
  return NodeUnimplemented(request.node, "the GPU has no kernel for these operands");
}

inline KernelTable::Entry MovementEntry(int since, KernelFactory factory) {
  return {"cuda", since, std::move(factory), "", false, nullptr};
}

// Whether inputs [0, inputs) and output 0 are there, with shapes.
bool IsWhole(const KernelRequest& request, int inputs);
// 1, 2, 4, 8 or 16; 0 for elements that do not fill bytes and for strings.
int MovableBytes(DType dtype);
// The same for input 0, 0 too where output 0 has another type.
int MovableBytes(const KernelRequest& request);
// The integers of a constant input; none where it is not constant. An omitted one is `otherwise`.
std::optional<std::vector<int64_t>> ConstantInts(const KernelRequest& request, int input,
                                                 std::vector<int64_t> otherwise = {});

// Output 0 as a view of input 0 with these dims and strides, in elements. The number of elements
// is that of the output.
absl::StatusOr<Kernel> StridedKernel(const KernelRequest& request, absl::Span<const int64_t> dims,
                                     absl::Span<const int64_t> strides, int64_t offset = 0);

void RegisterViews(KernelTable& table);   // Reshape, Squeeze, ...
void RegisterCopies(KernelTable& table);  // Transpose, Slice, Expand, Tile, ...
void RegisterParts(KernelTable& table);   // Concat, Split
void RegisterPad(KernelTable& table);
void RegisterFills(KernelTable& table);  // EyeLike, Trilu, Range, ...

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_MOVEMENT_MOVEMENT_H_

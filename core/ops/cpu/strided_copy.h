// SPDX-License-Identifier: Apache-2.0
// Copies of a strided view into a dense tensor: what Transpose, Slice, Expand,
// Tile and DepthToSpace have in common. Prepared once, run many times.
#ifndef ONWARD_CORE_OPS_CPU_STRIDED_COPY_H_
#define ONWARD_CORE_OPS_CPU_STRIDED_COPY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace onward {

class StridedCopy {
 public:
  // The destination is dense and row-major in `dims`; the source is read at
  // offset + sum(index * stride), in elements. Strides may be zero or negative.
  StridedCopy(DType dtype, absl::Span<const int64_t> dims, absl::Span<const int64_t> src_strides,
              int64_t src_offset = 0);

  // Whether the destination is the source, element for element.
  bool identity() const;
  // Whether it transposes planes of sizes that there is vector code for.
  bool transposes() const;
  // dtype must be movable (core/ops/movement/movement.h).
  void Run(void* dst, const void* src) const;

 private:
  enum class Way { kRuns, kFill, kTranspose, kGather };

  void Merge(absl::Span<const int64_t> dims, absl::Span<const int64_t> src_strides);
  void ChooseWay();
  template <typename T>
  void CopyRuns(T* dst, const T* src) const;
  template <typename T>
  void Fill(T* dst, const T* src) const;
  template <typename T>
  void GatherElements(T* dst, const T* src) const;
  template <typename T>
  void TransposePlanes(T* dst, const T* src) const;

  DType dtype_;
  Way way_ = Way::kRuns;
  int64_t elements_ = 0;
  int64_t offset_ = 0;
  // No dims of 1 and no neighbours that could be one dim; never empty. For
  // kTranspose the dim with source stride 1 is moved next to the last.
  Shape::Dims dims_, dst_, src_;
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_STRIDED_COPY_H_

// SPDX-License-Identifier: Apache-2.0
// Convolutions of bytes in which every output channel has input channels of its own: too few
// products for panels, so that outputs stay in registers while the weights go by, two at a time.
#ifndef ONWARD_CORE_OPS_QUANTIZE_DEPTHWISE_H_
#define ONWARD_CORE_OPS_QUANTIZE_DEPTHWISE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/device/plan/window.h"
#include "core/ops/quantize/byte_operand.h"
#include "core/ops/quantize/byte_planes.h"
#include "core/ops/quantize/integer_gemm.h"

namespace onward {

// Which inputs two weights meet. With a stride of two, what two neighbouring weights meet stands
// side by side already, and so does the next output's; otherwise the planes (byte_planes.h) are
// split by the strides, and the two are interleaved.
class DepthwiseLayout {
 public:
  // None where groups have more than one output channel, or planes would be too large.
  // What `cpu` has changes the speed, not the results.
  static std::optional<DepthwiseLayout> Of(const ConvGeometry& geometry,
                                           const CpuFeatures& cpu = ThisCpu());

  // The input with its padding; each group's channels are filled in by themselves.
  const BytePlanes& planes() const { return planes_; }
  int64_t group_bytes() const { return group_bytes_; }
  int64_t rows_out() const { return rows_out_; }
  int64_t columns_out() const { return columns_out_; }
  bool side_by_side() const { return side_by_side_; }
  bool wide() const { return wide_; }
  // Where the windows of one row of outputs begin.
  int64_t RowBegin(int64_t row) const { return row * row_step_; }
  int64_t ColumnBegin(int64_t column) const { return column * column_step_; }

  struct Pair {
    int64_t first, second;        // weights; second is -1 where there is none
    int64_t at_first, at_second;  // what they meet at output 0
  };
  const std::vector<Pair>& pairs() const { return pairs_; }

 private:
  DepthwiseLayout(const ConvGeometry& geometry, BytePlanes planes, bool side_by_side, bool wide);

  BytePlanes planes_;
  bool side_by_side_;
  bool wide_;  // products with AVX-512 VNNI
  int64_t group_bytes_, rows_out_, columns_out_, row_step_, column_step_;
  std::vector<Pair> pairs_;
};

inline constexpr int64_t kLineOutputs = kPanelColumns;

// One channel's weights, without their zero point.
class DepthwiseWeights {
 public:
  DepthwiseWeights(const DepthwiseLayout& layout, const ByteOperand& operand, const Tensor& weights,
                   int32_t zero, int64_t first);

  // Of all weights, modulo 2^32.
  uint32_t sum() const { return sum_; }
  // sums[i] = start + sum over k of weight k times (what it meets at output i ^ flip), modulo 2^32,
  // for `columns` outputs, at most kLineOutputs; up to kLineOutputs are written.
  void Sum(const uint8_t* at, int64_t columns, uint8_t flip, int32_t start, int32_t* sums) const;

 private:
  template <int kVectors, bool kFlip>
  void SumSideBySide(const uint8_t* at, int32_t start, int32_t* sums) const;
  template <int kVectors, bool kFlip>
  void SumInterleaved(const uint8_t* at, int32_t start, int32_t* sums) const;
  // All kLineOutputs.
  void SumSideBySideWide(const uint8_t* at, uint8_t flip, int32_t start, int32_t* sums) const;
  void SumInterleavedWide(const uint8_t* at, uint8_t flip, int32_t start, int32_t* sums) const;
  template <int kVectors>
  void SumVectors(const uint8_t* at, uint8_t flip, int32_t start, int32_t* sums) const;

  const DepthwiseLayout& layout_;
  absl::InlinedVector<int32_t, 16> weights_;  // two of 16 bits each
  uint32_t sum_ = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_DEPTHWISE_H_

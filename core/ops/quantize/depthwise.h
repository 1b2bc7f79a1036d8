// SPDX-License-Identifier: Apache-2.0
// Convolutions of bytes in which every channel has weights of its own: too few products for
// panels, so that outputs stay in registers while the weights go by, two at a time.
#ifndef ONWARD_CORE_OPS_QUANTIZE_DEPTHWISE_H_
#define ONWARD_CORE_OPS_QUANTIZE_DEPTHWISE_H_

#include <cstdint>
#include <vector>

#include "core/ops/quantize/requantize.h"

namespace onward {

inline constexpr int64_t kLineOutputs = kPanelColumns;

// One channel's weights.
class DepthwiseWeights {
 public:
  DepthwiseWeights(const ByteOperand& operand, const Tensor& weights, int64_t first, int64_t count);

  // sums[i] = start + sum over k of weight k times (at[offsets[k] + i] ^ flip), for kLineOutputs
  // outputs, modulo 2^32. All that is read there must be readable.
  void Sum(const uint8_t* at, const int64_t* offsets, uint8_t flip, int32_t start,
           int32_t* sums) const;

 private:
  template <bool kFlip>
  void SumFlipped(const uint8_t* at, const int64_t* offsets, int32_t start, int32_t* sums) const;

  std::vector<int32_t> pairs_;  // of 16 bits each
  bool even_;                   // the last pair is one
};

}  // namespace onward

#endif  // ONWARD_CORE_OPS_QUANTIZE_DEPTHWISE_H_

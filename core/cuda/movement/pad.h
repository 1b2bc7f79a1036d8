// SPDX-License-Identifier: Apache-2.0
// Pad: each position along an axis of the result is one of the source's or, in constant mode,
// none.
#ifndef ONWARD_CORE_CUDA_MOVEMENT_PAD_H_
#define ONWARD_CORE_CUDA_MOVEMENT_PAD_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace onward::cuda {

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

inline constexpr int kMaxPadRank = 8;

struct PadPlan {
  PadMode mode = PadMode::kConstant;
  int64_t elements = 0;  // of the result
  int rank = 0;
  int64_t dims[kMaxPadRank] = {};     // of the result
  int64_t strides[kMaxPadRank] = {};  // of the source
  // `kept` positions of the source from `crop` on are those from `low` on of the result.
  int64_t low[kMaxPadRank] = {};
  int64_t kept[kMaxPadRank] = {};
  int64_t crop[kMaxPadRank] = {};
};

// `value` is an element on the device; null: zero.
cudaError_t LaunchPad(const PadPlan& plan, int element_bytes, const void* from, const void* value,
                      void* to, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_MOVEMENT_PAD_H_

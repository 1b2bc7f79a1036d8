// SPDX-License-Identifier: Apache-2.0
// Numbers whose floating-point type is known at run time only, for the few of a kernel.
#pragma once

#include "core/cuda/types.cuh"

namespace onward::cuda {

// A number of any of the floating-point types.
__device__ inline double NumberAt(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kDouble: return static_cast<const double*>(data)[i];
    case DType::kFloat16: return Read(static_cast<const __half*>(data)[i]);
    case DType::kBFloat16: return Read(static_cast<const __nv_bfloat16*>(data)[i]);
    default: return static_cast<const float*>(data)[i];
  }
}
// Nothing where `data` is null.
__device__ inline void PutNumber(void* data, DType dtype, int64_t i, double value) {
  if (data == nullptr) return;
  switch (dtype) {
    case DType::kDouble: static_cast<double*>(data)[i] = value; break;
    case DType::kFloat16: static_cast<__half*>(data)[i] = Write<__half>(value); break;
    case DType::kBFloat16:
      static_cast<__nv_bfloat16*>(data)[i] = Write<__nv_bfloat16>(value);
      break;
    default: static_cast<float*>(data)[i] = static_cast<float>(value);
  }
}

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// What a handle of the fake cuBLAS holds.
#pragma once

#include <cublas_v2.h>

struct cublasContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
};

namespace onward::cuda_emu {

bool IsCublasHandle(cublasHandle_t handle);

}  // namespace onward::cuda_emu

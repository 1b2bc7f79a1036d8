// SPDX-License-Identifier: Apache-2.0
// What a handle of the fake cuBLAS holds.
#pragma once

#include <cublas_v2.h>

#include <cstddef>

struct cublasContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  // Of the caller. Without one products share memory of the library's own.
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

namespace onward::cuda_emu {

bool IsCublasHandle(cublasHandle_t handle);

}  // namespace onward::cuda_emu

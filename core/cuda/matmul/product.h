// SPDX-License-Identifier: Apache-2.0
// Products of row-major matrices by cuBLAS, which thinks in columns.
#ifndef ONWARD_CORE_CUDA_MATMUL_PRODUCT_H_
#define ONWARD_CORE_CUDA_MATMUL_PRODUCT_H_

#include <cublas_v2.h>

#include <cstdint>

#include "absl/status/status.h"
#include "core/base/dtype.h"

namespace onward::cuda {

// C = alpha * A' * B' + beta * C for matrices A' [m, k], B' [k, n] and C [m, n] of each batch. Rows
// of what is stored are a_row, b_row and c_row elements apart, matrices a_batch, b_batch and
// c_batch.
struct Product {
  DType dtype = DType::kFloat;
  bool tf32 = false;
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  double alpha = 1, beta = 0;
  int64_t a_row = 0, b_row = 0, c_row = 0;
  int64_t batches = 1, a_batch = 0, b_batch = 0, c_batch = 0;
};

// Matrices without gaps.
Product DenseProduct(DType dtype, int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b);

// Whether cuBLAS takes such a product; its sizes are ints, and nothing may be empty.
bool CanMultiply(const Product& product);

absl::Status Multiply(cublasHandle_t handle, const Product& product, const void* a, const void* b,
                      void* c);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_MATMUL_PRODUCT_H_

// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/matmul/product.h"

#include <limits>

#include "core/cuda/libraries.h"

namespace onward::cuda {
namespace {

struct BlasTypes {
  cudaDataType_t data;
  cublasComputeType_t compute;
};

BlasTypes TypesOf(const Product& p) {
  switch (p.dtype) {
    case DType::kDouble: return {CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::kFloat16: return {CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case DType::kBFloat16: return {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    default: return {CUDA_R_32F, p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
  }
}

}  // namespace

Product DenseProduct(DType dtype, int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b) {
  Product p;
  p.dtype = dtype;
  p.m = m;
  p.n = n;
  p.k = k;
  p.trans_a = trans_a;
  p.trans_b = trans_b;
  p.a_row = trans_a ? m : k;
  p.b_row = trans_b ? k : n;
  p.c_row = n;
  return p;
}

bool CanMultiply(const Product& p) {
  for (const int64_t size : {p.m, p.n, p.k, p.a_row, p.b_row, p.c_row, p.batches}) {
    if (size < 1 || size > std::numeric_limits<int>::max()) return false;
  }
  return true;
}

// A row-major matrix is its transpose by columns, and (A' B')^T = B'^T A'^T.
absl::Status Multiply(cublasHandle_t handle, const Product& p, const void* a, const void* b,
                      void* c) {
  const BlasTypes types = TypesOf(p);
  const cublasOperation_t op_a = p.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = p.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const float floats[2] = {static_cast<float>(p.alpha), static_cast<float>(p.beta)};
  const double doubles[2] = {p.alpha, p.beta};
  const bool wide = p.dtype == DType::kDouble;
  const void* alpha = wide ? static_cast<const void*>(&doubles[0]) : &floats[0];
  const void* beta = wide ? static_cast<const void*>(&doubles[1]) : &floats[1];
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const int a_row = static_cast<int>(p.a_row), b_row = static_cast<int>(p.b_row);
  const int c_row = static_cast<int>(p.c_row);
  if (p.batches == 1) {
    return StatusOf(
        cublasGemmEx(handle, op_b, op_a, n, m, k, alpha, b, types.data, b_row, a, types.data, a_row,
                     beta, c, types.data, c_row, types.compute, CUBLAS_GEMM_DEFAULT),
        "a product");
  }
  return StatusOf(cublasGemmStridedBatchedEx(
                      handle, op_b, op_a, n, m, k, alpha, b, types.data, b_row, p.b_batch, a,
                      types.data, a_row, p.a_batch, beta, c, types.data, c_row, p.c_batch,
                      static_cast<int>(p.batches), types.compute, CUBLAS_GEMM_DEFAULT),
                  "a batch of products");
}

}  // namespace onward::cuda

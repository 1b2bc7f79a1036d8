// SPDX-License-Identifier: Apache-2.0
// Matrix products of the fake cuBLAS: NVIDIA's rules for arguments, plain loops.
#include <algorithm>
#include <cstring>
#include <optional>

#include "tests/cuda_emu/cublas_handle.h"
#include "tests/cuda_emu/gemm.h"
#include "tests/cuda_emu/library.h"
#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/state.h"

using namespace onward::cuda_emu;

namespace {

std::optional<Element> ElementOf(cudaDataType type) {
  switch (type) {
    case CUDA_R_32F: return Element::kFloat;
    case CUDA_R_64F: return Element::kDouble;
    case CUDA_R_16F: return Element::kHalf;
    case CUDA_R_16BF: return Element::kBfloat16;
    default: return std::nullopt;
  }
}

struct Operand {
  const void* data;
  cudaDataType type;
  int leading;
  long long stride;  // from one product of a batch to the next
};

struct GemmCall {
  const char* name;
  cublasHandle_t handle;
  cublasOperation_t transa, transb;
  int m, n, k;
  const void* alpha;
  Operand a, b;
  const void* beta;
  Operand c;
  int batch;
  cublasComputeType_t compute;
  bool pointers = false;  // the operands are arrays of pointers, in device memory
};

bool UsesTf32(const GemmCall& call) {
  return call.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
         (call.compute == CUBLAS_COMPUTE_32F &&
          (call.handle->math & 0xf) == CUBLAS_TF32_TENSOR_OP_MATH && call.a.type == CUDA_R_32F);
}

// The combinations of cuBLAS's table that there are fakes for.
bool Supported(const GemmCall& call) {
  if (call.a.type != call.b.type) return false;
  const cudaDataType in = call.a.type, out = call.c.type;
  switch (call.compute) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC: return in == CUDA_R_64F && out == CUDA_R_64F;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      return (in == CUDA_R_32F || in == CUDA_R_16F || in == CUDA_R_16BF) &&
             (out == in || out == CUDA_R_32F);
    case CUBLAS_COMPUTE_32F_FAST_TF32: return in == CUDA_R_32F && out == CUDA_R_32F;
    default: return false;
  }
}

bool IsOperation(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

bool ValidSizes(const GemmCall& call) {
  const bool plain_a = call.transa == CUBLAS_OP_N, plain_b = call.transb == CUBLAS_OP_N;
  return call.m >= 0 && call.n >= 0 && call.k >= 0 && call.batch >= 0 && IsOperation(call.transa) &&
         IsOperation(call.transb) && call.a.leading >= std::max(1, plain_a ? call.m : call.k) &&
         call.b.leading >= std::max(1, plain_b ? call.k : call.n) &&
         call.c.leading >= std::max(1, call.m) && call.alpha != nullptr && call.beta != nullptr;
}

// Bytes from the first to the last element of a stored rows x columns matrix, over the batch.
size_t Extent(const Operand& operand, int64_t rows, int64_t columns, int64_t batch) {
  if (rows == 0 || columns == 0) return 0;
  const int64_t elements =
      (columns - 1) * operand.leading + rows + (batch - 1) * std::max(0ll, operand.stride);
  return static_cast<size_t>(elements) * SizeOf(*ElementOf(operand.type));
}

double ReadScalar(const GemmCall& call, const void* scalar) {
  return call.compute == CUBLAS_COMPUTE_64F || call.compute == CUBLAS_COMPUTE_64F_PEDANTIC
             ? *static_cast<const double*>(scalar)
             : *static_cast<const float*>(scalar);
}

void CheckMemory(const GemmCall& call, bool reads_ab) {
  const int device = call.handle->device;
  if (call.pointers) {
    const size_t bytes = sizeof(void*) * call.batch;
    CheckDeviceRange(call.name, "the array of pointers to A", call.a.data, bytes, device);
    CheckDeviceRange(call.name, "the array of pointers to B", call.b.data, bytes, device);
    CheckDeviceRange(call.name, "the array of pointers to C", call.c.data, bytes, device);
    return;
  }
  const auto check = [&](const char* what, const Operand& operand, int64_t rows, int64_t columns,
                         Use use = Use::kRead) {
    CheckDeviceRange(call.name, what, operand.data, Extent(operand, rows, columns, call.batch),
                     device, use);
  };
  const bool plain_a = call.transa == CUBLAS_OP_N, plain_b = call.transb == CUBLAS_OP_N;
  if (reads_ab) {
    check("A", call.a, plain_a ? call.m : call.k, plain_a ? call.k : call.m);
    check("B", call.b, plain_b ? call.k : call.n, plain_b ? call.n : call.k);
  }
  check("C", call.c, call.m, call.n, Use::kWritten);
}

// Handles give their workspace up when they get a stream. In strict mode a product has to have one:
// with the library's own, which all streams share, its bits may change from run to run.
void CheckWorkspace(const GemmCall& call) {
  const cublasContext& handle = *call.handle;
  if (handle.workspace_bytes == 0 && GetState().strict > 0) {
    Fatal("%s: nobody gave the handle a workspace since its stream was set", call.name);
  }
  CheckDeviceRange(call.name, "the workspace", handle.workspace, handle.workspace_bytes,
                   handle.device, Use::kScratch);
}

// Leaves nothing in the workspace as it was; at its ends alone where nobody wants to wait.
void Scribble(void* workspace, size_t bytes) {
  constexpr size_t kEnd = 4096;
  char* const at = static_cast<char*>(workspace);
  if (bytes <= 2 * kEnd || GetState().strict > 0) {
    if (bytes > 0) std::memset(at, kPoison, bytes);
    return;
  }
  std::memset(at, kPoison, kEnd);
  std::memset(at + bytes - kEnd, kPoison, kEnd);
}

void* At(const GemmCall& call, const Operand& operand, int64_t i) {
  if (call.pointers) return static_cast<void* const*>(operand.data)[i];
  const size_t size = SizeOf(*ElementOf(operand.type));
  char* data = static_cast<char*>(const_cast<void*>(operand.data));
  return data + i * operand.stride * static_cast<int64_t>(size);
}

void RunGemm(const GemmCall& call, bool tf32, double alpha, double beta) {
  for (int64_t i = 0; i < call.batch; ++i) {
    Multiply({.m = call.m,
              .n = call.n,
              .k = call.k,
              .alpha = alpha,
              .beta = beta,
              .a = {At(call, call.a, i), *ElementOf(call.a.type), call.a.leading,
                    call.transa != CUBLAS_OP_N},
              .b = {At(call, call.b, i), *ElementOf(call.b.type), call.b.leading,
                    call.transb != CUBLAS_OP_N},
              .c = {At(call, call.c, i), *ElementOf(call.c.type), call.c.leading, false},
              .tf32 = tf32});
  }
}

cublasStatus_t Gemm(const GemmCall& call) {
  Entry entry;
  if (!IsCublasHandle(call.handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!BeginLibraryCall()) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!ValidSizes(call)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!Supported(call)) return CUBLAS_STATUS_NOT_SUPPORTED;
  CUstream_st* stream = Resolve(call.handle->stream);
  if (stream == nullptr || stream->device != call.handle->device) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  if (call.m == 0 || call.n == 0 || call.batch == 0) return CUBLAS_STATUS_SUCCESS;
  const bool tf32 = UsesTf32(call);
  const bool host = call.handle->pointer_mode == CUBLAS_POINTER_MODE_HOST;
  // Scalars of the host are read now, whatever becomes of them.
  const double alpha = host ? ReadScalar(call, call.alpha) : 0;
  const double beta = host ? ReadScalar(call, call.beta) : 0;
  if (!host) {
    CheckDeviceRange(call.name, "alpha", call.alpha, sizeof(float), stream->device);
    CheckDeviceRange(call.name, "beta", call.beta, sizeof(float), stream->device);
  }
  CheckMemory(call, call.k > 0 && (!host || alpha != 0));
  CheckWorkspace(call);
  void* const workspace = call.handle->workspace;
  const size_t workspace_bytes = call.handle->workspace_bytes;
  const bool queued = QueueLibraryWork(call.name, stream, [=] {
    Scribble(workspace, workspace_bytes);
    RunGemm(call, tf32, host ? alpha : ReadScalar(call, call.alpha),
            host ? beta : ReadScalar(call, call.beta));
  });
  return queued ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

extern "C" {

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const float* alpha,
                           const float* a, int lda, const float* b, int ldb, const float* beta,
                           float* c, int ldc) {
  return Gemm({"cublasSgemm",
               handle,
               transa,
               transb,
               m,
               n,
               k,
               alpha,
               {a, CUDA_R_32F, lda, 0},
               {b, CUDA_R_32F, ldb, 0},
               beta,
               {c, CUDA_R_32F, ldc, 0},
               1,
               CUBLAS_COMPUTE_32F});
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const double* alpha,
                           const double* a, int lda, const double* b, int ldb, const double* beta,
                           double* c, int ldc) {
  return Gemm({"cublasDgemm",
               handle,
               transa,
               transb,
               m,
               n,
               k,
               alpha,
               {a, CUDA_R_64F, lda, 0},
               {b, CUDA_R_64F, ldb, 0},
               beta,
               {c, CUDA_R_64F, ldc, 0},
               1,
               CUBLAS_COMPUTE_64F});
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  return Gemm({"cublasGemmEx",
               handle,
               transa,
               transb,
               m,
               n,
               k,
               alpha,
               {a, a_type, lda, 0},
               {b, b_type, ldb, 0},
               beta,
               {c, c_type, ldc, 0},
               1,
               compute});
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long stride_a, const float* b, int ldb,
                                         long long stride_b, const float* beta, float* c, int ldc,
                                         long long stride_c, int batch) {
  return Gemm({"cublasSgemmStridedBatched",
               handle,
               transa,
               transb,
               m,
               n,
               k,
               alpha,
               {a, CUDA_R_32F, lda, stride_a},
               {b, CUDA_R_32F, ldb, stride_b},
               beta,
               {c, CUDA_R_32F, ldc, stride_c},
               batch,
               CUBLAS_COMPUTE_32F});
}

cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const double* alpha, const double* a, int lda,
                                         long long stride_a, const double* b, int ldb,
                                         long long stride_b, const double* beta, double* c, int ldc,
                                         long long stride_c, int batch) {
  return Gemm({"cublasDgemmStridedBatched",
               handle,
               transa,
               transb,
               m,
               n,
               k,
               alpha,
               {a, CUDA_R_64F, lda, stride_a},
               {b, CUDA_R_64F, ldb, stride_b},
               beta,
               {c, CUDA_R_64F, ldc, stride_c},
               batch,
               CUBLAS_COMPUTE_64F});
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType a_type,
                                          int lda, long long stride_a, const void* b,
                                          cudaDataType b_type, int ldb, long long stride_b,
                                          const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long stride_c, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  return Gemm({"cublasGemmStridedBatchedEx",
               handle,
               transa,
               transb,
               m,
               n,
               k,
               alpha,
               {a, a_type, lda, stride_a},
               {b, b_type, ldb, stride_b},
               beta,
               {c, c_type, ldc, stride_c},
               batch,
               compute});
}

cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k, const float* alpha,
                                  const float* const a[], int lda, const float* const b[], int ldb,
                                  const float* beta, float* const c[], int ldc, int batch) {
  return Gemm({"cublasSgemmBatched",
               handle,
               transa,
               transb,
               m,
               n,
               k,
               alpha,
               {a, CUDA_R_32F, lda, 0},
               {b, CUDA_R_32F, ldb, 0},
               beta,
               {c, CUDA_R_32F, ldc, 0},
               batch,
               CUBLAS_COMPUTE_32F,
               true});
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                   cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                   const void* const a[], cudaDataType a_type, int lda,
                                   const void* const b[], cudaDataType b_type, int ldb,
                                   const void* beta, void* const c[], cudaDataType c_type, int ldc,
                                   int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return Gemm({"cublasGemmBatchedEx",
               handle,
               transa,
               transb,
               m,
               n,
               k,
               alpha,
               {a, a_type, lda, 0},
               {b, b_type, ldb, 0},
               beta,
               {c, c_type, ldc, 0},
               batch,
               compute,
               true});
}

}  // extern "C"

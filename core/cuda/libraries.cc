// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/libraries.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/cuda/call.h"

namespace onward::cuda {
namespace {

absl::Status LibraryStatus(bool out_of_memory, std::string_view what, const char* library,
                           const char* words) {
  const std::string text = absl::StrCat(std::string(what), ": ", library, ": ", words);
  return out_of_memory ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

// cuBLAS wants its scratch aligned to this; a kernel's is to less.
constexpr size_t kBlasAlignment = 256;

void* Aligned(void* scratch) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(scratch);
  return reinterpret_cast<void*>((address + kBlasAlignment - 1) & ~(kBlasAlignment - 1));
}

}  // namespace

absl::Status StatusOf(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return LibraryStatus(status == CUBLAS_STATUS_ALLOC_FAILED, what, "cuBLAS",
                       cublasGetStatusString(status));
}

absl::Status StatusOf(cudnnStatus_t status, std::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const bool out_of_memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                             status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  return LibraryStatus(out_of_memory, what, "cuDNN", cudnnGetErrorString(status));
}

// Nothing can be done about what fails here.
Libraries::~Libraries() {
  if (blas_ == nullptr && dnn_ == nullptr) return;
  cudaSetDevice(device_);
  if (blas_ != nullptr) cublasDestroy(blas_);
  if (dnn_ != nullptr) cudnnDestroy(dnn_);
}

absl::Status Libraries::OpenBlas() {
  if (blas_ != nullptr) return absl::OkStatus();
  ONWARD_RETURN_IF_ERROR(StatusOf(cudaSetDevice(device_), "choosing the device"));
  ONWARD_RETURN_IF_ERROR(StatusOf(cublasCreate(&blas_), "opening cuBLAS"));
  // Sums of 16-bit products stay in float.
  return StatusOf(cublasSetMathMode(blas_, static_cast<cublasMath_t>(
                                               CUBLAS_DEFAULT_MATH |
                                               CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
                  "opening cuBLAS");
}

absl::Status Libraries::OpenDnn() {
  if (dnn_ != nullptr) return absl::OkStatus();
  ONWARD_RETURN_IF_ERROR(StatusOf(cudaSetDevice(device_), "choosing the device"));
  return StatusOf(cudnnCreate(&dnn_), "opening cuDNN");
}

absl::Status Libraries::WithBlas(cudaStream_t stream, void* scratch,
                                 absl::FunctionRef<absl::Status(cublasHandle_t)> use) {
  const std::lock_guard<std::mutex> lock(blas_mutex_);
  ONWARD_RETURN_IF_ERROR(OpenBlas());
  // In this order: a new stream takes the workspace away.
  ONWARD_RETURN_IF_ERROR(StatusOf(cublasSetStream(blas_, stream), "cuBLAS stream"));
  ONWARD_RETURN_IF_ERROR(
      StatusOf(cublasSetWorkspace(blas_, Aligned(scratch), kBlasBytes - kBlasAlignment),
               "cuBLAS workspace"));
  return use(blas_);
}

absl::Status Libraries::WithDnn(cudaStream_t stream,
                                absl::FunctionRef<absl::Status(cudnnHandle_t)> use) {
  const std::lock_guard<std::mutex> lock(dnn_mutex_);
  ONWARD_RETURN_IF_ERROR(OpenDnn());
  ONWARD_RETURN_IF_ERROR(StatusOf(cudnnSetStream(dnn_, stream), "cuDNN stream"));
  return use(dnn_);
}

absl::Status Libraries::WithDnn(absl::FunctionRef<absl::Status(cudnnHandle_t)> use) {
  const std::lock_guard<std::mutex> lock(dnn_mutex_);
  ONWARD_RETURN_IF_ERROR(OpenDnn());
  return use(dnn_);
}

}  // namespace onward::cuda

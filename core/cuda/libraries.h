// SPDX-License-Identifier: Apache-2.0
// cuBLAS and cuDNN of one device. Handles are made on first use and shared by all kernels: whoever
// uses one holds its lock while it queues work, so any thread may run any kernel.
#ifndef ONWARD_CORE_CUDA_LIBRARIES_H_
#define ONWARD_CORE_CUDA_LIBRARIES_H_

#include <cublas_v2.h>
#include <cudnn.h>

#include <cstddef>
#include <mutex>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace onward::cuda {

// "what: the library's own words". Out of memory is ResourceExhausted.
absl::Status StatusOf(cublasStatus_t status, std::string_view what);
absl::Status StatusOf(cudnnStatus_t status, std::string_view what);

class Libraries {
 public:
  explicit Libraries(int device) : device_(device) {}
  ~Libraries();
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  // Scratch that a kernel gives cuBLAS from its own workspace: the library then allocates nothing
  // while a step runs, and a step can be captured.
  static constexpr size_t kBlasBytes = (size_t{4} << 20) + 256;

  // Calls use(handle); what it queues goes to `stream`.
  absl::Status WithBlas(cudaStream_t stream, void* scratch,
                        absl::FunctionRef<absl::Status(cublasHandle_t)> use);
  absl::Status WithDnn(cudaStream_t stream, absl::FunctionRef<absl::Status(cudnnHandle_t)> use);
  // For questions at compile time (workspace sizes).
  absl::Status WithDnn(absl::FunctionRef<absl::Status(cudnnHandle_t)> use);

 private:
  absl::Status OpenBlas();
  absl::Status OpenDnn();

  const int device_;
  std::mutex blas_mutex_, dnn_mutex_;
  cublasHandle_t blas_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
};

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_LIBRARIES_H_

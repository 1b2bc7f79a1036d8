// SPDX-License-Identifier: Apache-2.0
// Handles and statuses of the fake cuBLAS.
#include "tests/cuda_emu/cublas_handle.h"

#include <set>

#include "tests/cuda_emu/library.h"
#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/state.h"

using namespace onward::cuda_emu;

namespace {

std::set<cublasHandle_t>& Handles() {
  static auto* handles = new std::set<cublasHandle_t>;
  return *handles;
}

struct StatusText {
  cublasStatus_t status;
  const char* name;
  const char* text;
};

constexpr StatusText kStatuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the function failed to launch on the GPU"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the functionality requested is not supported"},
};

const StatusText* Find(cublasStatus_t status) {
  for (const StatusText& known : kStatuses) {
    if (known.status == status) return &known;
  }
  return nullptr;
}

// A setter of the handle.
template <class F>
cublasStatus_t With(cublasHandle_t handle, F f) {
  Entry entry;
  if (!IsCublasHandle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  return f(*handle);
}

}  // namespace

bool onward::cuda_emu::IsCublasHandle(cublasHandle_t handle) { return Handles().contains(handle); }

extern "C" {

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  Entry entry;
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (Record(cudaSuccess) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (ShallFail(kOnwardEmuLibrary)) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = new cublasContext{.device = CurrentDevice()};
  Handles().insert(*handle);
  ++GetState().counters.live_objects;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  Entry entry;
  if (!IsCublasHandle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  FinishDevice(handle->device);
  Handles().erase(handle);
  delete handle;
  --GetState().counters.live_objects;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version) {
  return With(handle, [version](cublasContext&) {
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return With(handle, [stream](cublasContext& context) {
    context.stream = stream;
    context.workspace = nullptr;
    context.workspace_bytes = 0;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  return With(handle, [stream](cublasContext& context) {
    *stream = context.stream;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes) {
  return With(handle, [=](cublasContext& context) {
    if (workspace == nullptr && bytes > 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
    CheckDeviceRange("cublasSetWorkspace", "the workspace", workspace, bytes, context.device);
    context.workspace = workspace;
    context.workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return With(handle, [mode](cublasContext& context) {
    context.math = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return With(handle, [mode](cublasContext& context) {
    *mode = context.math;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  return With(handle, [mode](cublasContext& context) {
    context.pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t) {
  return With(handle, [](cublasContext&) { return CUBLAS_STATUS_SUCCESS; });
}

const char* cublasGetStatusString(cublasStatus_t status) {
  const StatusText* known = Find(status);
  return known != nullptr ? known->text : "unknown status";
}

const char* cublasGetStatusName(cublasStatus_t status) {
  const StatusText* known = Find(status);
  return known != nullptr ? known->name : "unknown status";
}

}  // extern "C"

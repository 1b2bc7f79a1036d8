// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/call.h"

namespace onward::cuda {

bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: return true;
    default: return false;
  }
}

absl::Status StatusOf(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  std::string text = absl::StrCat(std::string(what), ": ", cudaGetErrorString(error), " (",
                                  cudaGetErrorName(error), ")");
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(text);
  if (IsSticky(error)) {
    text +=
        "; work queued before it failed on the GPU, which this process cannot use any more: "
        "start it again";
  }
  return absl::InternalError(text);
}

}  // namespace onward::cuda

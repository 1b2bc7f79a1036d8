// SPDX-License-Identifier: Apache-2.0
// What the factories of CUDA kernels share. A factory is host code compiled by g++ in both builds
// (a .cc file); it prepares a Kernel whose run() queues launches on the call's stream. Device code
// is in .cu files behind functions that take plain types and return cudaError_t (launch.h).
#ifndef ONWARD_CORE_CUDA_CALL_H_
#define ONWARD_CORE_CUDA_CALL_H_

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/cuda/fault.h"
#include "core/device/kernel.h"

namespace onward::cuda {

inline cudaStream_t StreamOf(const KernelCall& call) {
  return static_cast<cudaStream_t>(call.stream);
}

inline FaultPlace FaultOf(const KernelCall& call) { return {call.fault, call.step}; }

// Whether every later call of the process fails too.
bool IsSticky(cudaError_t error);

// "what: out of memory (cudaErrorMemoryAllocation)". Running out of memory is ResourceExhausted.
// The runtime's note of the last error is cleared: it has been told.
absl::Status StatusOf(cudaError_t error, std::string_view what);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_CALL_H_

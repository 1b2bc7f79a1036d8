// SPDX-License-Identifier: Apache-2.0
// Work of a stream that is captured once as a CUDA graph and launched as a whole.
#ifndef ONWARD_CORE_CUDA_RECORDING_H_
#define ONWARD_CORE_CUDA_RECORDING_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device/device.h"

namespace onward::cuda {

absl::Status BeginCapture(cudaStream_t stream);
// Null where it is not kept.
absl::StatusOr<std::unique_ptr<Recording>> EndCapture(cudaStream_t stream, bool keep);
// Of a recording that EndCapture made.
absl::Status Launch(Recording& recording, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_RECORDING_H_

// SPDX-License-Identifier: Apache-2.0
// A CUDA stream with the pinned memory through which the host's bytes go in and out.
#ifndef ONWARD_CORE_CUDA_STREAM_H_
#define ONWARD_CORE_CUDA_STREAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/device/device.h"

namespace onward::cuda {

// Of the GPU with this index.
absl::StatusOr<std::unique_ptr<Stream>> MakeStream(int device);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_STREAM_H_

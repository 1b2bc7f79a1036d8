// SPDX-License-Identifier: Apache-2.0
// Work of a stream that is put down as a CUDA graph and then launched as a whole.
#ifndef ONWARD_CORE_CUDA_CAPTURE_H_
#define ONWARD_CORE_CUDA_CAPTURE_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"

namespace onward::cuda {

class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {}
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  bool active() const { return active_; }
  absl::Status Begin();
  // Launches what was queued since, or drops it.
  absl::Status End(bool keep);

 private:
  // An executable graph for this one: the last one with new parameters, where that can be.
  absl::Status Prepare(cudaGraph_t graph);

  cudaStream_t stream_;
  bool active_ = false;
  cudaGraphExec_t prepared_ = nullptr;
};

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_CAPTURE_H_

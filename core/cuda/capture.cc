// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/capture.h"

#include "core/base/status.h"
#include "core/cuda/call.h"

namespace onward::cuda {

Capture::~Capture() {
  if (active_) End(false).IgnoreError();
  if (prepared_ != nullptr) cudaGraphExecDestroy(prepared_);
}

absl::Status Capture::Begin() {
  // Relaxed: memory for staging may be asked for in between.
  ONWARD_RETURN_IF_ERROR(StatusOf(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed),
                                  "cannot put down a CUDA graph"));
  active_ = true;
  return absl::OkStatus();
}

absl::Status Capture::Prepare(cudaGraph_t graph) {
  if (prepared_ != nullptr) {
    cudaGraphExecUpdateResultInfo info{};
    if (cudaGraphExecUpdate(prepared_, graph, &info) == cudaSuccess) return absl::OkStatus();
    cudaGetLastError();  // another graph, not a fault
    cudaGraphExecDestroy(prepared_);
    prepared_ = nullptr;
  }
  return StatusOf(cudaGraphInstantiate(&prepared_, graph, 0), "cannot prepare a CUDA graph");
}

absl::Status Capture::End(bool keep) {
  active_ = false;
  cudaGraph_t graph = nullptr;
  absl::Status status =
      StatusOf(cudaStreamEndCapture(stream_, &graph), "cannot put down a CUDA graph");
  if (status.ok() && keep) status = Prepare(graph);
  if (status.ok() && keep) {
    status = StatusOf(cudaGraphLaunch(prepared_, stream_), "cannot launch a CUDA graph");
  }
  if (graph != nullptr) cudaGraphDestroy(graph);
  return status;
}

}  // namespace onward::cuda

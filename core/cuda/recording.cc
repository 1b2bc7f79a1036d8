// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/recording.h"

#include "core/base/status.h"
#include "core/cuda/call.h"

namespace onward::cuda {
namespace {

class Graph final : public Recording {
 public:
  explicit Graph(cudaGraphExec_t prepared) : prepared_(prepared) {}
  ~Graph() override { cudaGraphExecDestroy(prepared_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  cudaGraphExec_t prepared() const { return prepared_; }

 private:
  cudaGraphExec_t prepared_;
};

}  // namespace

absl::Status BeginCapture(cudaStream_t stream) {
  // Relaxed: what a library allocates on its first call may be asked for in between.
  return StatusOf(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed),
                  "cannot put down a CUDA graph");
}

absl::StatusOr<std::unique_ptr<Recording>> EndCapture(cudaStream_t stream, bool keep) {
  cudaGraph_t graph = nullptr;
  absl::Status status =
      StatusOf(cudaStreamEndCapture(stream, &graph), "cannot put down a CUDA graph");
  cudaGraphExec_t prepared = nullptr;
  if (status.ok() && keep) {
    status = StatusOf(cudaGraphInstantiate(&prepared, graph, 0), "cannot prepare a CUDA graph");
  }
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (!keep) return std::unique_ptr<Recording>();
  ONWARD_RETURN_IF_ERROR(status);
  return std::make_unique<Graph>(prepared);
}

absl::Status Launch(Recording& recording, cudaStream_t stream) {
  return StatusOf(cudaGraphLaunch(static_cast<Graph&>(recording).prepared(), stream),
                  "cannot launch a CUDA graph");
}

}  // namespace onward::cuda

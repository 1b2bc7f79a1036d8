// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/stream.h"

#include <optional>
#include <utility>

#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/commit.h"
#include "core/cuda/recording.h"
#include "core/cuda/staging.h"

namespace onward::cuda {
namespace {

std::optional<FloatFormat> FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return FloatFormat{2, 0x7c00};
    case DType::kBFloat16: return FloatFormat{2, 0x7f80};
    case DType::kFloat: return FloatFormat{4, 0x7f800000};
    case DType::kDouble: return FloatFormat{8, 0x7ff0000000000000};
    default: return std::nullopt;
  }
}

class CudaStream final : public Stream {
 public:
  CudaStream(int device, cudaStream_t stream, cudaEvent_t reached)
      : device_(device), stream_(stream), reached_(reached), staging_(stream) {}

  ~CudaStream() override {
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_);
    cudaEventDestroy(reached_);
    cudaStreamDestroy(stream_);
  }

  // Launches go to the device that is current in their thread.
  void* native() const override {
    cudaSetDevice(device_);
    return stream_;
  }

  absl::Status CopyIn(void* to, const void* host, size_t bytes) override {
    ONWARD_RETURN_IF_ERROR(Enter());
    return staging_.CopyIn(to, host, bytes);
  }

  absl::Status CopyOut(void* host, const void* from, size_t bytes) override {
    ONWARD_RETURN_IF_ERROR(Enter());
    return staging_.CopyOut(host, from, bytes);
  }

  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0 || to == from) return absl::OkStatus();
    ONWARD_RETURN_IF_ERROR(Enter());
    return StatusOf(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_),
                    "cannot copy within the GPU");
  }

  absl::Status CopyPinnedIn(void* to, const void* pinned, size_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    ONWARD_RETURN_IF_ERROR(Enter());
    return StatusOf(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, stream_),
                    "cannot copy to the GPU");
  }

  absl::Status CopyPinnedOut(void* pinned, const void* from, size_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    ONWARD_RETURN_IF_ERROR(Enter());
    return StatusOf(cudaMemcpyAsync(pinned, from, bytes, cudaMemcpyDeviceToHost, stream_),
                    "cannot copy from the GPU");
  }

  absl::Status CopyUnless(const uint32_t* stop, void* to, const void* from, size_t bytes) override {
    ONWARD_RETURN_IF_ERROR(Enter());
    return StatusOf(cuda::CopyUnless(stop, to, from, bytes, stream_), "cannot copy within the GPU");
  }

  absl::Status FlagInfinite(const Tensor& tensor, uint32_t* bad) override {
    const std::optional<FloatFormat> format = FormatOf(tensor.dtype());
    if (!format.has_value()) return absl::OkStatus();
    ONWARD_RETURN_IF_ERROR(Enter());
    return StatusOf(FindInfinite(tensor.raw(), tensor.elements(), *format, bad, stream_),
                    "cannot look for infinite numbers");
  }

  absl::Status SetStop(const uint32_t* words, int count, const Fault* fault,
                       uint32_t* stop) override {
    ONWARD_RETURN_IF_ERROR(Enter());
    return StatusOf(cuda::SetStop(words, count, fault, stop, stream_),
                    "cannot decide on the assignments");
  }

  absl::Status BeginRecording() override {
    ONWARD_RETURN_IF_ERROR(Enter());
    return BeginCapture(stream_);
  }

  absl::StatusOr<std::unique_ptr<Recording>> EndRecording(bool keep) override {
    const absl::Status entered = Enter();
    auto recording = EndCapture(stream_, keep && entered.ok());
    if (!entered.ok()) return entered;
    return recording;
  }

  absl::Status Replay(Recording& recording) override {
    ONWARD_RETURN_IF_ERROR(Enter());
    return Launch(recording, stream_);
  }

  absl::Status WaitFor(Stream& other) override {
    CudaStream& before = static_cast<CudaStream&>(other);
    ONWARD_RETURN_IF_ERROR(Enter());
    ONWARD_RETURN_IF_ERROR(
        StatusOf(cudaEventRecord(before.reached_, before.stream_), "cannot record an event"));
    return StatusOf(cudaStreamWaitEvent(stream_, before.reached_, 0), "cannot wait for an event");
  }

  absl::Status Synchronize() override {
    ONWARD_RETURN_IF_ERROR(Enter());
    const absl::Status status = StatusOf(cudaStreamSynchronize(stream_), "the GPU reports");
    if (status.ok()) {
      staging_.Finish();
    } else {
      staging_.Drop();
    }
    return status;
  }

 private:
  absl::Status Enter() const { return StatusOf(cudaSetDevice(device_), "cannot use the GPU"); }

  int device_;
  cudaStream_t stream_;
  cudaEvent_t reached_;  // for streams that wait for this one
  Staging staging_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Stream>> MakeStream(int device) {
  ONWARD_RETURN_IF_ERROR(StatusOf(cudaSetDevice(device), "cannot use the GPU"));
  cudaStream_t stream = nullptr;
  ONWARD_RETURN_IF_ERROR(
      StatusOf(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot make a stream"));
  cudaEvent_t reached = nullptr;
  const cudaError_t made = cudaEventCreateWithFlags(&reached, cudaEventDisableTiming);
  if (made != cudaSuccess) {
    cudaStreamDestroy(stream);
    return StatusOf(made, "cannot make an event");
  }
  return std::make_unique<CudaStream>(device, stream, reached);
}

}  // namespace onward::cuda

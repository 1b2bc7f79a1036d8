// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/stream.h"

#include <optional>
#include <utility>

#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/capture.h"
#include "core/cuda/finite.h"
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
  CudaStream(int device, cudaStream_t stream, int* found)
      : device_(device), stream_(stream), found_(found), staging_(stream), capture_(stream) {}

  ~CudaStream() override {
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_);
    cudaFree(found_);
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

  absl::StatusOr<bool> AllFinite(const Tensor& tensor) override {
    const std::optional<FloatFormat> format = FormatOf(tensor.dtype());
    if (!format.has_value() || tensor.elements() == 0) return true;
    ONWARD_RETURN_IF_ERROR(Enter());
    ONWARD_RETURN_IF_ERROR(
        StatusOf(cudaMemsetAsync(found_, 0, sizeof(int), stream_), "cannot clear memory"));
    ONWARD_RETURN_IF_ERROR(
        StatusOf(LaunchFindInfinite(tensor.raw(), tensor.elements(), *format, found_, stream_),
                 "cannot look for infinite numbers"));
    ONWARD_RETURN_IF_ERROR(staging_.CopyOut(&host_found_, found_, sizeof(int)));
    ONWARD_RETURN_IF_ERROR(Synchronize());
    return host_found_ == 0;
  }

  absl::Status Begin() override {
    ONWARD_RETURN_IF_ERROR(Enter());
    ONWARD_RETURN_IF_ERROR(capture_.Begin());
    staging_.BeginHold();
    return absl::OkStatus();
  }

  absl::Status End(bool keep) override {
    const absl::Status entered = Enter();
    const absl::Status ended = capture_.End(keep && entered.ok());
    staging_.EndHold(keep && entered.ok() && ended.ok());
    return entered.ok() ? ended : entered;
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
  int* found_;  // on the device: whether AllFinite met something else
  int host_found_ = 0;
  Staging staging_;
  Capture capture_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Stream>> MakeStream(int device) {
  ONWARD_RETURN_IF_ERROR(StatusOf(cudaSetDevice(device), "cannot use the GPU"));
  cudaStream_t stream = nullptr;
  ONWARD_RETURN_IF_ERROR(
      StatusOf(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot make a stream"));
  void* found = nullptr;
  const cudaError_t allocated = cudaMalloc(&found, sizeof(int));
  if (allocated != cudaSuccess) {
    cudaStreamDestroy(stream);
    return StatusOf(allocated, "cannot get memory for a stream");
  }
  return std::make_unique<CudaStream>(device, stream, static_cast<int*>(found));
}

}  // namespace onward::cuda

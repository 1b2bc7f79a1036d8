// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/device.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/cuda/call.h"
#include "core/cuda/copy.h"
#include "core/cuda/elementwise/chain_kernel.h"
#include "core/cuda/libraries.h"
#include "core/cuda/register.h"
#include "core/cuda/stream.h"

namespace onward::cuda {
namespace {

// Of the memory that is free at the start; the rest is for what the driver and others need.
constexpr size_t kUsableTenths = 9;

void RegisterAll(const Context& context, KernelTable& table) {
  RegisterElementwise(context, table);
  RegisterMovement(context, table);
  RegisterIndex(context, table);
  RegisterReduce(context, table);
  RegisterNorm(context, table);
  RegisterLoss(context, table);
  RegisterAttention(context, table);
  RegisterRandom(context, table);
  RegisterMatMul(context, table);
  RegisterConv(context, table);
  RegisterPool(context, table);
  RegisterRnn(context, table);
  RegisterOptimizers(context, table);
}

class CudaDevice final : public Device {
 public:
  CudaDevice(const Context& context, size_t memory_limit)
      : context_(context), memory_limit_(memory_limit) {
    RegisterAll(context_, kernels_);
  }

  std::string name() const override { return absl::StrCat("cuda:", context_.options.index); }
  const KernelTable& kernels() const override { return kernels_; }
  bool has_own_memory() const override { return true; }

  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) const override {
    const int device = context_.options.index;
    ONWARD_RETURN_IF_ERROR(StatusOf(cudaSetDevice(device), "cannot use the GPU"));
    void* memory = nullptr;
    ONWARD_RETURN_IF_ERROR(StatusOf(cudaMalloc(&memory, std::max<size_t>(bytes, 1)),
                                    absl::StrCat("cannot get ", bytes, " bytes of ", name())));
    return std::shared_ptr<void>(memory, [device](void* p) {
      cudaSetDevice(device);
      cudaFree(p);
    });
  }

  absl::StatusOr<std::shared_ptr<void>> AllocateHost(size_t bytes) const override {
    ONWARD_RETURN_IF_ERROR(StatusOf(cudaSetDevice(context_.options.index), "cannot use the GPU"));
    void* memory = nullptr;
    ONWARD_RETURN_IF_ERROR(StatusOf(cudaMallocHost(&memory, std::max<size_t>(bytes, 1)),
                                    "cannot get pinned memory for copies"));
    return std::shared_ptr<void>(memory, [](void* p) { cudaFreeHost(p); });
  }

  absl::StatusOr<std::unique_ptr<Stream>> MakeStream() const override {
    return cuda::MakeStream(context_.options.index);
  }

  absl::StatusOr<Kernel> MakeReorder(DType dtype, const Shape& shape, const Layout& from,
                                     const Layout& to) const override {
    if (from != nullptr || to != nullptr) {
      return absl::UnimplementedError("values of this device have the plain layout only");
    }
    Kernel kernel = CopyKernel(TensorBytes(dtype, shape));
    kernel.is_view = true;
    return kernel;
  }

  absl::StatusOr<Kernel> MakeChain(absl::Span<const ChainStep> steps,
                                   absl::Span<const ValueSpec> inputs, const Shape& shape,
                                   const Layout& layout) const override {
    if (layout != nullptr) return absl::UnimplementedError("an opaque layout");
    return ChainKernel(steps, inputs, shape);
  }

  Layout LayoutForTranspose(DType, const Shape&, absl::Span<const int64_t>) const override {
    return nullptr;
  }
  size_t memory_limit() const override { return memory_limit_; }

 private:
  Context context_;
  KernelTable kernels_;
  size_t memory_limit_;
};

// Told apart from what is wrong with a GPU that is there.
bool MeansNoGpu(cudaError_t error) {
  return error == cudaErrorStubLibrary || error == cudaErrorInsufficientDriver ||
         error == cudaErrorNoDevice;
}

std::string VersionText(int major, int minor) { return absl::StrCat(major, ".", minor); }

// The library has code for nothing older (cmake/CudaLibrary.cmake).
absl::Status CheckCapability(int index) {
  constexpr int kMajor = 7, kMinor = 5;
  int major = 0, minor = 0;
  ONWARD_RETURN_IF_ERROR(
      StatusOf(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index),
               "cannot ask what the GPU is"));
  ONWARD_RETURN_IF_ERROR(
      StatusOf(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index),
               "cannot ask what the GPU is"));
  if (std::pair(major, minor) >= std::pair(kMajor, kMinor)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("cuda:", index, " has compute capability ",
                                                    VersionText(major, minor), ", Onward needs ",
                                                    VersionText(kMajor, kMinor), " or more"));
}

absl::Status CheckGpu(int index) {
  int driver = 0;
  const cudaError_t asked = cudaDriverGetVersion(&driver);
  if (asked == cudaSuccess && driver == 0) {
    return absl::FailedPreconditionError("no NVIDIA driver is installed");
  }
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver && asked == cudaSuccess) {
    cudaGetLastError();
    return absl::FailedPreconditionError(absl::StrCat(
        "the NVIDIA driver serves CUDA ", VersionText(driver / 1000, driver % 1000 / 10),
        " at most, this library needs ", CUDART_VERSION / 1000, "; install a newer driver"));
  }
  if (MeansNoGpu(error)) {
    cudaGetLastError();
    return absl::FailedPreconditionError(absl::StrCat("no NVIDIA GPU: ", cudaGetErrorString(error),
                                                      " (", cudaGetErrorName(error),
                                                      "), driver version ", driver));
  }
  ONWARD_RETURN_IF_ERROR(StatusOf(error, "cannot count the GPUs"));
  if (index < 0 || index >= count) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no cuda:", index, "; this machine has ", count, " of them"));
  }
  return CheckCapability(index);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Device>> MakeDevice(const DeviceOptions& options) {
  ONWARD_RETURN_IF_ERROR(CheckGpu(options.index));
  ONWARD_RETURN_IF_ERROR(StatusOf(cudaSetDevice(options.index), "cannot use the GPU"));
  size_t limit = options.memory_limit;
  if (limit == 0) {
    size_t free = 0, total = 0;
    ONWARD_RETURN_IF_ERROR(
        StatusOf(cudaMemGetInfo(&free, &total), "cannot ask for the GPU's memory"));
    limit = free / 10 * kUsableTenths;
  }
  return std::make_unique<CudaDevice>(Context{options, std::make_shared<Libraries>(options.index)},
                                      limit);
}

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// The door to the kernels. This file alone of its folder is compiled for any
// x86-64 CPU (see cmake/Kernels.cmake): nothing behind the door runs before the
// check.
#include "core/device/cpu.h"

#include <memory>
#include <string>
#include <utility>

#include "core/base/cpu_features.h"
#include "core/ops/cpu/cpu_device.h"

namespace onward {
namespace {

// Stands in where no kernel can run: it has none, and says why.
class UnusableCpu final : public Device {
 public:
  explicit UnusableCpu(absl::Status why) : why_(std::move(why)) {}

  std::string name() const override { return "cpu"; }
  absl::Status Usable() const override { return why_; }
  const KernelTable& kernels() const override { return kernels_; }
  absl::StatusOr<Kernel> MakeReorder(DType, const Shape&, const Layout&,
                                     const Layout&) const override {
    return why_;
  }
  absl::StatusOr<Kernel> MakeChain(absl::Span<const ChainStep>, absl::Span<const ValueSpec>,
                                   const Shape&, const Layout&) const override {
    return why_;
  }
  Layout LayoutForTranspose(DType, const Shape&, absl::Span<const int64_t>) const override {
    return nullptr;
  }
  size_t memory_limit() const override { return 0; }

 private:
  absl::Status why_;
  KernelTable kernels_;
};

}  // namespace

std::unique_ptr<const Device> MakeCpuDevice(const CpuFeatures& cpu, const CpuOptions& options) {
  absl::Status usable = CheckCpu(cpu);
  if (!usable.ok()) return std::make_unique<UnusableCpu>(std::move(usable));
  return MakeKernelDevice(options);
}

std::unique_ptr<const Device> MakeCpuDevice(const CpuOptions& options) {
  return MakeCpuDevice(ThisCpu(), options);
}

}  // namespace onward

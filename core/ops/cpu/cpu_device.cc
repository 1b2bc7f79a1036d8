// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/cpu_device.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/memory.h"
#include "core/device/cpu.h"
#include "core/ops/cpu/onednn.h"
#include "core/ops/cpu/register.h"
#include "core/ops/cpu/strided_copy.h"
#include "core/ops/elementwise/elementwise.h"

namespace onward {
namespace {

// Three quarters of the physical memory; no limit where it is not known.
size_t MemoryLimit() {
  const std::optional<uint64_t> bytes = PhysicalMemory();
  return bytes.has_value() ? *bytes / 4 * 3 : std::numeric_limits<size_t>::max();
}

// Writes out a value in a permuted layout, where that transposes planes: about twice as fast as
// oneDNN's reorder. Nothing for others.
std::optional<Kernel> TransposingReorder(const Shape& shape, const Layout& from) {
  const DnnlDesc desc = StridedDescOf(shape, from);
  if (desc.is_zero()) return std::nullopt;
  const StridedCopy copy(DType::kFloat, desc.get_dims(), desc.get_strides());
  if (!copy.transposes()) return std::nullopt;
  Kernel kernel;
  kernel.run = [copy](const KernelCall& call) {
    copy.Run(call.outputs[0]->raw(), call.inputs[0]->raw());
    return absl::OkStatus();
  };
  return kernel;
}

class Cpu final : public Device {
 public:
  explicit Cpu(const CpuOptions& options)
      : memory_limit_(options.memory_limit == 0 ? MemoryLimit() : options.memory_limit) {
    RegisterCpuKernels(options, kernels_);
  }

  std::string name() const override { return "cpu"; }
  const KernelTable& kernels() const override { return kernels_; }
  absl::StatusOr<Kernel> MakeReorder(DType dtype, const Shape& shape, const Layout& from,
                                     const Layout& to) const override {
    if (dtype == DType::kFloat && from != nullptr && to == nullptr) {
      if (std::optional<Kernel> kernel = TransposingReorder(shape, from)) return *kernel;
    }
    return MakeDnnlReorder(dtype, shape, from, to);
  }
  absl::StatusOr<Kernel> MakeChain(absl::Span<const ChainStep> steps,
                                   absl::Span<const ValueSpec> inputs, const Shape& shape,
                                   const Layout& layout) const override {
    return ChainKernel(steps, inputs, shape, layout);
  }
  Layout LayoutForTranspose(DType dtype, const Shape& shape,
                            absl::Span<const int64_t> perm) const override {
    if (dtype != DType::kFloat || !FitsDnnl(shape) || perm.empty() ||
        perm.size() > DNNL_MAX_NDIMS) {
      return nullptr;
    }
    Shape transposed;
    std::vector<int64_t> back(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) {
      transposed.push_back(shape[static_cast<int>(perm[i])]);
      back[perm[i]] = static_cast<int64_t>(i);
    }
    return PermutedLayout(transposed, nullptr, back);
  }
  size_t memory_limit() const override { return memory_limit_; }

 private:
  KernelTable kernels_;
  size_t memory_limit_;
};

}  // namespace

std::unique_ptr<const Device> MakeKernelDevice(const CpuOptions& options) {
  return std::make_unique<Cpu>(options);
}

}  // namespace onward

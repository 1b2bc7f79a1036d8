// SPDX-License-Identifier: Apache-2.0
// A device that lacks some of its kernels, and is otherwise as it was.
#ifndef ONWARD_TESTS_SUPPORT_LACKING_DEVICE_H_
#define ONWARD_TESTS_SUPPORT_LACKING_DEVICE_H_

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/device/device.h"

namespace onward {

class LackingDevice final : public Device {
 public:
  LackingDevice(std::unique_ptr<const Device> whole, const std::set<std::string>& without)
      : whole_(std::move(whole)) {
    for (const auto& [key, entries] : whole_->kernels().all()) {
      const auto& [domain, op] = key;
      if (without.contains(op)) continue;
      for (const KernelTable::Entry& entry : entries) kernels_.Add(op, entry, domain);
    }
  }

  std::string name() const override { return whole_->name(); }
  absl::Status Usable() const override { return whole_->Usable(); }
  const KernelTable& kernels() const override { return kernels_; }
  bool has_own_memory() const override { return whole_->has_own_memory(); }
  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) const override {
    return whole_->Allocate(bytes);
  }
  absl::StatusOr<std::shared_ptr<void>> AllocateHost(size_t bytes) const override {
    return whole_->AllocateHost(bytes);
  }
  absl::StatusOr<std::unique_ptr<Stream>> MakeStream() const override {
    return whole_->MakeStream();
  }
  absl::StatusOr<Kernel> MakeReorder(DType dtype, const Shape& shape, const Layout& from,
                                     const Layout& to) const override {
    return whole_->MakeReorder(dtype, shape, from, to);
  }
  absl::StatusOr<Kernel> MakeChain(absl::Span<const ChainStep> steps,
                                   absl::Span<const ValueSpec> inputs, const Shape& shape,
                                   const Layout& layout) const override {
    return whole_->MakeChain(steps, inputs, shape, layout);
  }
  Layout LayoutForTranspose(DType dtype, const Shape& shape,
                            absl::Span<const int64_t> perm) const override {
    return whole_->LayoutForTranspose(dtype, shape, perm);
  }
  size_t memory_limit() const override { return whole_->memory_limit(); }

 private:
  const std::unique_ptr<const Device> whole_;
  KernelTable kernels_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_LACKING_DEVICE_H_

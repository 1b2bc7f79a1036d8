// SPDX-License-Identifier: Apache-2.0
// Where kernels run: what they are, the memory of their values, and the order of their work.
#ifndef ONWARD_CORE_DEVICE_DEVICE_H_
#define ONWARD_CORE_DEVICE_DEVICE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/kernel.h"

namespace onward {

// Work that was put down once, to be queued as a whole as often as wanted. Goes before the memory
// that it uses.
class Recording {
 public:
  virtual ~Recording() = default;
};

// Work of a device with memory of its own, done in the order in which it is queued. Everything
// returns at once; what failed on the way is told by a later call, at the latest by Synchronize.
// Pointers are to the device's memory unless they are said to be the host's.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void* native() const = 0;  // KernelCall::stream
  // From the host; the bytes there may change as soon as this returns.
  virtual absl::Status CopyIn(void* to, const void* host, size_t bytes) = 0;
  // To the host, where they are after the next Synchronize.
  virtual absl::Status CopyOut(void* host, const void* from, size_t bytes) = 0;
  // Between the device and memory of Device::AllocateHost, which stays as it is until this is done.
  virtual absl::Status CopyPinnedIn(void* to, const void* pinned, size_t bytes) = 0;
  virtual absl::Status CopyPinnedOut(void* pinned, const void* from, size_t bytes) = 0;
  // Within the device.
  virtual absl::Status Copy(void* to, const void* from, size_t bytes) = 0;
  // Unless *stop is set.
  virtual absl::Status CopyUnless(const uint32_t* stop, void* to, const void* from,
                                  size_t bytes) = 0;
  // Sets *bad unless every element of a floating-point tensor of the device is finite.
  virtual absl::Status FlagInfinite(const Tensor& tensor, uint32_t* bad) = 0;
  // Sets *stop if one of the words is set or there is a fault (may be null), and leaves it
  // otherwise.
  virtual absl::Status SetStop(const uint32_t* words, int count, const Fault* fault,
                               uint32_t* stop) = 0;
  // What is queued in between is put down and not done; nothing waits, and nothing is copied but by
  // the pinned copies and within the device. Where `keep` is false the result is null.
  virtual absl::Status BeginRecording() = 0;
  virtual absl::StatusOr<std::unique_ptr<Recording>> EndRecording(bool keep) = 0;
  // Queues a recording of this stream: all of it, or where this fails, nothing.
  virtual absl::Status Replay(Recording& recording) = 0;
  // What is queued here from now on comes after all that is queued there, on the same device.
  virtual absl::Status WaitFor(Stream& other) = 0;
  // Waits for all that was queued.
  virtual absl::Status Synchronize() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // Ok, or why nothing can be computed here.
  virtual absl::Status Usable() const { return absl::OkStatus(); }
  virtual const KernelTable& kernels() const = 0;
  // Its values live in memory that the host cannot reach, and its work is queued on streams.
  virtual bool has_own_memory() const { return false; }
  // Memory of its own, given back when the last owner goes, once all that was queued on any
  // stream by then is done. Contents undefined.
  virtual absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) const {
    (void)bytes;
    return absl::UnimplementedError("the device has no memory of its own");
  }
  // Memory of the host that the device copies from and to while the host goes on.
  virtual absl::StatusOr<std::shared_ptr<void>> AllocateHost(size_t bytes) const {
    (void)bytes;
    return absl::UnimplementedError("the device has no memory of its own");
  }
  virtual absl::StatusOr<std::unique_ptr<Stream>> MakeStream() const {
    return absl::UnimplementedError("the device works at once");
  }
  // A kernel that copies a value from one layout to another.
  virtual absl::StatusOr<Kernel> MakeReorder(DType dtype, const Shape& shape, const Layout& from,
                                             const Layout& to) const = 0;
  // One kernel for a chain whose results all have this shape and layout. Inputs
  // have their layouts set; those in an opaque layout are as large as the result.
  virtual absl::StatusOr<Kernel> MakeChain(absl::Span<const ChainStep> steps,
                                           absl::Span<const ValueSpec> inputs, const Shape& shape,
                                           const Layout& layout) const = 0;
  // The layout of a value of this shape whose transpose by `perm` is plain; null
  // where there is none.
  virtual Layout LayoutForTranspose(DType dtype, const Shape& shape,
                                    absl::Span<const int64_t> perm) const = 0;
  // Bytes this process may use.
  virtual size_t memory_limit() const = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_DEVICE_H_

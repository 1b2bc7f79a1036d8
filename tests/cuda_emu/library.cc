// SPDX-License-Identifier: Apache-2.0
// Checks and queueing for the fakes of NVIDIA's libraries.
#include "tests/cuda_emu/library.h"

#include <utility>
#include <vector>

#include "tests/cuda_emu/launch.h"
#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/state.h"

namespace onward::cuda_emu {
namespace {

struct Range {
  const char* what;
  const void* data;
  size_t bytes;
  Use use;
};
// What the call that is being made was handed.
thread_local std::vector<Range> checked_ranges;

bool Overlap(const Range& a, const Range& b) {
  const char *at_a = static_cast<const char*>(a.data), *at_b = static_cast<const char*>(b.data);
  return at_a < at_b + b.bytes && at_b < at_a + a.bytes;
}

Accesses TakeCheckedRanges(const char* call) {
  std::vector<Access> accesses;
  for (const Range& range : std::exchange(checked_ranges, {})) {
    accesses.push_back({range.data, range.bytes, range.use != Use::kRead, call});
  }
  return Touching(std::move(accesses));
}

}  // namespace

size_t SizeOf(Element element) {
  return WithType(element, [](auto* type) { return sizeof *type; });
}

bool BeginLibraryCall() {
  checked_ranges.clear();
  return !ShallFail(kOnwardEmuLibrary) && Record(cudaSuccess) == cudaSuccess;
}

void CheckDeviceRange(const char* call, const char* what, const void* data, size_t bytes,
                      int device, Use use) {
  if (bytes == 0) return;
  const int owner = DeviceOf(data);
  if (owner < 0) Fatal("%s: %s is the host pointer %p", call, what, data);
  if (owner != device) {
    Fatal("%s on device %d: %s points to memory of device %d", call, device, what, owner);
  }
  const Allocation* allocation = FindAllocation(data);
  if (allocation == nullptr || allocation->retired) {
    Fatal("%s: %s points to memory that is not allocated any more", call, what);
  }
  if (!IsInside(data, bytes)) {
    Fatal("%s: %s needs %zu bytes, but its allocation of %zu has only %zu left from there", call,
          what, bytes, allocation->bytes,
          allocation->bytes - (static_cast<const char*>(data) - allocation->data));
  }
  const Range range = {what, data, bytes, use};
  for (const Range& other : checked_ranges) {
    const bool scratch = use == Use::kScratch || other.use == Use::kScratch;
    if (scratch && Overlap(range, other)) Fatal("%s: %s lies over %s", call, what, other.what);
  }
  checked_ranges.push_back(range);
}

bool QueueLibraryWork(const char* call, CUstream_st* stream, std::function<void()> work) {
  const Accesses ranges = TakeCheckedRanges(call);
  const cudaError_t error = Enqueue(
      stream,
      [call, ranges, work = std::move(work)] {
        for (const Access& range : *ranges) {
          if (FindAllocation(range.data) != nullptr) continue;
          Fatal("%s runs with memory that was freed after the call or the capture", call);
        }
        RunOnDevice(call, [&] {
          ++GetState().counters.library_calls;
          work();
        });
      },
      ranges);
  return error == cudaSuccess;
}

}  // namespace onward::cuda_emu

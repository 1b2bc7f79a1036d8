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

// What the call that is being made was handed.
thread_local std::vector<const void*> checked_ranges;

}  // namespace

size_t SizeOf(Element element) {
  return WithType(element, [](auto* type) { return sizeof *type; });
}

bool BeginLibraryCall() {
  checked_ranges.clear();
  return !ShallFail(kOnwardEmuLibrary) && Record(cudaSuccess) == cudaSuccess;
}

void CheckDeviceRange(const char* call, const char* what, const void* data, size_t bytes,
                      int device) {
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
  checked_ranges.push_back(data);
}

bool QueueLibraryWork(const char* call, CUstream_st* stream, std::function<void()> work) {
  const cudaError_t error = Enqueue(stream, [name = std::string(call), work = std::move(work),
                                             ranges = std::exchange(checked_ranges, {})] {
    for (const void* data : ranges) {
      if (FindAllocation(data) != nullptr) continue;
      Fatal("%s runs with memory that was freed after the call or the capture", name.c_str());
    }
    RunOnDevice(name, [&] {
      ++GetState().counters.library_calls;
      work();
    });
  });
  return error == cudaSuccess;
}

}  // namespace onward::cuda_emu

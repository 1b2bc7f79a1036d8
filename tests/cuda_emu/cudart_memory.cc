// SPDX-License-Identifier: Apache-2.0
// Runtime calls that allocate, copy and fill.
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/state.h"
#include "tests/cuda_emu/stream.h"

using namespace onward::cuda_emu;

namespace {

cudaError_t Allocate(void** data, size_t bytes) {
  if (data == nullptr) return cudaErrorInvalidValue;
  if (ShallFail(kOnwardEmuAlloc)) return cudaErrorMemoryAllocation;
  if (bytes == 0) {
    *data = nullptr;
    return cudaSuccess;
  }
  void* allocated = AllocateDevice(CurrentDevice(), bytes);
  if (allocated == nullptr) return cudaErrorMemoryAllocation;
  *data = allocated;
  return cudaSuccess;
}

// The start of an allocation that the host still owns.
bool CanFree(const void* data) {
  const Allocation* allocation = FindAllocation(data);
  return allocation != nullptr && allocation->data == data && !allocation->retired;
}

enum class Direction { kWrong, kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice };

Direction DirectionOf(const void* to, const void* from, cudaMemcpyKind kind) {
  const bool to_device = DeviceOf(to) >= 0, from_device = DeviceOf(from) >= 0;
  const auto is = [&](cudaMemcpyKind wanted) {
    return kind == wanted || kind == cudaMemcpyDefault;
  };
  if (to_device && from_device) {
    return is(cudaMemcpyDeviceToDevice) ? Direction::kDeviceToDevice : Direction::kWrong;
  }
  if (to_device) return is(cudaMemcpyHostToDevice) ? Direction::kHostToDevice : Direction::kWrong;
  if (from_device) return is(cudaMemcpyDeviceToHost) ? Direction::kDeviceToHost : Direction::kWrong;
  return is(cudaMemcpyHostToHost) ? Direction::kHostToHost : Direction::kWrong;
}

void Count(Direction direction, size_t bytes) {
  OnwardEmuCounters& counters = GetState().counters;
  const auto add = [bytes](int64_t& copies, int64_t& total) {
    ++copies;
    total += static_cast<int64_t>(bytes);
  };
  switch (direction) {
    case Direction::kHostToDevice:
      add(counters.host_to_device, counters.host_to_device_bytes);
      break;
    case Direction::kDeviceToHost:
      add(counters.device_to_host, counters.device_to_host_bytes);
      break;
    case Direction::kDeviceToDevice:
      add(counters.device_to_device, counters.device_to_device_bytes);
      break;
    default: break;
  }
}

bool Overlap(const char* a, const char* b, size_t bytes) { return a < b + bytes && b < a + bytes; }

cudaError_t Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                 CUstream_st* stream) {
  if (ShallFail(kOnwardEmuCopy)) return cudaErrorInvalidValue;
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  const Direction direction = DirectionOf(to, from, kind);
  const bool outside = (DeviceOf(to) >= 0 && !IsInside(to, bytes)) ||
                       (DeviceOf(from) >= 0 && !IsInside(from, bytes));
  if (direction == Direction::kWrong || outside) return cudaErrorInvalidValue;
  if (Overlap(static_cast<char*>(to), static_cast<const char*>(from), bytes)) {
    return cudaErrorInvalidValue;
  }
  // Pageable memory is read before the call returns; pinned memory when the copy is made.
  std::shared_ptr<std::vector<char>> staged;
  if (direction == Direction::kHostToDevice && !IsPinned(from) && stream->capture == nullptr) {
    const char* bytes_from = static_cast<const char*>(from);
    staged = std::make_shared<std::vector<char>>(bytes_from, bytes_from + bytes);
  }
  std::vector<Access> accesses;
  for (const auto& [data, written] : {std::pair<const void*, bool>(to, true), {from, false}}) {
    if (DeviceOf(data) >= 0 || IsPinned(data)) accesses.push_back({data, bytes, written, "a copy"});
  }
  return Enqueue(
      stream,
      [=] {
        const OpenBytes open_to(to, bytes), open_from(from, bytes);
        std::memcpy(to, staged != nullptr ? staged->data() : from, bytes);
        Count(direction, bytes);
      },
      Touching(std::move(accesses)));
}

cudaError_t Fill(void* data, int value, size_t bytes, CUstream_st* stream) {
  if (ShallFail(kOnwardEmuCopy)) return cudaErrorInvalidValue;
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  if (!IsInside(data, bytes) || DeviceOf(data) != stream->device) return cudaErrorInvalidValue;
  return Enqueue(
      stream,
      [=] {
        const OpenBytes open(data, bytes);
        std::memset(data, value, bytes);
      },
      Touching({{data, bytes, true, "a fill"}}));
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** data, size_t bytes) {
  Entry entry;
  if (const cudaError_t error = Record(RefuseWhileCapturing(nullptr))) return error;
  return Record(Allocate(data, bytes));
}

cudaError_t cudaFree(void* data) {
  Entry entry;
  if (data == nullptr) return Record(cudaSuccess);
  if (!CanFree(data)) return Record(cudaErrorInvalidValue);
  if (const cudaError_t error = RefuseWhileCapturing(nullptr)) return Record(error);
  FinishDevice(DeviceOf(data));
  Release(data);
  return Record(cudaSuccess);
}

cudaError_t cudaMallocAsync(void** data, size_t bytes, cudaStream_t stream) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr) return Record(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = RefuseWhileCapturing(resolved)) return Record(error);
  return Record(Allocate(data, bytes));
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  Entry entry;
  if (data == nullptr) return Record(cudaSuccess);
  CUstream_st* resolved = Resolve(stream);
  if (resolved == nullptr) return Record(cudaErrorInvalidResourceHandle);
  if (!CanFree(data)) return Record(cudaErrorInvalidValue);
  if (const cudaError_t error = RefuseWhileCapturing(resolved)) return Record(error);
  Retire(data);
  return Record(Enqueue(resolved, [data] { Release(data); }));
}

cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  Entry entry;
  if (const cudaError_t error = Record(RefuseWhileCapturing(nullptr))) return error;
  if (data == nullptr) return Record(cudaErrorInvalidValue);
  if (ShallFail(kOnwardEmuAlloc)) return Record(cudaErrorMemoryAllocation);
  void* allocated = AllocatePinned(bytes);
  if (allocated == nullptr) return Record(cudaErrorMemoryAllocation);
  *data = allocated;
  return Record(cudaSuccess);
}

cudaError_t cudaMallocHost(void** data, size_t bytes) { return cudaHostAlloc(data, bytes, 0); }

cudaError_t cudaFreeHost(void* data) {
  Entry entry;
  if (data == nullptr) return Record(cudaSuccess);
  if (const cudaError_t error = RefuseWhileCapturing(nullptr)) return Record(error);
  FinishDevice(CurrentDevice());
  return Record(FreePinned(data) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostRegister(void* data, size_t bytes, unsigned) {
  Entry entry;
  if (data == nullptr || DeviceOf(data) >= 0) return Record(cudaErrorInvalidValue);
  if (ShallFail(kOnwardEmuAlloc)) return Record(cudaErrorMemoryAllocation);
  if (IsPinned(data)) return Record(cudaErrorHostMemoryAlreadyRegistered);
  RegisterPinned(data, bytes);
  return Record(cudaSuccess);
}

cudaError_t cudaHostUnregister(void* data) {
  Entry entry;
  return Record(UnregisterPinned(data) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  return Record(Copy(to, from, bytes, kind, Resolve(stream)));
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  if (const cudaError_t error = RefuseWhileCapturing(nullptr)) return Record(error);
  CUstream_st* stream = Resolve(nullptr);
  if (const cudaError_t error = Copy(to, from, bytes, kind, stream)) return Record(error);
  // Copies within devices do not make the host wait.
  if (DeviceOf(to) < 0 || DeviceOf(from) < 0) FinishStream(stream);
  return Record(cudaSuccess);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  if (DeviceOf(to) != to_device || DeviceOf(from) != from_device) {
    return Record(cudaErrorInvalidValue);
  }
  return Record(Copy(to, from, bytes, cudaMemcpyDeviceToDevice, Resolve(stream)));
}

cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  Entry entry;
  if (const cudaError_t sticky = Record(cudaSuccess)) return sticky;
  return Record(Fill(data, value, bytes, Resolve(stream)));
}

cudaError_t cudaMemset(void* data, int value, size_t bytes) {
  return cudaMemsetAsync(data, value, bytes, nullptr);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  Entry entry;
  *attributes = {};
  const int device = DeviceOf(address);
  attributes->device = device >= 0 ? device : CurrentDevice();
  attributes->type = device >= 0         ? cudaMemoryTypeDevice
                     : IsPinned(address) ? cudaMemoryTypeHost
                                         : cudaMemoryTypeUnregistered;
  if (device >= 0) attributes->devicePointer = const_cast<void*>(address);
  if (device < 0) attributes->hostPointer = const_cast<void*>(address);
  return Record(cudaSuccess);
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// Device memory as protected ranges with a first-fit allocator.
#include "tests/cuda_emu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "tests/cuda_emu/state.h"
#include "tests/cuda_emu/stream_order.h"

namespace onward::cuda_emu {
namespace {

constexpr size_t kAlignment = 256;  // what cudaMalloc promises
constexpr size_t kPage = 4096;
constexpr size_t kRange = size_t{1} << 38;  // addresses, not memory
constexpr unsigned char kCanary = 0xa5;

size_t RoundUp(size_t n, size_t step) { return (n + step - 1) / step * step; }

// Canary, data, canary; the whole a multiple of the alignment.
size_t BlockBytes(size_t bytes) { return kAlignment + RoundUp(bytes + kAlignment, kAlignment); }

class Arena {
 public:
  explicit Arena(int device) : device_(device) {
    void* range =
        mmap(nullptr, kRange, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) Fatal("no room for the addresses of device %d", device);
    base_ = static_cast<char*>(range);
    free_[0] = kRange;
  }

  char* Allocate(size_t bytes) {
    const size_t wanted = BlockBytes(bytes);
    if (bytes > kRange || used_ + bytes > GetState().memory) return nullptr;
    const auto gap = std::find_if(free_.begin(), free_.end(),
                                  [wanted](const auto& gap) { return gap.second >= wanted; });
    if (gap == free_.end()) return nullptr;
    const auto [offset, room] = *gap;
    free_.erase(gap);
    if (room > wanted) free_[offset + wanted] = room - wanted;
    char* block = base_ + offset;
    const size_t end = RoundUp(offset + wanted, kPage);
    if (open_ && end > top_) mprotect(base_ + top_, end - top_, PROT_READ | PROT_WRITE);
    top_ = std::max(top_, end);
    const OpenBytes open(block, wanted);
    char* data = block + kAlignment;
    std::memset(block, kCanary, kAlignment);
    std::memset(data, kPoison, bytes);
    std::memset(data + bytes, kCanary, block + wanted - (data + bytes));
    live_[data] = {data, bytes, device_, false};
    used_ += bytes;
    return data;
  }

  void Release(char* data) {
    const Allocation allocation = live_.at(data);
    const OpenBytes open(data - kAlignment, BlockBytes(allocation.bytes));
    Check(allocation, "found when it was freed (ONWARD_EMU_STRICT=1 names the kernel)");
    std::memset(data, kPoison, allocation.bytes);
    live_.erase(data);
    used_ -= allocation.bytes;
    auto gap = free_.emplace(data - kAlignment - base_, BlockBytes(allocation.bytes)).first;
    if (const auto next = std::next(gap);
        next != free_.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      free_.erase(next);
    }
    if (gap != free_.begin()) {
      const auto before = std::prev(gap);
      if (before->first + before->second == gap->first) {
        before->second += gap->second;
        free_.erase(gap);
      }
    }
    GiveBackTop();
  }

  Allocation* Find(const void* address) {
    const char* p = static_cast<const char*>(address);
    auto next = live_.upper_bound(const_cast<char*>(p));
    if (next == live_.begin()) return nullptr;
    Allocation& found = std::prev(next)->second;
    return p <= found.data + found.bytes ? &found : nullptr;
  }

  bool Holds(const void* address) const {
    const char* p = static_cast<const char*>(address);
    return p >= base_ && p < base_ + kRange;
  }

  void CheckAll(const char* when) {
    for (const auto& [data, allocation] : live_) Check(allocation, when);
  }

  void SetOpen(bool open) {
    if (open == open_ || top_ == 0) return;
    if (mprotect(base_, top_, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
      Fatal("mprotect of the memory of device %d failed", device_);
    }
    open_ = open;
  }

  bool open() const { return open_; }
  size_t used() const { return used_; }
  const void* base() const { return base_; }

 private:
  // What is opened and closed around every kernel should be no larger than what is in use.
  void GiveBackTop() {
    constexpr size_t kWorthwhile = size_t{1} << 20;
    const auto& [offset, room] = *free_.rbegin();
    const size_t end = RoundUp(offset, kPage);
    if (offset + room != kRange || end + kWorthwhile > top_) return;
    madvise(base_ + end, top_ - end, MADV_DONTNEED);
    mprotect(base_ + end, top_ - end, PROT_NONE);
    top_ = end;
  }

  void Check(const Allocation& allocation, const char* when) const {
    const char* block = allocation.data - kAlignment;
    const char* end = block + BlockBytes(allocation.bytes);
    const auto report = [&](const char* at) {
      const int64_t offset = at - allocation.data;
      Fatal("write %s an allocation of %zu bytes on device %d, at byte %lld, %s",
            offset < 0 ? "before" : "past the end of", allocation.bytes, device_,
            static_cast<long long>(offset), when);
    };
    for (const char* p = block; p < allocation.data; ++p) {
      if (static_cast<unsigned char>(*p) != kCanary) report(p);
    }
    for (const char* p = allocation.data + allocation.bytes; p < end; ++p) {
      if (static_cast<unsigned char>(*p) != kCanary) report(p);
    }
  }

  int device_;
  char* base_ = nullptr;
  size_t top_ = 0;  // all allocations lie below
  size_t used_ = 0;
  bool open_ = false;
  std::map<size_t, size_t> free_;  // offset -> bytes
  std::map<char*, Allocation> live_;
};

std::array<std::unique_ptr<Arena>, kMaxDevices>& Arenas() {
  static auto* arenas = new std::array<std::unique_ptr<Arena>, kMaxDevices>;
  return *arenas;
}

Arena& ArenaOf(int device) {
  std::unique_ptr<Arena>& arena = Arenas()[device];
  if (arena == nullptr) arena = std::make_unique<Arena>(device);
  return *arena;
}

std::map<const char*, std::pair<size_t, bool>>& Pinned() {  // address -> bytes, whether ours
  static auto* pinned = new std::map<const char*, std::pair<size_t, bool>>;
  return *pinned;
}

Allocation* FindMutable(const void* address) {
  const int device = DeviceOf(address);
  return device < 0 ? nullptr : ArenaOf(device).Find(address);
}

}  // namespace

void* AllocateDevice(int device, size_t bytes) {
  char* data = ArenaOf(device).Allocate(bytes);
  if (data == nullptr) return nullptr;
  OnwardEmuCounters& counters = GetState().counters;
  ++counters.live_allocations;
  counters.live_bytes += static_cast<int64_t>(bytes);
  counters.peak_bytes = std::max(counters.peak_bytes, counters.live_bytes);
  return data;
}

void Retire(void* data) { FindMutable(data)->retired = true; }

void Release(void* data) {
  const Allocation* allocation = FindMutable(data);
  OnwardEmuCounters& counters = GetState().counters;
  --counters.live_allocations;
  counters.live_bytes -= static_cast<int64_t>(allocation->bytes);
  ForgetAccesses(data, allocation->bytes);
  ArenaOf(allocation->device).Release(static_cast<char*>(data));
}

const Allocation* FindAllocation(const void* address) { return FindMutable(address); }

int DeviceOf(const void* address) {
  for (int device = 0; device < kMaxDevices; ++device) {
    const auto& arena = Arenas()[device];
    if (arena != nullptr && arena->Holds(address)) return device;
  }
  return -1;
}

bool IsInside(const void* address, size_t bytes) {
  const Allocation* allocation = FindAllocation(address);
  if (allocation == nullptr || allocation->retired) return false;
  const size_t offset = static_cast<const char*>(address) - allocation->data;
  return bytes <= allocation->bytes - offset;
}

size_t UsedBytes(int device) { return ArenaOf(device).used(); }

std::pair<const void*, size_t> AddressesOf(int device) { return {ArenaOf(device).base(), kRange}; }

void OpenMemory(int device) {
  for (int i = 0; i < kMaxDevices; ++i) {
    if (const auto& arena = Arenas()[i]) arena->SetOpen(device == kAllDevices || device == i);
  }
}

void CloseMemory() {
  for (const auto& arena : Arenas()) {
    if (arena != nullptr) arena->SetOpen(false);
  }
}

OpenBytes::OpenBytes(const void* data, size_t bytes) {
  const int device = DeviceOf(data);
  if (device < 0 || bytes == 0 || ArenaOf(device).open()) return;
  const auto address = reinterpret_cast<uintptr_t>(data);
  const uintptr_t page = address / kPage * kPage;
  first_ = reinterpret_cast<char*>(page);
  bytes_ = RoundUp(address + bytes - page, kPage);
  if (mprotect(first_, bytes_, PROT_READ | PROT_WRITE) != 0) Fatal("mprotect failed");
}

OpenBytes::~OpenBytes() {
  if (first_ != nullptr) mprotect(first_, bytes_, PROT_NONE);
}

void CheckCanaries(const char* when) {
  OpenMemory(kAllDevices);
  for (const auto& arena : Arenas()) {
    if (arena != nullptr) arena->CheckAll(when);
  }
}

void* AllocatePinned(size_t bytes) {
  char* data =
      static_cast<char*>(std::aligned_alloc(kPage, RoundUp(std::max<size_t>(bytes, 1), kPage)));
  if (data == nullptr) return nullptr;
  std::memset(data, kPoison, bytes);
  Pinned()[data] = {bytes, true};
  GetState().counters.live_host_bytes += static_cast<int64_t>(bytes);
  return data;
}

bool FreePinned(void* data) {
  const auto found = Pinned().find(static_cast<char*>(data));
  if (found == Pinned().end() || !found->second.second) return false;
  GetState().counters.live_host_bytes -= static_cast<int64_t>(found->second.first);
  Pinned().erase(found);
  std::free(data);
  return true;
}

bool IsPinned(const void* address) {
  const char* p = static_cast<const char*>(address);
  const auto next = Pinned().upper_bound(p);
  if (next == Pinned().begin()) return false;
  const auto& [data, held] = *std::prev(next);
  return p < data + held.first;
}

void RegisterPinned(void* data, size_t bytes) {
  Pinned()[static_cast<char*>(data)] = {bytes, false};
}

bool UnregisterPinned(void* data) {
  const auto found = Pinned().find(static_cast<char*>(data));
  if (found == Pinned().end() || found->second.second) return false;
  Pinned().erase(found);
  return true;
}

}  // namespace onward::cuda_emu

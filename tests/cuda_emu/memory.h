// SPDX-License-Identifier: Apache-2.0
// Memory of the emulated devices: one range of addresses each, which only kernels and copies may
// touch. It starts as NaN bytes and has canaries on both sides of every allocation.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

namespace onward::cuda_emu {

inline constexpr int kMaxDevices = 8;
inline constexpr unsigned char kPoison = 0xff;  // as a number of any floating-point type: NaN

struct Allocation {
  char* data = nullptr;
  size_t bytes = 0;
  int device = 0;
  bool retired = false;  // freed by the host, though queued work before that may still use it
};

// nullptr when the device is full.
void* AllocateDevice(int device, size_t bytes);
// The host may not use it any more.
void Retire(void* data);
// Checks its canaries, poisons it and gives the room back.
void Release(void* data);

// What the address belongs to (one past the end belongs too), or null.
const Allocation* FindAllocation(const void* address);
// The device that has this address in its range; -1: host memory.
int DeviceOf(const void* address);
bool IsInside(const void* address, size_t bytes);  // of an allocation that is not retired
size_t UsedBytes(int device);
// All addresses the device has.
std::pair<const void*, size_t> AddressesOf(int device);

// Lets this thread touch the memory of one device (kAllDevices: of all), and no other's.
inline constexpr int kAllDevices = -1;
void OpenMemory(int device);
void CloseMemory();

// Opens the pages of these bytes, if they are a device's; the whole of a large memory takes long.
class OpenBytes {
 public:
  OpenBytes(const void* data, size_t bytes);
  ~OpenBytes();
  OpenBytes(const OpenBytes&) = delete;
  OpenBytes& operator=(const OpenBytes&) = delete;

 private:
  char* first_ = nullptr;  // null: they were open
  size_t bytes_ = 0;
};

// Ends the program if somebody wrote around an allocation. `when` ends the sentence.
void CheckCanaries(const char* when);

void* AllocatePinned(size_t bytes);
bool FreePinned(void* data);
bool IsPinned(const void* address);
void RegisterPinned(void* data, size_t bytes);
bool UnregisterPinned(void* data);

}  // namespace onward::cuda_emu

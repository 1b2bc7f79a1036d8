// SPDX-License-Identifier: Apache-2.0
// Poisons shared memory between blocks.
#include "tests/cuda_emu/shared_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/state.h"

namespace onward::cuda_emu {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kRoom = (kOptInSharedBytes + kPage - 1) / kPage * kPage;
constexpr int kSearches = 3;

bool IsPoison(const char* data, size_t bytes) {
  return static_cast<unsigned char>(data[0]) == kPoison &&
         std::memcmp(data, data + 1, bytes - 1) == 0;
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (room_ != nullptr) munmap(room_ - kPage, kRoom + 2 * kPage);
}

void SharedMemory::Kernel::Search() {
  ++searches;
  for (const SharedArray& array : *all) {
    if (array.bytes == 0 || IsPoison(array.data, array.bytes)) continue;
    const bool known = std::any_of(used.begin(), used.end(), [&](const SharedArray& other) {
      return other.data == array.data;
    });
    if (!known) used.push_back(array);
  }
}

void SharedMemory::BeginLaunch(const void* kernel, size_t dynamic_bytes) {
  const auto [place, fresh] = kernels_.try_emplace(kernel);
  kernel_ = &place->second;
  if (fresh) kernel_->all = &SharedArrays(kernel);
  if (modules_.insert(ModuleOf(kernel)).second) {
    for (const SharedArray& array : *kernel_->all) std::memset(array.data, kPoison, array.bytes);
  }
  if (room_ == nullptr) {
    void* memory = mmap(nullptr, kRoom + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) Fatal("no memory for shared memory");
    room_ = static_cast<char*>(memory) + kPage;
    mprotect(room_, kRoom, PROT_READ | PROT_WRITE);
  }
  // It ends where the next page faults.
  dynamic_bytes_ = (dynamic_bytes + 15) / 16 * 16;
  dynamic_ = room_ + kRoom - dynamic_bytes_;
}

std::pair<const void*, size_t> SharedMemory::room() const { return {room_, kRoom}; }

void SharedMemory::BeginBlock() { std::memset(dynamic_, kPoison, dynamic_bytes_); }

void SharedMemory::EndBlock() {
  if (kernel_->searches < kSearches) kernel_->Search();
  for (const SharedArray& array : kernel_->used) std::memset(array.data, kPoison, array.bytes);
}

}  // namespace onward::cuda_emu

// SPDX-License-Identifier: Apache-2.0
// Shared memory of the running block: dynamic bytes between pages that fault, and the static arrays
// of kernels, all poisoned before a block starts.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/cuda_emu/symbols.h"

namespace onward::cuda_emu {

inline constexpr size_t kDefaultSharedBytes = 48 << 10;
inline constexpr size_t kOptInSharedBytes = 99 << 10;  // what every architecture from 8.0 on has

class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void BeginLaunch(const void* kernel, size_t dynamic_bytes);
  void BeginBlock();
  void EndBlock();
  void* dynamic() const { return dynamic_; }
  // All that dynamic shared memory may be, of any launch.
  std::pair<const void*, size_t> room() const;

 private:
  // Which static arrays a kernel uses is not told by anything, so the first blocks it runs are
  // followed by a search for arrays that changed. All of them are poison between launches.
  struct Kernel {
    const std::vector<SharedArray>* all = nullptr;
    std::vector<SharedArray> used;
    int searches = 0;

    void Search();
  };

  std::map<const void*, Kernel> kernels_;
  std::set<const void*> modules_;  // whose arrays were poisoned
  char* room_ = nullptr;
  char* dynamic_ = nullptr;
  size_t dynamic_bytes_ = 0;
  Kernel* kernel_ = nullptr;
};

}  // namespace onward::cuda_emu

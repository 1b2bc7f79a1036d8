// SPDX-License-Identifier: Apache-2.0
// Where the thread sanitizer's library is in the program, every thread of a block is a fiber of the
// sanitizer: nothing but barriers and warp functions orders two of them, and what the emulator does
// meanwhile is no thread's work. Blocks come one after another, because here they share the memory
// that each has for itself on a GPU; races between them are found by access_check.h alone.
#pragma once

#include <cstddef>
#include <vector>

namespace onward::cuda_emu {

class ThreadContexts {
 public:
  // Whether the sanitizer's library is there; without it nothing here does anything.
  static bool Active();

  // What the host did is ordered before the block, the block before what it does next. In between
  // its own accesses are not looked at.
  void BeginBlock(size_t threads);
  void EndBlock();

  // From the emulator to the code of a thread, and back. `order`: an address that stands for what
  // they are ordered by; null for the block's beginning and end.
  void Enter(unsigned thread, void* order);
  void Leave(void* order);

 private:
  std::vector<void*> contexts_;  // by thread, for all blocks
  void* host_ = nullptr;
  char begin_ = 0, end_ = 0;  // their addresses count
};

}  // namespace onward::cuda_emu

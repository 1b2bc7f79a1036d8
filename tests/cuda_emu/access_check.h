// SPDX-License-Identifier: Apache-2.0
// Checks every access of a kernel: that it is to memory the kernel may touch, and that no other
// thread touched the same bytes without a barrier between. The compiler reports the accesses: .cu
// files are compiled with -fsanitize=thread, whose calls end in access_hooks.cc instead of the
// sanitizer's library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace onward::cuda_emu {

struct Bytes {
  const void* data = nullptr;
  size_t size = 0;
};

// What the scheduler tells of the launch that runs. Nothing is checked unless OnwardEmuStrict(2)
// asked for it.
struct LaunchScope {
  const void* kernel;
  int device;
  Bytes arguments;       // where the arguments are kept, which is host memory
  Bytes dynamic_room;    // all that dynamic shared memory may ever be
  Bytes dynamic_shared;  // what this launch has of it
};

void BeginCheckedLaunch(const LaunchScope& scope);
void EndCheckedLaunch();
void BeginCheckedBlock();
// What the block did is ordered with what it does from now on.
void OrderBlock();
// The thread that goes on, and how many warp functions its warp had when it was last in one.
void SetCheckedThread(unsigned thread, unsigned meetings, Bytes stack);

// Whether a launch is being checked. It is asked for every access of every kernel.
inline constinit std::atomic<bool> launch_is_checked __attribute__((visibility("hidden"))) = false;
inline bool LaunchIsChecked() { return launch_is_checked.load(std::memory_order_relaxed); }

// On a GPU an address that is no multiple of the alignment is an error.
void CheckWatched(const void* address, size_t bytes, bool write, bool atomic, size_t alignment);
inline void CheckAccess(const void* address, size_t bytes, bool write, bool atomic,
                        size_t alignment = 1) {
  if (LaunchIsChecked()) [[unlikely]]
    CheckWatched(address, bytes, write, atomic, alignment);
}

}  // namespace onward::cuda_emu

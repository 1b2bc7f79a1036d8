// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emu/thread_contexts.h"

// The sanitizer's own interface (sanitizer/tsan_interface.h); not there in other programs.
extern "C" {
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
__attribute__((weak)) void __tsan_acquire(void* address);
__attribute__((weak)) void __tsan_release(void* address);
__attribute__((weak)) void AnnotateIgnoreReadsBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace onward::cuda_emu {
namespace {

constexpr unsigned kNoSync = 1;  // a switch orders nothing

}  // namespace

bool ThreadContexts::Active() { return __tsan_create_fiber != nullptr; }

void ThreadContexts::BeginBlock(size_t threads) {
  if (!Active()) return;
  host_ = __tsan_get_current_fiber();
  while (contexts_.size() < threads) contexts_.push_back(__tsan_create_fiber(0));
  __tsan_release(&begin_);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

void ThreadContexts::EndBlock() {
  if (!Active()) return;
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  __tsan_acquire(&end_);
}

void ThreadContexts::Enter(unsigned thread, void* order) {
  if (!Active()) return;
  __tsan_switch_to_fiber(contexts_[thread], kNoSync);
  __tsan_acquire(order == nullptr ? &begin_ : order);
}

void ThreadContexts::Leave(void* order) {
  if (!Active()) return;
  __tsan_release(order == nullptr ? &end_ : order);
  __tsan_switch_to_fiber(host_, kNoSync);
}

}  // namespace onward::cuda_emu

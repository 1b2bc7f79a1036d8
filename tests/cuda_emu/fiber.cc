// SPDX-License-Identifier: Apache-2.0
// Fibers over boost::context (11 ns a switch; ucontext takes 400 ns for its system calls).
#include "tests/cuda_emu/fiber.h"

#include <sys/mman.h>

#include "tests/cuda_emu/state.h"

extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake, const void* bottom,
                                                          size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake, const void** bottom,
                                                           size_t* size);
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
__attribute__((weak)) void __tsan_acquire(void* object);
__attribute__((weak)) void __tsan_release(void* object);
}

namespace onward::cuda_emu {
namespace {

constexpr size_t kGuard = 4096;
constexpr size_t kStack = size_t{256} << 10;  // touched pages only
constexpr unsigned kNoSynchronization = 1;    // a switch orders nothing: barriers do

// Of the thread that resumed the running fiber.
struct Host {
  boost::context::detail::fcontext_t context = nullptr;
  void* race_fiber = nullptr;
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  size_t size = 0;
};
thread_local Host host;
thread_local Fiber* running = nullptr;
thread_local Fiber::Body first_body = nullptr;

void SwitchRaceFiber(void* fiber) {
  if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(fiber, kNoSynchronization);
}
void StartSwitch(void** fake, const void* bottom, size_t size) {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(fake, bottom, size);
  }
}
void FinishSwitch(void* fake, const void** bottom, size_t* size) {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(fake, bottom, size);
  }
}

}  // namespace

Fiber::Fiber() {
  void* memory = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) Fatal("no memory for the stack of a CUDA thread");
  stack_ = static_cast<char*>(memory);
  mprotect(stack_, kGuard, PROT_NONE);
  if (__tsan_create_fiber != nullptr) race_fiber_ = __tsan_create_fiber(0);
}

Fiber::~Fiber() {
  if (__tsan_destroy_fiber != nullptr) __tsan_destroy_fiber(race_fiber_);
  munmap(stack_, kGuard + kStack);
}

void Fiber::Enter(boost::context::detail::transfer_t transfer) {
  host.context = transfer.fctx;
  FinishSwitch(nullptr, &host.bottom, &host.size);
  first_body();
  Fatal("the body of a fiber returned");
}

void Fiber::Resume(Body body) {
  if (context_ == nullptr) {
    first_body = body;
    context_ = boost::context::detail::make_fcontext(stack_ + kGuard + kStack, kStack, Enter);
  }
  running = this;
  if (__tsan_get_current_fiber != nullptr) host.race_fiber = __tsan_get_current_fiber();
  SwitchRaceFiber(race_fiber_);
  StartSwitch(&host.fake_stack, stack_ + kGuard, kStack);
  context_ = boost::context::detail::jump_fcontext(context_, nullptr).fctx;
  FinishSwitch(host.fake_stack, nullptr, nullptr);
}

void Fiber::Suspend() {
  Fiber* self = running;
  SwitchRaceFiber(host.race_fiber);
  StartSwitch(&self->fake_stack_, host.bottom, host.size);
  host.context = boost::context::detail::jump_fcontext(host.context, nullptr).fctx;
  FinishSwitch(self->fake_stack_, &host.bottom, &host.size);
}

void RaceRelease(void* object) {
  if (__tsan_release != nullptr) __tsan_release(object);
}
void RaceAcquire(void* object) {
  if (__tsan_acquire != nullptr) __tsan_acquire(object);
}

}  // namespace onward::cuda_emu

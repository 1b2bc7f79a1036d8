// SPDX-License-Identifier: Apache-2.0
// Fibers over boost::context (11 ns a switch; ucontext takes 400 ns for its system calls).
#include "tests/cuda_emu/fiber.h"

#include <sys/mman.h>

#include <atomic>

#include "tests/cuda_emu/state.h"

extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake, const void* bottom,
                                                          size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake, const void** bottom,
                                                           size_t* size);
}

namespace onward::cuda_emu {
namespace {

constexpr size_t kGuard = 4096;
constexpr size_t kStack = size_t{256} << 10;  // touched pages only

// Stacks that began at the same place of a page would all meet in a few lines of the cache.
size_t NextSize() {
  constexpr size_t kLine = 64, kStep = 13 * kLine, kMost = 256 * kLine;
  static std::atomic<size_t> made = 0;
  return kStack - made++ * kStep % kMost;
}

// Of the thread that resumed the running fiber.
struct Host {
  boost::context::detail::fcontext_t context = nullptr;
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  size_t size = 0;
};
thread_local Host host;
thread_local Fiber* running = nullptr;
thread_local Fiber::Body first_body = nullptr;

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

Fiber::Fiber() : size_(NextSize()) {
  void* memory = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) Fatal("no memory for the stack of a CUDA thread");
  stack_ = static_cast<char*>(memory);
  mprotect(stack_, kGuard, PROT_NONE);
}

Fiber::~Fiber() { munmap(stack_, kGuard + kStack); }

Bytes Fiber::stack() const { return {stack_ + kGuard, size_}; }

void Fiber::Enter(boost::context::detail::transfer_t transfer) {
  host.context = transfer.fctx;
  FinishSwitch(nullptr, &host.bottom, &host.size);
  first_body();
  Fatal("the body of a fiber returned");
}

void Fiber::Resume(Body body) {
  if (context_ == nullptr) {
    first_body = body;
    context_ = boost::context::detail::make_fcontext(stack_ + kGuard + size_, size_, Enter);
  }
  running = this;
  StartSwitch(&host.fake_stack, stack_ + kGuard, size_);
  context_ = boost::context::detail::jump_fcontext(context_, nullptr).fctx;
  FinishSwitch(host.fake_stack, nullptr, nullptr);
}

void Fiber::Suspend() {
  Fiber* self = running;
  StartSwitch(&self->fake_stack_, host.bottom, host.size);
  host.context = boost::context::detail::jump_fcontext(host.context, nullptr).fctx;
  FinishSwitch(self->fake_stack_, &host.bottom, &host.size);
}

}  // namespace onward::cuda_emu

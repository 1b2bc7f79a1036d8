// SPDX-License-Identifier: Apache-2.0
// A handler that names the kernel, or the device memory that host code touched.
#include "tests/cuda_emu/crash.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/cuda_emu/memory.h"
#include "tests/cuda_emu/scheduler.h"

namespace onward::cuda_emu {
namespace {

constexpr size_t kStack = 64 << 10;

struct sigaction& Previous() {
  static auto* action = new struct sigaction();
  return *action;
}

// The process is lost either way, so functions that signals should not call are called.
void Explain(int signal, siginfo_t* info, void*) {
  // On return the same access faults again, and whoever was there before has it.
  sigaction(signal, &Previous(), nullptr);
  const void* address = info->si_addr;
  const int device = DeviceOf(address);
  if (InsideKernel()) {
    char place[1024];
    DescribePlace(place, sizeof place);
    std::fprintf(stderr, "cuda_emu: illegal access to %p (%s) in %s\n", address,
                 device >= 0 ? "device memory" : "no device memory", place);
  } else if (device >= 0) {
    const Allocation* allocation = FindAllocation(address);
    std::fprintf(stderr, "cuda_emu: host code touched memory of device %d at %p", device, address);
    if (allocation != nullptr) {
      std::fprintf(stderr, ", in an allocation of %zu bytes", allocation->bytes);
    }
    std::fprintf(stderr, "\n");
  }
}

// Fibers have no room for a handler, so it needs a stack of its own; a sanitizer may have set one.
struct SignalStack {
  SignalStack() {
    stack_t there = {};
    sigaltstack(nullptr, &there);
    if ((there.ss_flags & SS_DISABLE) == 0) return;
    memory = std::malloc(kStack);
    stack_t stack = {};
    stack.ss_sp = memory;
    stack.ss_size = kStack;
    sigaltstack(&stack, nullptr);
  }
  ~SignalStack() {
    if (memory == nullptr) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    std::free(memory);
  }
  void* memory = nullptr;
};
thread_local std::unique_ptr<SignalStack> signal_stack;

}  // namespace

void ExplainFaults() {
  if (signal_stack != nullptr) return;
  signal_stack = std::make_unique<SignalStack>();
  struct sigaction before = {};
  sigaction(SIGSEGV, nullptr, &before);
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == Explain) return;
  Previous() = before;
  struct sigaction action = {};
  action.sa_sigaction = Explain;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace onward::cuda_emu

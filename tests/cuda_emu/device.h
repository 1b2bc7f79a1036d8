// SPDX-License-Identifier: Apache-2.0
// What a .cu sees when g++ compiles it for the emulator: NVIDIA's headers for types, prototypes and
// enums, and here the device side of them. Included through core/cuda/launch.h alone.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tests/cuda_emu/atomics.h"
#include "tests/cuda_emu/device_math.h"
#include "tests/cuda_emu/warp.h"

// One block runs at a time in a host thread, so shared memory is that thread's.
#undef __shared__
#define __shared__ static thread_local
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif

// Set by the scheduler whenever another thread goes on.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

namespace onward::cuda_emu {

void* DynamicShared();

// The bytes of one argument, to be searched for pointers.
struct Argument {
  bool is_pointer;
  const void* data;
  size_t bytes;
  // Of what a pointer points to, as far as its type tells.
  size_t target_bytes = 1, target_alignment = 1;
  bool may_write = false;
};

template <class P>
Argument ArgumentOf(const P& value) {
  Argument argument = {std::is_pointer_v<P>, &value, sizeof(P)};
  if constexpr (std::is_pointer_v<P>) {
    using Target = std::remove_pointer_t<P>;
    argument.may_write = !std::is_const_v<Target>;
    if constexpr (std::is_object_v<Target>) {
      argument.target_bytes = sizeof(Target);
      argument.target_alignment = alignof(Target);
    }
  }
  return argument;
}

struct KernelCall {
  const void* kernel;
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
  // What one thread does, with the arguments as they are kept.
  void (*run)(const void* kept);
  std::shared_ptr<const void> kept;
  size_t kept_bytes;
};

// Checks the call as the driver would, and queues it.
cudaError_t Submit(const KernelCall& call, const std::vector<Argument>& arguments);

// A kernel with its arguments.
template <class... P>
struct Bound {
  void (*kernel)(P...);
  std::tuple<P...> arguments;

  static void Run(const void* kept) {
    const auto* bound = static_cast<const Bound*>(kept);
    std::apply(bound->kernel, bound->arguments);
  }
};

template <class... P>
cudaError_t Launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                   cudaStream_t stream, P... args) {
  // What is between the members of a struct may look like a pointer.
  (__builtin_clear_padding(&args), ...);
  const std::vector<Argument> arguments = {ArgumentOf(args)...};
  const auto bound = std::make_shared<const Bound<P...>>(Bound<P...>{kernel, {args...}});
  return Submit({reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, stream,
                 Bound<P...>::Run, bound, sizeof *bound},
                arguments);
}

}  // namespace onward::cuda_emu

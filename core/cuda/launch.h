// SPDX-License-Identifier: Apache-2.0
// The only door through which kernels are launched. The same .cu is compiled by nvcc for a GPU and
// by g++ for the emulator of tests/cuda_emu, which runs every kernel on the CPU and checks it.
//
// Rules for kernels, so that both builds mean the same:
//  - Launch(kernel<float, Op>, {grid, block, shared_bytes}, stream, args...), never <<<>>>: that is
//    not C++. Template arguments are explicit; arguments are converted to the parameters' types.
//    The error is that of this launch; what a kernel does wrong later is told by whoever waits.
//  - Parameters are passed by value: numbers, device pointers, plain structs of these. Unused
//    pointers of such a struct are null, never left uninitialised. Kernels are not overloaded.
//  - Dynamic shared memory is ONWARD_DYNAMIC_SHARED(T, name), never `extern __shared__`; one
//    declaration per kernel, carved up by hand. Static `__shared__` arrays are as usual, without
//    initialisers, and hold garbage when a block starts (alignment: __align__, not alignas).
//  - Every thread of a block reaches every __syncthreads(), at the same line: no return before one.
//    Warp functions are the _sync ones and their mask names lanes that all get there; nothing else
//    orders the lanes of a warp. Values from lanes outside the mask are garbage.
//  - What several threads change is changed and read by atomics, even if all write the same value;
//    emulated kernels are checked for races.
//  - No order between blocks, no waiting for another block. Sums over blocks take a second launch,
//    or atomics where a nondeterministic order is allowed.
//  - Arithmetic in float (or double): __half and __nv_bfloat16 are converted on reading and
//    writing. The half-precision functions (hexp, __hfma, ...) exist on the GPU only.
//  - No inline PTX, tensor-core or cp.async intrinsics, cooperative groups, dynamic parallelism,
//    textures, __constant__ or __device__ variables, managed memory, or zero-copy host memory.
//  - No function-local `thread_local` variables in .cu files: those are the emulator's __shared__.
//  - More than 48 KB of dynamic shared memory: AllowSharedBytes(kernel, bytes) once before.
#pragma once

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "tests/cuda_emu/device.h"
#endif

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace onward::cuda {

struct Geometry {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
};

namespace internal {

// Converts as a call would, and no further: a float* does not become an int*.
template <class P>
P Converted(P value) {
  return value;
}

}  // namespace internal

template <class... P, class... A>
cudaError_t Launch(void (*kernel)(P...), const Geometry& geometry, cudaStream_t stream,
                   A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "as many arguments as the kernel has parameters");
  static_assert((std::is_trivially_copyable_v<P> && ...), "kernel parameters are copied as bytes");
#ifdef __CUDACC__
  std::tuple<P...> values(internal::Converted<P>(std::forward<A>(args))...);
  return std::apply(
      [&](auto&... value) {
        void* pointers[] = {&value..., nullptr};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), geometry.grid,
                                geometry.block, pointers, geometry.shared_bytes, stream);
      },
      values);
#else
  return cuda_emu::Launch(kernel, geometry.grid, geometry.block, geometry.shared_bytes, stream,
                          internal::Converted<P>(std::forward<A>(args))...);
#endif
}

// Lets a kernel ask for more dynamic shared memory than every device has by default.
template <class... P>
cudaError_t AllowSharedBytes(void (*kernel)(P...), size_t bytes) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                              cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

}  // namespace onward::cuda

#ifdef __CUDACC__
#define ONWARD_DYNAMIC_SHARED(T, name)                                         \
  extern __shared__ __align__(16) unsigned char onward_dynamic_shared_bytes[]; \
  T* const name = reinterpret_cast<T*>(onward_dynamic_shared_bytes)
#else
#define ONWARD_DYNAMIC_SHARED(T, name) \
  T* const name = static_cast<T*>(::onward::cuda_emu::DynamicShared())
#endif

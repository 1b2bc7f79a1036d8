// SPDX-License-Identifier: Apache-2.0
// What the fakes of cuBLAS and cuDNN share: checks of what they are handed, element types, and work
// in stream order.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/cuda_emu/stream.h"

namespace onward::cuda_emu {

enum class Element { kFloat, kDouble, kHalf, kBfloat16 };

size_t SizeOf(Element element);

// What every call does first; false if it has to fail, because that was asked for or because the
// device is lost.
bool BeginLibraryCall();

// What a call does with bytes. Scratch holds anything meanwhile, so nothing else may lie there.
enum class Use { kRead, kWritten, kScratch };

// Where these bytes are not in memory of the device, ends the program with the names of both.
void CheckDeviceRange(const char* call, const char* what, const void* data, size_t bytes,
                      int device, Use use = Use::kRead);

// Queues the work under this name, which lasts; false if the stream cannot take it. What was
// checked since the call began must still be allocated when the work runs.
bool QueueLibraryWork(const char* call, CUstream_st* stream, std::function<void()> work);

// Calls f with a null pointer of the element's C++ type.
template <class F>
decltype(auto) WithType(Element element, F f) {
  switch (element) {
    case Element::kDouble: return f(static_cast<double*>(nullptr));
    case Element::kHalf: return f(static_cast<__half*>(nullptr));
    case Element::kBfloat16: return f(static_cast<__nv_bfloat16*>(nullptr));
    default: return f(static_cast<float*>(nullptr));
  }
}

template <class T>
struct ComputeOf {
  using Type = float;
};
template <>
struct ComputeOf<double> {
  using Type = double;
};

}  // namespace onward::cuda_emu

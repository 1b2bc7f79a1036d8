// SPDX-License-Identifier: Apache-2.0
// What factories ask of a request, and the kernel that queues a launch. What a factory here does
// not serve goes to the CPU's kernel of the operator, which also has the words for what is wrong.
#ifndef ONWARD_CORE_CUDA_REQUEST_H_
#define ONWARD_CORE_CUDA_REQUEST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cuda/call.h"
#include "core/device/kernel.h"

namespace onward::cuda {

// Unimplemented unless the first `inputs` inputs are there and every value has a shape.
inline absl::Status CheckRequest(const KernelRequest& r, int inputs) {
  for (int i = 0; i < inputs; ++i) {
    if (!r.HasInput(i)) return NodeUnimplemented(r.node, "an input is missing");
  }
  for (const auto& values : {r.inputs, r.outputs}) {
    for (const ValueSpec& value : values) {
      if (value.present() && !value.shape.has_value()) {
        return NodeUnimplemented(r.node, "serves known shapes");
      }
    }
  }
  return absl::OkStatus();
}

inline absl::Status Unserved(const KernelRequest& r) {
  return NodeUnimplemented(r.node, "these types and shapes are not served");
}

// Unimplemented unless output i, where it is wanted, has this shape.
inline absl::Status CheckOutput(const KernelRequest& r, int i, const Shape& shape) {
  return r.HasOutput(i) && r.out(i) != shape ? Unserved(r) : absl::OkStatus();
}

inline bool IsReal(DType dtype) { return IsFloating(dtype); }
inline bool IsWideInteger(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUint32 ||
         dtype == DType::kUint64;
}
// Bytes of one element; 0 for strings and what is narrower than a byte.
inline int BytesOf(DType dtype) {
  const int bits = DTypeBits(dtype);
  return bits % 8 == 0 ? bits / 8 : 0;
}

// The values of an integer input that never changes; Unimplemented for others.
inline absl::StatusOr<std::vector<int64_t>> ConstantInts(const KernelRequest& r, int input) {
  const Tensor* t = r.inputs[input].constant;
  if (t == nullptr || t->dtype() == DType::kBool) {
    return NodeUnimplemented(r.node, "serves constant parameters");
  }
  absl::StatusOr<std::vector<int64_t>> values = ToInts(*t);
  return values.ok() ? std::move(values) : Unserved(r);
}

// Device memory of an input or output; null where it is omitted.
inline const void* In(const KernelCall& call, int i) {
  const bool there = i < static_cast<int>(call.inputs.size()) && call.inputs[i] != nullptr;
  return there ? call.inputs[i]->raw() : nullptr;
}
inline void* Out(const KernelCall& call, int i) {
  const bool there = i < static_cast<int>(call.outputs.size()) && call.outputs[i] != nullptr;
  return there ? call.outputs[i]->raw() : nullptr;
}

// A kernel whose run is `launch(call)`, which gives a cudaError_t.
template <class Launch>
Kernel QueuedKernel(const KernelRequest& r, Launch launch) {
  Kernel kernel;
  kernel.run = [launch = std::move(launch), what = r.node.Describe()](const KernelCall& call) {
    return StatusOf(launch(call), what);
  };
  return kernel;
}

// The same for one that tells of faults; what they are called.
template <class Launch>
Kernel FaultingKernel(const KernelRequest& r, const char* fault, Launch launch) {
  Kernel kernel = QueuedKernel(r, std::move(launch));
  kernel.fault = fault;
  return kernel;
}

// Copies within the device, unless it is the same place.
inline cudaError_t CopyBytes(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (bytes == 0 || to == from) return cudaSuccess;
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_REQUEST_H_

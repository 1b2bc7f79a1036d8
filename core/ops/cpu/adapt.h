// SPDX-License-Identifier: Apache-2.0
// Adapters that widen what a kernel factory accepts. A factory written for
// known shapes and for float and double serves shapes known only at run time
// and the 16-bit floats too.
#ifndef ONWARD_CORE_OPS_CPU_ADAPT_H_
#define ONWARD_CORE_OPS_CPU_ADAPT_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/device/kernel.h"

namespace onward {

// Every output has the shape of input i.
ShapeRule LikeInput(int i);
// Every output has the shape that the inputs have when broadcast against each other.
ShapeRule LikeBroadcastInputs();

struct AdaptOptions {
  std::vector<int> shape_only;  // inputs whose contents are not read
};

// `factory` is only called with requests whose inputs have shapes (it must not
// look at those of the outputs), and with float in place of float16 and
// bfloat16 (values are converted on the way in and out). Where a shape is
// missing at compile time, the factory runs at each call, on plain layouts, and
// the outputs are allocated then.
KernelFactory Adapt(KernelFactory factory, ShapeRule shape, AdaptOptions options = {});

// A table entry of such a factory, with the rule.
KernelTable::Entry Adapted(std::string provider, int since, KernelFactory factory, ShapeRule shape,
                           std::string types, AdaptOptions options = {});

// Hands out 64-byte aligned pieces of a kernel's workspace.
class WorkspacePlan {
 public:
  // Offset of `bytes` more bytes.
  size_t Add(size_t bytes) {
    const size_t at = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

template <typename T>
T* At(void* workspace, size_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(workspace) + offset);
}

}  // namespace onward

#endif  // ONWARD_CORE_OPS_CPU_ADAPT_H_

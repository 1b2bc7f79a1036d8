// SPDX-License-Identifier: Apache-2.0
// What a model declares about the values that go in and come out.
//
// Threads: plain values.
#ifndef ONWARD_VALUE_H_
#define ONWARD_VALUE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "onward/tensor.h"

namespace onward::api {

enum class ValueKind { kTensor, kSparseTensor, kSequence, kOptional, kMap };

// One axis: a size, a name for a size that is not fixed ("batch"), or neither.
struct Dimension {
  int64_t size = -1;  // -1: not fixed
  std::string symbol;
};

// A declared input or output.
struct ValueInfo {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
  ElementType element_type = ElementType::kUndefined;  // of the tensors inside, however deep
  bool has_shape = false;                              // false: even the number of axes is open
  std::vector<Dimension> shape;                        // meaningful if has_shape
  std::string text;                                    // the type in words: "float[N, 1, 28, 28]"
};

}  // namespace onward::api

#endif  // ONWARD_VALUE_H_

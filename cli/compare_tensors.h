// SPDX-License-Identifier: Apache-2.0
// Whether two values agree: |got - expected| <= atol + rtol * |expected|.
#ifndef ONWARD_CLI_COMPARE_TENSORS_H_
#define ONWARD_CLI_COMPARE_TENSORS_H_

#include <string>

#include "core/tensor/value.h"

namespace onward {

struct Tolerance {
  double rtol = 1e-3, atol = 1e-3;
};

struct Difference {
  bool equal = true;
  double max_absolute = 0, max_relative = 0;
  int64_t differing = 0;  // elements outside the tolerance
  std::string mismatch;   // of type or shape, or the first element that differs
  std::string ToString() const;
};

// NaN equals NaN, infinities equal themselves. bfloat16 is compared at no less
// than its own precision.
Difference CompareTensors(const Tensor& got, const Tensor& expected, const Tolerance& tolerance);

// The same of values of any kind, item by item.
Difference CompareValues(const Value& got, const Value& expected, const Tolerance& tolerance);

}  // namespace onward

#endif  // ONWARD_CLI_COMPARE_TENSORS_H_

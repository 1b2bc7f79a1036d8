// SPDX-License-Identifier: Apache-2.0
// What the reference computes with: numbers at logical indices. A long double holds every
// double and every 64-bit integer exactly, so one kind of number serves all element types.
#ifndef ONWARD_TESTS_SUPPORT_REFERENCE_ARRAY_H_
#define ONWARD_TESTS_SUPPORT_REFERENCE_ARRAY_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/tensor/tensor.h"

namespace onward::reference {

using Number = long double;
using Index = std::vector<int64_t>;

// Thrown where the standard leaves the result open: an integer to a negative power, ...
struct NotDefined : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Array {
  DType dtype = DType::kUndefined;  // undefined: omitted
  Shape shape;
  std::vector<Number> values;  // row-major; of strings, the number they spell

  Array() = default;
  Array(DType type, Shape dims)
      : dtype(type), shape(std::move(dims)), values(static_cast<size_t>(shape.elements())) {}

  bool present() const { return dtype != DType::kUndefined; }
  int rank() const { return shape.rank(); }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  int64_t Offset(const Index& at) const;
  Number& operator[](const Index& at) { return values[Offset(at)]; }
  Number operator[](const Index& at) const { return values[Offset(at)]; }
  // With numpy's broadcasting to the shape that `at` points into.
  Number Broadcast(const Index& at) const;
  std::vector<int64_t> Ints() const { return {values.begin(), values.end()}; }
};
using Arrays = std::vector<Array>;

Array FromTensor(const Tensor& t);
// Rounded to the element type.
Tensor ToTensor(const Array& a);
// The number as an integer type stores it: cut, then modulo 2^bits.
Number Wrapped(DType dtype, Number value);

// Visits every index of the shape in row-major order.
void ForEach(const Shape& shape, const std::function<void(const Index& at)>& visit);
// f at every index.
Array Make(DType dtype, const Shape& shape, const std::function<Number(const Index& at)>& f);

Shape Broadcast(const Shape& a, const Shape& b);
// In [0, rank).
int Axis(int64_t axis, int rank);
Index With(Index at, int axis, int64_t value);

}  // namespace onward::reference

#endif  // ONWARD_TESTS_SUPPORT_REFERENCE_ARRAY_H_

// SPDX-License-Identifier: Apache-2.0
// Tensors: dense, row-major, in memory that copies share.
//
// Threads: several may read one tensor (or copies of it) at once while nobody writes its
// elements. Calls that change a Tensor object itself need one thread at a time.
#ifndef ONWARD_TENSOR_H_
#define ONWARD_TENSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onward/element_type.h"
#include "onward/status.h"

namespace onward::api {

// "float", "int64", ... as in ONNX's text form.
const char* ElementTypeName(ElementType type);

// The size of each axis, outermost first; empty for a single number.
using Shape = std::vector<int64_t>;

class Tensor {
 public:
  Tensor() = default;  // no tensor: type kUndefined, no elements

  // Memory of its own, all zeros (strings: empty). An error for negative or absurd sizes.
  static Result<Tensor> Zeros(ElementType type, const Shape& shape);

  // A copy of `values`, as many as the shape has elements, else an error.
  //   Tensor::From<float>({2, 2}, {1, 2, 3, 4})
  template <typename T>
  static Result<Tensor> From(const Shape& shape, const std::vector<T>& values);

  // One number (a shape without axes).
  template <typename T>
  static Result<Tensor> Scalar(const T& value) {
    return From<T>({}, {value});
  }

  // The caller's memory, not copied: `size` bytes at `data`, exactly what type and shape
  // need, else an error. It must stay until the last copy of the tensor is gone; `owner`,
  // if given, is then let go. Not for strings.
  static Result<Tensor> View(ElementType type, const Shape& shape, void* data, size_t size,
                             std::shared_ptr<void> owner = nullptr);

  bool defined() const { return impl_ != nullptr; }
  ElementType element_type() const;
  const Shape& shape() const;
  int64_t elements() const;  // 1 for a single number, 0 where there is no tensor

  // The elements, row-major. Null where the tensor holds elements of another type, and
  // where there is no tensor.
  template <typename T>
  T* data() {
    return element_type() == ElementTypeOf<T>::value ? static_cast<T*>(bytes()) : nullptr;
  }
  template <typename T>
  const T* data() const {
    return element_type() == ElementTypeOf<T>::value ? static_cast<const T*>(bytes()) : nullptr;
  }
  // A copy of the elements; an error where they are of another type.
  template <typename T>
  Result<std::vector<T>> Values() const;

  // The memory as it is: packed as in ONNX's raw_data where an element is smaller than a
  // byte; std::string objects for strings.
  void* bytes();
  const void* bytes() const;
  size_t byte_size() const;  // 0 for strings

  // The same elements in memory of their own.
  Result<Tensor> Clone() const;

  struct Impl;

 private:
  friend struct Access;
  Status ErrorOfType(ElementType wanted) const;
  static Status ErrorOfCount(const Tensor& tensor, size_t values);

  std::shared_ptr<Impl> impl_;
};

// Tensors by the names of inputs and outputs.
using TensorMap = std::map<std::string, Tensor>;

template <typename T>
Result<Tensor> Tensor::From(const Shape& shape, const std::vector<T>& values) {
  Result<Tensor> tensor = Zeros(ElementTypeOf<T>::value, shape);
  if (!tensor.ok()) return tensor;
  if (static_cast<size_t>(tensor->elements()) != values.size()) {
    return ErrorOfCount(*tensor, values.size());
  }
  std::copy(values.begin(), values.end(), tensor->template data<T>());
  return tensor;
}

template <typename T>
Result<std::vector<T>> Tensor::Values() const {
  const T* first = data<T>();
  if (!defined() || element_type() != ElementTypeOf<T>::value) {
    return ErrorOfType(ElementTypeOf<T>::value);
  }
  return std::vector<T>(first, first + elements());
}

}  // namespace onward::api

#endif  // ONWARD_TENSOR_H_

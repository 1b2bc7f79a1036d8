// SPDX-License-Identifier: Apache-2.0
// A dense, row-major tensor. Copying shares the bytes; Clone() copies them.
// Types narrower than a byte are packed as in ONNX raw_data.
#ifndef ONWARD_CORE_TENSOR_TENSOR_H_
#define ONWARD_CORE_TENSOR_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace onward {

class Tensor {
 public:
  Tensor() = default;
  // Owns new, uninitialised memory (strings: empty strings). The shape must
  // have passed CheckedElements; running out of memory throws std::bad_alloc,
  // which Run and Compile turn into a Status.
  Tensor(DType dtype, Shape shape);
  // Views memory that `owner` keeps alive (or, if null, the caller).
  Tensor(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner, int place = 0);

  static Tensor Zeros(DType dtype, Shape shape);
  template <typename T>
  static Tensor Scalar(T value) {
    return FromValues<T>({}, {value});
  }
  template <typename T>
  static Tensor FromValues(Shape shape, absl::Span<const T> values) {
    Tensor t(DTypeOf<T>::value, std::move(shape));
    std::copy(values.begin(), values.end(), t.data<T>());
    return t;
  }
  template <typename T>
  static Tensor FromValues(Shape shape, std::initializer_list<T> values) {
    return FromValues<T>(std::move(shape), absl::Span<const T>(values.begin(), values.size()));
  }

  bool defined() const { return dtype_ != DType::kUndefined; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  size_t bytes() const;

  // In whose memory it is: 0, where the host can reach it. What other numbers mean is up to who
  // made the tensor (Plan::DeviceOf); nobody else may look at its elements.
  int place() const { return place_; }
  // Whether its memory lasts as long as it does.
  bool owned() const { return owner_ != nullptr; }

  void* raw() { return data_; }
  const void* raw() const { return data_; }
  template <typename T>
  T* data() {
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  template <typename T>
  absl::Span<const T> values() const {
    return absl::Span<const T>(data<T>(), static_cast<size_t>(elements()));
  }

  Tensor Clone() const;
  // Itself, or a copy where somebody else keeps the memory alive.
  Tensor Owned() const { return owner_ != nullptr || !defined() ? *this : Clone(); }
  // Same bytes, another shape with the same number of elements.
  Tensor Reshaped(Shape shape) const;
  // Points a view at other memory; dtype and shape stay.
  void Rebind(void* data) { data_ = data; }

 private:
  DType dtype_ = DType::kUndefined;
  int place_ = 0;
  Shape shape_;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

// Bytes of a dense tensor of this type and shape (0 for strings).
size_t TensorBytes(DType dtype, const Shape& shape);

// Integer or boolean tensors as int64 values (shapes, axes, ...).
absl::StatusOr<std::vector<int64_t>> ToInts(const Tensor& t);
// Numeric tensors as doubles.
absl::StatusOr<std::vector<double>> ToDoubles(const Tensor& t);
// A scalar or one-element tensor of type `dtype` holding `value` rounded to it.
Tensor ScalarOf(DType dtype, double value, Shape shape = {});
// The numbers of a floating-point tensor, rounded to another such type.
Tensor RoundedTo(DType dtype, const Tensor& t);
// Same dtype, shape and bytes.
bool Identical(const Tensor& a, const Tensor& b);

}  // namespace onward

#endif  // ONWARD_CORE_TENSOR_TENSOR_H_

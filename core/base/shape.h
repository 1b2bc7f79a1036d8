// SPDX-License-Identifier: Apache-2.0
// The concrete shape of a tensor.
#ifndef ONWARD_CORE_BASE_SHAPE_H_
#define ONWARD_CORE_BASE_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace onward {

class Shape {
 public:
  using Dims = absl::InlinedVector<int64_t, 6>;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(absl::Span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t& operator[](int i) { return dims_[i]; }
  Dims::const_iterator begin() const { return dims_.begin(); }
  Dims::const_iterator end() const { return dims_.end(); }
  absl::Span<const int64_t> dims() const { return dims_; }
  void push_back(int64_t dim) { dims_.push_back(dim); }

  // Product of the dims; 1 for a scalar. Only for shapes that CheckedElements
  // accepted.
  int64_t elements() const;
  // Product of dims [from, to).
  int64_t elements(int from, int to) const;
  // Row-major strides in elements.
  Dims Strides() const;

  // "[2, 3]".
  std::string ToString() const;

  friend bool operator==(const Shape&, const Shape&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Shape& s) {
    return H::combine(std::move(h), s.dims_);
  }

 private:
  Dims dims_;
};

// The number of elements, or an error for negative dims and for products that
// do not fit (2^48 elements is the cap).
absl::StatusOr<int64_t> CheckedElements(absl::Span<const int64_t> dims);

// Numpy broadcasting of two shapes.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// Maps an axis in [-rank, rank) to [0, rank).
absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank);

// Whether `perm` holds each of 0 to rank - 1 once.
bool IsPermutation(absl::Span<const int64_t> perm, int rank);

}  // namespace onward

#endif  // ONWARD_CORE_BASE_SHAPE_H_
